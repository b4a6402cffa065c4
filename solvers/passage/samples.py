"""Small instances of one network whose units may have several chunks, the same ones and random ones."""

from __future__ import annotations

from dataclasses import replace

from ...formulations.expr import BoolExpr
from ...formulations.passage.view import PassageView
from ...formulations.passages import Passage
from ...formulations.problem import Problem
from ..chunking.samples import random_problem as random_chain
from ..chunking.samples import samples as samples_of_chunking
from ..samples import Samples


def samples() -> Samples:
    """Return the instances of `chunking`, with plans that come back to a unit."""
    once = samples_of_chunking()
    return Samples(
        plain=passing(once.plain),
        problems={name: passing(_coarser(problem)) for name, problem in once.problems.items()},
        rules={
            **once.rules,
            "chunks": (_twice,),
            "hops": (lambda view: view.hops() == 3,),
            "in flight": (lambda view: view.in_flight() >= 3,),
            "waits": (lambda view: view.stream_latency_us() >= view.latency_us() + 1,),
        },
        limits=(*once.limits, {"max_hops": 1}, {"max_hops": 2, "min_units": 3}),
        objectives=(*once.objectives, "hops,period", "latency,hops"),
    )


def passing(problem: Problem) -> Problem:
    """Return a problem whose units may have several chunks."""
    return replace(problem, data=Passage())


def _coarser(problem: Problem) -> Problem:
    """Return a problem with three places to cut: with five the oracle walks over thousands of plans."""
    (network,) = problem.networks
    return replace(problem, networks=(replace(network, forbidden_cuts=(1, 3, 6)),))


def _twice(view: PassageView) -> BoolExpr:
    return view.chunks("big") >= 2


def taking_turns(problem: Problem) -> Problem:
    """Return a problem whose first two units take turns on one resource."""
    first, second, *others = problem.platform.units
    shared = {"cores": (0,), "resource": "both", "kind": first.kind, "quota_permille": None}
    units = (replace(first, **shared), replace(second, **shared), *others)  # type: ignore[arg-type]
    # Quantities of rules know their bounds, which depend on who takes turns.
    return replace(problem, platform=replace(problem.platform, units=units)).with_data(problem.data)


def random_problem(layers: int, units: int, *, seed: int = 0) -> Problem:
    """Return a problem with the default objective (period, gapness); equal seeds give equal problems."""
    return passing(random_chain(layers, units, seed=seed))

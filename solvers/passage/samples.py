"""Small instances of one network whose units may have several chunks, on which backends are compared."""

from __future__ import annotations

from dataclasses import replace

from ...formulations.expr import BoolExpr
from ...formulations.passage.view import PassageView
from ...formulations.passages import Passage
from ...formulations.problem import Problem
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

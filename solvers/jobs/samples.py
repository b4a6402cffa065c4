"""Small problems of single requests on which every backend is compared with the oracle; random ones."""

from __future__ import annotations

import random
from dataclasses import replace

from ...formulations.costs import CostTable, NetworkCosts, Provenance
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Layer, Network
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ...formulations.schedules import Cuts, JobRequest, Jobs, SectionBorders
from ...formulations.terms import Objective
from ..samples import Samples

_NETWORKS, _MOST_LAYERS = 4, 4
_LAYER_US = (500, 20_000)
_SPEED_PERMILLE = (500, 2500)
_MISSING = 0.15
"""Share of layers that a unit beside the first cannot run."""


def samples() -> Samples:
    """Return a plain problem, and one for each way in which single requests can differ."""
    first, second, third = requests = (
        JobRequest(name="a0", network="a"),
        JobRequest(name="b0", network="b", weight=2),
        JobRequest(name="b1", network="b", weight=2),
    )
    waiting = (first, replace(second, after=("a0",)), third)
    due = (replace(first, deadline_us=40), replace(second, release_us=25, deadline_us=90), third)
    borders = (SectionBorders(network="a", cuts=(1,)),)
    memory = _problem(Jobs(requests=waiting), "lateness,makespan", partial=True)
    return Samples(
        plain=_problem(Jobs(requests=requests[:2]), "makespan"),
        problems={
            "equal": _problem(Jobs(requests=requests), "makespan,latency", partial=True),
            "waiting": _problem(Jobs(requests=waiting), "latency", partial=True),
            "late": _problem(Jobs(requests=due), "late,lateness", partial=True),
            "borders": _problem(Jobs(requests=requests[:2], borders=borders), "makespan,work"),
            "once": _problem(
                Jobs(requests=requests, cuts=Cuts.ALL, passage="once"), "makespan,latency", partial=True
            ),
            "ordered": _problem(
                Jobs(requests=requests[:2], cuts=Cuts.ALL, passage="ordered:cpu,npu"), "makespan,work"
            ),
            "breaks": _problem(Jobs(requests=(requests[0], requests[1]), cuts=Cuts.ALL), "latency"),
            "memory": replace(memory, platform=replace(memory.platform, memory_bytes=100)),
        },
        rules={
            "on": (lambda view: view.on("a0", 0, "npu"),),
            "uses": (lambda view: ~view.uses("b0", "npu"),),
            "chunks": (lambda view: view.chunks("a0") <= view.chunks("b0"),),
            "start": (lambda view: view.start_us("b0") >= 20,),
            "finish": (lambda view: view.finish_us("a0") + view.load_us("cpu") <= view.makespan_us() + 60,),
            "latency": (lambda view: view.latency_us("b0") <= 150,),
            "on time": (lambda view: ~view.is_late("a0"),),
            "opaque": (OpaqueRule(name="few", predicate=lambda plan: len(plan.chunks) != 3),),
            "contradiction": (
                lambda view: view.uses("b0", "npu"),
                lambda view: view.load_us("npu") <= 0,
            ),
        },
        limits=({"max_units": 1}, {"min_units": 2}, {"min_units": 2, "max_units": 1}),
        objectives=("makespan,latency", "late,lateness,makespan", "work,latency"),
    )


def _problem(jobs: Jobs, objective: str, *, partial: bool = False) -> Problem:
    """Return requests of two networks on two units; `partial`: the npu cannot run some layers."""
    missing = None if partial else 77
    layers_us = {"a": ((30, 61), (missing, 25)), "b": ((44, 71),)}
    return Problem(
        platform=Platform(name="board", units=(ProcessingUnit(name="npu"), ProcessingUnit(name="cpu"))),
        networks=tuple(
            Network(
                name=name,
                layers=tuple(Layer(name=f"l{index}", weight_bytes=20) for index, _ in enumerate(rows)),
            )
            for name, rows in layers_us.items()
        ),
        costs=CostTable(
            units=("npu", "cpu"),
            networks=tuple(NetworkCosts(network=name, layer_us=rows) for name, rows in layers_us.items()),
        ),
        objective=Objective.parse(objective),
        data=jobs,
    )


def random_jobs(requests: int, units: int, seed: int = 0) -> Problem:
    """Return requests of four networks of up to four layers, all there at once or a little later.

    `requests`, `units`: size; the first unit runs every layer, the others most of them.
    """
    rng = random.Random(f"jobs {requests} {units} {seed}")
    names = tuple(f"unit{number}" for number in range(units))
    speeds = [rng.randint(*_SPEED_PERMILLE) for _ in names]
    costs = tuple(_costs(f"net{number}", speeds, rng) for number in range(_NETWORKS))
    return Problem(
        platform=Platform(name="synthetic", units=tuple(ProcessingUnit(name=name) for name in names)),
        networks=tuple(
            Network(
                name=one.network,
                layers=tuple(Layer(name=f"l{index}") for index in range(len(one.layer_us))),
            )
            for one in costs
        ),
        costs=CostTable(units=names, networks=costs, provenance=Provenance(source="drawn", estimated=True)),
        objective=Objective(terms=("makespan",)),
        data=Jobs(
            requests=tuple(
                JobRequest(
                    name=f"r{number}",
                    network=rng.choice(costs).network,
                    release_us=rng.choice((0, rng.randint(*_LAYER_US))),
                )
                for number in range(requests)
            )
        ),
    )


def _costs(name: str, speeds: list[int], rng: random.Random) -> NetworkCosts:
    rows = []
    for _ in range(rng.randint(1, _MOST_LAYERS)):
        work = rng.randint(*_LAYER_US)
        times = [round(work * 1000 / speed * rng.uniform(0.7, 1.4)) + 1 for speed in speeds]
        rows.append((times[0], *(None if rng.random() < _MISSING else time for time in times[1:])))
    return NetworkCosts(network=name, layer_us=tuple(rows))

"""Small problems of single requests on which every backend is compared with the oracle."""

from __future__ import annotations

from dataclasses import replace

from ...formulations.costs import CostTable, NetworkCosts
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.job_requests import Cuts, JobRequest, Jobs, SectionBorders
from ...formulations.network import Layer, Network
from ...formulations.objective import Objective
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ..samples import Samples


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

"""Small problems of single requests on which every backend is compared with the oracle."""

from __future__ import annotations

import json
from dataclasses import replace

from ...formulations.files import parse_problem
from ...formulations.job_requests import JobRequest, Jobs, SectionBorders
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ..samples import Samples


def samples() -> Samples:
    """Return a plain problem, and one for each way in which single requests can differ."""
    plain = _problem()
    first, second, third = jobs = (
        JobRequest(name="a0", network="a"),
        JobRequest(name="b0", network="b", weight=2),
        JobRequest(name="b1", network="b", weight=2),
    )
    waiting = (first, replace(second, after=("a0",)), third)
    due = (replace(first, deadline_us=40), replace(second, release_us=25, deadline_us=90), third)
    partial = _problem(partial=True)
    return Samples(
        plain=replace(plain, data=Jobs(requests=jobs[:2])).with_objective("makespan"),
        problems={
            "equal": replace(partial, data=Jobs(requests=jobs)).with_objective("makespan,latency"),
            "waiting": replace(partial, data=Jobs(requests=waiting)).with_objective("latency"),
            "late": replace(partial, data=Jobs(requests=due)).with_objective("late,lateness"),
            "borders": replace(
                plain, data=Jobs(requests=jobs[:2], borders=(SectionBorders(network="a", cuts=(1,)),))
            ).with_objective("makespan,work"),
            "memory": replace(
                partial,
                platform=replace(partial.platform, memory_bytes=100),
                data=Jobs(requests=waiting),
            ).with_objective("lateness,makespan"),
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


def _problem(*, partial: bool = False) -> Problem:
    """Return two networks on two units; `partial`: the npu cannot run some layers."""
    missing = None if partial else 77
    document = {
        "format": "gapless.problem",
        "version": 1,
        "platform": {"name": "board", "units": [{"name": "npu"}, {"name": "cpu"}]},
        "networks": [
            {"name": name, "layers": [{"name": f"l{i}", "weight_bytes": 20} for i in range(count)]}
            for name, count in (("a", 2), ("b", 1))
        ],
        "costs": {
            "units": ["npu", "cpu"],
            "networks": [
                {"network": "a", "layer_us": [[30, 61], [missing, 25]]},
                {"network": "b", "layer_us": [[44, 71]]},
            ],
        },
    }
    return parse_problem(json.dumps(document).encode(), name="single requests")

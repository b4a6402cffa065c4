"""Small workloads on which every backend is compared with the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from ...formulations.costs import Interference
from ...formulations.deployment import Mode
from ...formulations.files import parse_problem
from ...formulations.flow_shop.rules import (
    before,
    deadline,
    keep_off,
    keep_on,
    memory_cap_while,
    never_beside,
)
from ...formulations.flow_shop.tables import workload_of
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ...formulations.workload import Execution, LoadPolicy, Request, RequestOrder, Workload
from ..samples import Samples


def samples() -> Samples:
    """Return a plain workload, and one for each way in which workloads can differ."""
    problems = list(sample_workloads())
    names = ("free", "one_slot", "stream", "late", "fixed", "fixed_columns", "columns")
    return Samples(
        plain=_plain(problems[0]).with_objective("makespan"),
        problems=dict(zip(names, problems, strict=True)),
        rules={
            "before": (before("b0", "a0"),),
            "never_beside": (never_beside("a0", "b0"),),
            "deadline": (deadline("b0", most_us=140),),
            "memory_cap_while": (memory_cap_while("a0", most_bytes=90),),
            "keep_on": (keep_on("a0", units=("npu",)),),
            "keep_off": (keep_off("b0", unit="npu"),),
            "numbers": (lambda view: view.start_us("b0") + 2 * view.load_us("cpu") <= view.makespan_us(),),
            "opaque": (OpaqueRule(name="few", predicate=lambda plan: len(plan.chunks) != 3),),
            "contradiction": (keep_on("b0", units=("npu",)), keep_off("b0", unit="npu")),
        },
        limits=(
            {"max_units": 1},
            {"min_units": 2},
            {"max_period_us": 100},
            {"max_gapness_us": 30},
            {"max_latency_us": 260},
            {"max_energy_nj": 120_000},
        ),
        objectives=("makespan,latency", "contention,displacement", "energy,makespan"),
    )


def _plain(problem: Problem) -> Problem:
    """Return a problem without what asks for special features."""
    costs = problem.costs
    networks = tuple(
        replace(network, layer_us=tuple(tuple(us or 77 for us in row) for row in network.layer_us))
        for network in costs.networks
    )
    return replace(
        problem,
        platform=replace(problem.platform, memory_bytes=None),
        costs=replace(costs, networks=networks),
        data=replace(workload_of(problem), order=RequestOrder.FIXED),
        interference=None,
    )


def sample_workloads() -> Iterator[Problem]:
    """Yield two requests of two networks on two units, in the ways in which workloads can differ."""
    units = [
        {"name": "npu", "power_mw": 800, "idle_mw": 100},
        {"name": "cpu", "power_mw": 400, "idle_mw": 30},
    ]
    document = {
        "format": "gapless.problem",
        "version": 1,
        "platform": {"name": "board", "memory_bytes": 120, "units": units},
        "networks": [
            {"name": name, "layers": [{"name": f"l{i}", "weight_bytes": 20} for i in range(3)]}
            for name in "ab"
        ],
        "costs": {
            "units": ["npu", "cpu"],
            "networks": [
                {"network": "a", "layer_us": [[30, 61], [42, 25], [50, None]]},
                {"network": "b", "layer_us": [[20, 71], [33, 38], [64, 29]]},
            ],
        },
    }
    plain = parse_problem(json.dumps(document).encode(), name="workload")
    requests = tuple(Request(name=f"{name}0", network=name) for name in "ab")
    late = (requests[0], replace(requests[1], arrival_us=25, deadline_us=150))
    slowdown = Interference(
        units=("npu", "cpu"), slowdown_permille=((0, 150), (320, 0)), high_from_permille=1000
    )
    fixed = Workload(requests=requests, order=RequestOrder.FIXED)
    for workload, interference, objective in (
        (Workload(requests=requests), slowdown, "makespan,latency"),
        (Workload(requests=requests, task_slots=1), None, "idle"),
        (Workload(requests=requests, mode=Mode.STREAM), slowdown, "period,contention,displacement"),
        (Workload(requests=late, load_policy=LoadPolicy.RUNNING), slowdown, "bubbles,peak_memory"),
        (fixed, None, "makespan,work"),
        (replace(fixed, execution=Execution.COLUMNS), slowdown, "makespan,bubbles"),
        (Workload(requests=requests, execution=Execution.COLUMNS), None, "gapness,bottleneck"),
    ):
        problem = replace(plain, data=workload, interference=interference).with_objective(objective)
        if workload.load_policy is LoadPolicy.RUNNING:  # less than all weights: not everything runs at once
            problem = replace(problem, platform=replace(plain.platform, memory_bytes=90))
        yield problem

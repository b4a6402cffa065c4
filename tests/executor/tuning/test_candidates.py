"""Candidates: baselines of every shape of platform, and duplicates that become one."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace

import gapless
from gapless.api.problems import table_problem
from gapless.executor.tuning.candidates import (
    MOST_REPLICA_SETS,
    CandidateKind,
    TuningCandidate,
    baselines,
    plan_candidates,
    predicted_us,
    without_duplicates,
)
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.deployment import Mode
from gapless.formulations.flow_shop.formulation import deploy as deploy_rounds
from gapless.formulations.flow_shop.tables import Schedule, shop_of, workload_of
from gapless.formulations.hardware import EngineSettings, Platform, ProcessingUnit, UnitKind
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from tests.workload_instances import workload_problem


def unit(name: str, *cores: int) -> ProcessingUnit:
    return ProcessingUnit(name=name, kind=UnitKind.CPU, cores=cores)


BOARD = Platform(
    name="board",
    units=(
        unit("core0", 0),
        unit("core1", 1),
        unit("core2", 2),
        unit("core3", 3),
        unit("little", 0, 1),
        unit("large", 2, 3),
        unit("all", 0, 1, 2, 3),
        ProcessingUnit(name="gpu", kind=UnitKind.GPU),
    ),
)


def on(platform: Platform, able: Collection[str] | None = None) -> Problem:
    """Return a problem of two layers, of which the second runs on some units only."""
    names = platform.unit_names if able is None else able
    second = [1.0 if name in names else None for name in platform.unit_names]
    times: list[list[float | None]] = [[1.0] * len(platform.units), second]
    return table_problem(times, platform.units, network="net")


def labels(found: tuple[TuningCandidate, ...]) -> list[str]:
    return [candidate.label for candidate in found]


def test_baselines_are_each_unit_alone_and_replicas_on_disjoint_units() -> None:
    assert labels(baselines(on(BOARD))) == [
        *(f"serial on {unit.name}" for unit in BOARD.units),
        "replicas on core0+core1+core2+core3",
        "replicas on little+large",
        "replicas on core0+core1+large",
        "replicas on core2+core3+little",
        "replicas on core0+core1+core2+core3+gpu",
        "replicas on all+gpu",
        "replicas on little+large+gpu",
        "replicas on core0+core1+large+gpu",
        "replicas on core2+core3+little+gpu",
    ]


def test_units_that_cannot_run_the_network_are_left_out() -> None:
    found = baselines(on(BOARD, able={"core0", "core1", "little"}))
    assert labels(found) == [
        "serial on core0",
        "serial on core1",
        "serial on little",
        "replicas on core0+core1",
    ]
    assert baselines(on(BOARD, able=set())) == ()


def test_replicas_never_share_a_core_and_stay_few() -> None:
    sizes = (1, 2, 4, 8)
    units = [
        unit(f"c{first}x{size}", *range(first, first + size))
        for size in sizes
        for first in range(0, 16, size)
    ]
    found = baselines(on(Platform(name="many", units=tuple(units))))
    cores = {unit.name: set(unit.cores) for unit in units}
    sets = [candidate.deployment.units for candidate in found if len(candidate.deployment.units) > 1]
    assert len(sets) == len(set(sets)) == MOST_REPLICA_SETS
    for names in sets:
        assert all(cores[a].isdisjoint(cores[b]) for a, b in itertools.combinations(names, 2))
        assert set().union(*(cores[name] for name in names)) == set(range(16))
    assert sets[0] == tuple(f"c{core}x1" for core in range(16))


def test_replicas_are_of_one_engine_each() -> None:
    """Which engine is better on which core is for plans to find out; nobody would try all mixtures."""
    first, second = (EngineSettings(name=name) for name in ("mnn", "onnxruntime"))
    cores = [
        replace(unit(f"core{core}{suffix}", core), engine=engine)
        for engine, suffix in ((first, ""), (second, "@onnxruntime"))
        for core in range(4)
    ]
    gpus = [
        ProcessingUnit(name=f"gpu{suffix}", kind=UnitKind.GPU, engine=engine)
        for engine, suffix in ((first, ""), (second, "@onnxruntime"))
    ]
    found = baselines(on(Platform(name="board", units=(*cores, *gpus))))
    shared = [candidate.deployment.units for candidate in found if len(candidate.deployment.units) > 1]
    names = [f"core{core}" for core in range(4)]
    own = [f"{name}@onnxruntime" for name in names]
    assert sorted(map(sorted, shared)) == sorted(
        [names, [*names, "gpu"], own, sorted([*own, "gpu@onnxruntime"])]
    )


def test_a_plan_on_one_unit_is_the_serial_baseline_measured_once() -> None:
    problem = table_problem([[5, 9], [5, 9]], ["a", "b"], network="net")
    plans = [candidate.plan for candidate in gapless.plan(problem, top=4).candidates]
    proposed = plan_candidates(plans, tables={"isolated": problem, "heavy": problem})
    found = without_duplicates((*proposed, *baselines(problem)))
    assert len(found) == len({candidate.key for candidate in found}) == 5
    alone = next(candidate for candidate in found if "serial on a" in candidate.labels)
    rank = plans.index(Plan(chunks=(Chunk(network="net", start=0, stop=2, unit="a"),))) + 1
    assert alone.labels == (f"plan {rank}", "serial on a")
    assert alone.label == f"plan {rank} = serial on a"
    assert alone.kind is CandidateKind.BASELINE
    assert alone.rank == rank
    assert alone.predicted("heavy") == 10_000
    assert alone.predicted("other") is None


def test_the_order_of_merging_does_not_matter_for_what_is_known() -> None:
    problem = table_problem([[5]], ["a"], network="net")
    plan = Plan(chunks=(Chunk(network="net", start=0, stop=1, unit="a"),))
    ours, theirs = plan_candidates([plan], tables={"t": problem}), baselines(problem)
    (one,), (other,) = without_duplicates(ours + theirs), without_duplicates(theirs + ours)
    assert (one.kind, one.rank, one.predicted_us) == (other.kind, other.rank, other.predicted_us)
    assert one.deployment == deploy(plan)


def test_baselines_of_a_workload_cut_nothing() -> None:
    problem = workload_problem({"x": [[4, 9], [4, 9]], "y": [[6, 5], [6, 5]]}, ["x", "y", "x", "y"])
    found = baselines(problem)
    assert labels(found) == ["serial on npu", "serial on big", "whole requests on npu+big"]
    plans = [candidate.deployment.plan for candidate in found]
    assert [str(plan) for plan in plans] == [
        "x0: 0-1 npu; y1: 0-1 npu; x2: 0-1 npu; y3: 0-1 npu",
        "x0: 0-1 big; y1: 0-1 big; x2: 0-1 big; y3: 0-1 big",
        "x0: 0-1 npu; y1: 0-1 big; x2: 0-1 npu; y3: 0-1 big",
    ]
    assert [predicted_us(problem, plan) for plan in plans if plan] == [40, 56, 20]


def test_whole_requests_go_to_units_that_can_run_them_and_share_no_core() -> None:
    problem = workload_problem({"x": [[4, 9, 5, 1], [4, 9, 5, None]]}, ["x", "x"])
    units = (unit("npu", 0), unit("big", 1), unit("gpu", 0, 1), unit("little", 2))
    board = replace(problem, platform=replace(problem.platform, units=units))
    assert labels(baselines(board)) == [
        "serial on npu",
        "serial on big",
        "serial on gpu",
        "whole requests on npu+big",
    ]


def test_plans_for_a_workload_are_predicted_by_their_makespan_or_period() -> None:
    problem = workload_problem({"x": [[4, 9], [4, 3]]}, ["x", "x"])
    stream = replace(problem, data=replace(workload_of(problem), mode=Mode.STREAM))
    plan = shop_of(problem).plan(Schedule((0, 1), ((0, 1, 2), (0, 1, 2))))
    for asked, right_us in ((problem, 4 + 4 + 3), (stream, 4 + 4)):
        (found,) = plan_candidates([plan], tables={"table": asked})
        assert found.predicted_us == (("table", right_us),)
        assert found.deployment == deploy_rounds(plan, workload_of(asked))


def test_plans_of_several_pipelines_are_what_replicas_are() -> None:
    problem = table_problem({"a": [4, 5], "b": [6, 3]}, units=["x", "y"], network="net")
    again, rival = operation_of(problem).rivals(problem)
    assert gapless.plan(again).plan is None, "two layers never come back"
    plans = [candidate.plan for candidate in gapless.plan(rival, top=3).candidates]
    planned = plan_candidates(plans, tables={"heavy": problem}, planned=rival)
    found = without_duplicates([*planned, *baselines(problem)])
    assert all(len(plan.order) >= 2 for plan in plans)
    both = next(one for one in found if len(one.labels) > 1)
    assert both.labels == ("plan 1", "replicas on x+y")
    assert (both.kind, both.rank) == (CandidateKind.BASELINE, 1)

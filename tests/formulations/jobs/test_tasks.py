"""What schedules of layers are worth, and what they break: worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.formulations.errors import InvalidProblemError, MalformedPlanError
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.jobs.reach import Reach
from gapless.formulations.jobs.tasks import ScheduleValues, tables_of
from gapless.formulations.judge import check, score
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem


def diamond(**more: object) -> Problem:
    """Return a -> b, c -> d on two units; b and c are independent, and the gpu cannot run d."""
    return gapless.graphs.latency_graph(
        {"a": [1, 2], "b": [2, 3], "c": [3, 4], "d": [None, 4]},
        [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
        ["gpu", "npu"],
        transfers_ms={"a": 0.5, "b": {("gpu", "npu"): 0.1}, "c": {("gpu", "npu"): 0.3, ("npu", "gpu"): 9}},
        network="net",
        **more,  # type: ignore[arg-type]
    )


def plan_of(units: str, order: str = "abcd") -> Plan:
    """Return the plan with a unit for each layer, g or n, and an order."""
    full = {"g": "gpu", "n": "npu"}
    chunks = (Chunk(network="net", start=i, stop=i + 1, unit=full[u]) for i, u in enumerate(units))
    return Plan(chunks=tuple(chunks), order=tuple(order))


def starts(problem: Problem, plan: Plan) -> list[int]:
    """Return when each layer starts."""
    tables = tables_of(problem)
    code = problem.formulation.code(problem, plan)
    return list(ScheduleValues(tables, code).start_us)


def test_branches_run_side_by_side_and_wait_for_tensors() -> None:
    problem = diamond()
    plan = plan_of("gngn")
    # a to 1000 on the gpu; b on the npu from 1500 to 4500; c on the gpu from 1000 to 4000, there at 4300.
    assert starts(problem, plan) == [0, 1500, 1000, 4500]
    judged = score(problem, plan)
    assert judged.value("latency") == 8500
    assert (judged.value("work"), judged.value("units")) == (1000 + 3000 + 3000 + 4000, 2)
    assert judged.columns["busy_us"] == (4000, 7000)
    assert judged.valid


def test_a_unit_runs_one_layer_at_a_time_in_the_order_of_the_plan() -> None:
    problem = diamond()
    assert starts(problem, plan_of("gggn", "abcd")) == [0, 1000, 3000, 6300]
    assert starts(problem, plan_of("gggn", "acbd")) == [0, 4000, 1000, 6100]


def test_equal_schedules_are_equal_plans() -> None:
    problem = diamond()
    formulation = problem.formulation
    one, other = (formulation.code(problem, plan_of("gngn", order)) for order in ("abcd", "acbd"))
    assert one == other
    assert formulation.plan(problem, one).order == ("a", "c", "b", "d")
    assert formulation.code(problem, formulation.plan(problem, one)) == one


def test_the_canonical_order_is_by_units_then_by_starts() -> None:
    problem = diamond()
    found = list(problem.formulation.codes(problem))
    ordered = sorted(found, key=lambda code: problem.formulation.key(problem, code))
    assert ordered == sorted(found, key=lambda code: (code.units, code.order))
    assert len({code.units for code in found}) < len(found)


def test_units_that_share_cores_take_turns() -> None:
    problem = diamond()
    both = tuple(replace(unit, cores=(0,)) for unit in problem.platform.units)
    shared = replace(problem, platform=replace(problem.platform, units=both))
    assert starts(shared, plan_of("gngn", "abcd")) == [0, 1500, 4500, 7800]
    assert check(shared, plan_of("gngn")) == ()


def test_turns_are_the_largest_sets_of_units_that_exclude_each_other() -> None:
    units = [
        ProcessingUnit(name="both", cores=(0, 1)),
        ProcessingUnit(name="one", cores=(0,)),
        ProcessingUnit(name="other", cores=(1,)),
        ProcessingUnit(name="third", cores=(2,)),
    ]
    problem = gapless.graphs.latency_graph({"a": [1, 2, 2, 3]}, [], units)
    assert sorted(tables_of(problem).turns) == [(0, 1), (0, 2), (3,)]


def with_outside() -> Problem:
    """Return the problem in which a and b read from outside, and c leaves to it."""
    problem = diamond()
    network = problem.network
    tensors = (
        *(replace(t, targets=(*t.targets, 4)) if t.name == "c" else t for t in network.tensors),
        replace(network.tensors[0], name="x", source=-1, targets=(0, 1)),
    )
    outside = ((0, 0), (0, 0), (5000, 6000), (100, 200))
    data = replace(problem.data, transfer_us=(*problem.data.transfer_us, ((0, 0),) * 2), outside_us=outside)
    return replace(problem, networks=(replace(network, tensors=tensors),), data=data)


def test_tensors_from_and_to_the_outside_take_time() -> None:
    problem = with_outside()
    # Everything is 100 later; c leaves the gpu at 4100 + 5000, later than d ends.
    assert starts(problem, plan_of("gngn")) == [100, 1600, 1100, 4600]
    assert score(problem, plan_of("gngn")).value("latency") == 9100


def test_segments_are_one_task() -> None:
    problem = diamond()
    joined = replace(problem, data=replace(problem.data, segments=((0, 2),)))
    # What a makes is there when c is done, too.
    assert starts(joined, plan_of("gngn", "acbd")) == [0, 4500, 7500]
    with pytest.raises(MalformedPlanError, match="not one after the other"):
        score(joined, plan_of("gngn", "abcd"))
    with pytest.raises(MalformedPlanError, match=r"one segment, but are on 'gpu', 'npu'"):
        score(joined, plan_of("ggnn", "acbd"))


def test_what_plans_break() -> None:
    assert [v.rule for v in check(diamond(), plan_of("gngg"))] == ["support"]
    problem = diamond(sizes={"a": 10, "b": 20, "c": 30})
    gpu, npu = problem.platform.units
    units = (replace(gpu, memory_bytes=29), npu)
    small = replace(problem, platform=replace(problem.platform, units=units))
    assert [v.rule for v in check(small, plan_of("ggnn"))] == ["unit_memory"]
    assert check(small, plan_of("gnnn")) == ()
    assert [v.rule for v in check(small.with_limits(max_latency_us=8000), plan_of("gnnn"))] == [
        "max_latency_us"
    ]


def test_malformed_plans_say_what_is_wrong() -> None:
    gap = Plan(chunks=(Chunk(network="net", start=0, stop=3, unit="gpu"),), order=tuple("abcd"))
    assert [v.rule for v in check(diamond(), gap)] == ["coverage"]
    strange = Plan(chunks=(Chunk(network="net", start=0, stop=4, unit="tpu"),), order=tuple("abcd"))
    assert [v.rule for v in check(diamond(), strange)] == ["names"]
    assert [v.rule for v in check(diamond(), plan_of("gngn", "bacd"))] == ["order"]
    assert [v.rule for v in check(diamond(), plan_of("gngn", "abc"))] == ["order"]


def test_paths_are_at_most_what_plans_take() -> None:
    problem = diamond()
    reach = Reach(tables=tables_of(problem))
    assert reach.longest_us == 8300  # a and c on the gpu, 0.3 ms, d on the npu
    assert reach.first_us[3] == [4000, 4300]
    assert reach.rest_us[2] == [4300, 4000]
    assert gapless.plan(problem, backend="exhaustive").objective == 8500


def test_a_task_is_behind_all_that_it_needs() -> None:
    assert tables_of(diamond()).behind == (0, 0b1, 0b1, 0b111)


def test_problem_files_come_back() -> None:
    problem = diamond()
    assert parse_problem(dump_problem(problem).encode(), name="problem.json") == problem


def test_defects_are_named() -> None:
    with pytest.raises(InvalidProblemError, match="circle"):
        gapless.graphs.latency_graph({"a": [1], "b": [1]}, [("a", "b"), ("b", "a")], ["x"])
    with pytest.raises(InvalidProblemError, match="takes 0 ms"):
        gapless.graphs.latency_graph({"a": [0]}, [], ["x"])
    with pytest.raises(InvalidProblemError, match=r"\('x', 'z'\); pairs are of x"):
        gapless.graphs.latency_graph({"a": [1]}, [], ["x"], transfers_ms={"a": {("x", "z"): 1}})
    with pytest.raises(InvalidProblemError, match="'z', which is no layer"):
        gapless.graphs.latency_graph({"a": [1]}, [], ["x"], sizes={"z": 1})
    problem = diamond()
    with pytest.raises(InvalidProblemError, match=r"segments name 7"):
        replace(problem, data=replace(problem.data, segments=((0, 7),)))
    with pytest.raises(InvalidProblemError, match=r"transfer_us has 1 rows for 3 tensors"):
        replace(problem, data=replace(problem.data, transfer_us=(((0, 1), (1, 0)),)))
    with pytest.raises(InvalidProblemError, match=r"not 2 by 2"):
        replace(problem, data=replace(problem.data, transfer_us=(((0, 1),),) * 3))
    with pytest.raises(InvalidProblemError, match=r"a unit to itself has 0"):
        replace(problem.data, transfer_us=(((1, 1), (1, 0)),))

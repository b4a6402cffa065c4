"""What convex parts are worth, and what they break: worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.formulations.errors import InvalidProblemError, MalformedPlanError
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.judge import check, score
from gapless.formulations.partition.tables import chain_of, graph_of
from gapless.formulations.partitions import Partition
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.task_graphs import TaskGraph


def diamond(**more: object) -> Problem:
    """Return a -> b, c -> d on two units and a host that sends at no cost; b and c are independent."""
    return gapless.graphs.layer_graph(
        {"a": [1, 2, 9], "b": [2, 3, 9], "c": [3, 4, 9], "d": [4, None, 9]},
        [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")],
        ["gpu", "npu", "host"],
        transfers_ms={"a": [0.5, 0.6, 0], "b": [0.1, 0.2, 0], "c": [0.3, 0.4, 0]},
        network="net",
        **more,  # type: ignore[arg-type]
    )


def plan_of(units: str, names: dict[str, str] | None = None) -> Plan:
    """Return the plan with a unit for each layer: g, n or h."""
    full = names or {"g": "gpu", "n": "npu", "h": "host"}
    chunks = (Chunk(network="net", start=i, stop=i + 1, unit=full[u]) for i, u in enumerate(units))
    return Plan(chunks=tuple(chunks))


def test_a_tensor_is_paid_once_by_each_part_that_holds_some_of_its_ends() -> None:
    judged = score(diamond(), plan_of("gnnh"))
    # gpu: a, which it sends. npu: b and c; receives a once for both, sends b and c. The host pays nothing.
    assert judged.columns["busy_us"] == (1000 + 500, 3000 + 4000 + 600 + 200 + 400, 9000)
    assert judged.columns["transfer_us"] == (500, 1200, 0)
    assert (judged.value("period"), judged.value("transfers"), judged.value("units")) == (9000, 1700, 3)
    assert judged.valid


def test_all_ends_in_one_part_cost_nothing() -> None:
    judged = score(diamond(), plan_of("gggg"))
    assert (judged.value("period"), judged.value("transfers")) == (10_000, 0)


def test_parts_that_wait_for_each_other_have_no_score() -> None:
    with pytest.raises(MalformedPlanError, match=r"not convex.*'gpu' needs|not convex.*'npu' needs"):
        score(diamond(), plan_of("gnng"))


def test_parts_side_by_side_are_an_order() -> None:
    problem = diamond()
    code = problem.formulation.code(problem, plan_of("gnhh"))
    assert chain_of(graph_of(problem), code) == (0, 1, 2)
    assert problem.formulation.plan(problem, code).chunks[-1].stop == 4


def test_what_plans_break() -> None:
    assert [v.rule for v in check(diamond(), plan_of("gggn"))] == ["support"]
    assert [v.rule for v in check(diamond(colours={"a": 1, "d": 1}), plan_of("gggh"))] == ["colour"]
    problem = diamond(sizes={"a": 10, "b": 20, "c": 30})
    gpu, *others = problem.platform.units
    small = replace(
        problem, platform=replace(problem.platform, units=(replace(gpu, memory_bytes=29), *others))
    )
    assert [v.rule for v in check(small, plan_of("gghh"))] == ["unit_memory"]
    assert check(small, plan_of("ghhh")) == ()
    assert [v.rule for v in check(small.with_limits(max_units=1), plan_of("ghhh"))] == ["max_units"]
    assert [v.rule for v in check(problem.with_limits(max_unit_memory_bytes=30), plan_of("ghhh"))] == [
        "unit_memory",
        "max_unit_memory_bytes",
    ]


def test_malformed_plans_say_what_is_wrong() -> None:
    gap = Plan(chunks=(Chunk(network="net", start=0, stop=3, unit="gpu"),))
    assert [v.rule for v in check(diamond(), gap)] == ["coverage"]
    assert [v.rule for v in check(diamond(), plan_of("gggx", {"g": "gpu", "x": "tpu"}))] == ["names"]


def test_the_backward_pass_runs_the_other_way_round() -> None:
    problem = gapless.graphs.layer_graph(
        {"f": [3, 3], "g": [3, 3], "g'": [4, 4], "f'": [4, 4]},
        [("f", "g"), ("g", "g'"), ("g'", "f'"), ("f", "g'")],
        ["one", "two"],
        colours={"f": 1, "f'": 1, "g": 2, "g'": 2},
        backward=("f'", "g'"),
    )
    found = gapless.plan(problem, backend="exhaustive")
    assert found.objective == 7000
    assert graph_of(problem).blocks.count == 2


def test_layers_without_time_take_none() -> None:
    problem = gapless.graphs.layer_graph(
        {"w": [0, 0], "a": [2, 3]}, [("w", "a")], ["x", "y"], transfers_ms={"w": 1}
    )
    assert gapless.plan(problem).objective == 2000
    assert graph_of(problem).blocks.count == 2
    assert graph_of(problem).condensed.blocks.count == 1


def test_condensed_graphs_keep_apart_what_memory_may_need_apart() -> None:
    unit = gapless.graphs.layer_graph(
        {"w": [0, 0], "a": [2, 3]}, [("w", "a")], ["x", "y"], sizes={"w": 5, "a": 5}
    )
    units = tuple(replace(each, memory_bytes=7) for each in unit.platform.units)
    tight = replace(unit, platform=replace(unit.platform, units=units))
    assert graph_of(tight).condensed is graph_of(tight)


def test_defects_are_named() -> None:
    with pytest.raises(InvalidProblemError, match="circle"):
        gapless.graphs.layer_graph({"a": [1], "b": [1]}, [("a", "b"), ("b", "a")], ["x"])
    with pytest.raises(InvalidProblemError, match="'z', which is no layer"):
        gapless.graphs.layer_graph({"a": [1]}, [], ["x"], sizes={"z": 1})
    with pytest.raises(InvalidProblemError, match="not there"):
        gapless.graphs.layer_graph({"a": [1]}, [("a", "z")], ["x"])
    with pytest.raises(InvalidProblemError, match="-1 ms"):
        gapless.graphs.layer_graph({"a": [-1]}, [], ["x"])
    problem = diamond()
    with pytest.raises(InvalidProblemError, match=r"colours\[1\] is empty"):
        Partition(colours=((0,), ()))
    with pytest.raises(InvalidProblemError, match=r"segments\[0\] is empty"):
        TaskGraph(segments=((),))
    with pytest.raises(InvalidProblemError, match=r"colours names 7"):
        replace(problem, data=replace(problem.data, colours=((0, 7),)))
    with pytest.raises(InvalidProblemError, match=r"tensor_us has 1 rows"):
        replace(problem, data=replace(problem.data, tensor_us=((1, 1, 1),)))
    with pytest.raises(InvalidProblemError, match=r"backward layer 0"):
        replace(problem, data=replace(problem.data, backward=(0,)))


def test_files_come_back() -> None:
    problem = diamond(colours={"a": 1, "b": 1})
    assert parse_problem(dump_problem(problem).encode(), name="file") == problem

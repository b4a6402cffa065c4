"""Each formulation says which plans it looks at, and that is what its plans are: all of these, no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

import gapless
from gapless.formulations.branches import is_line, order_words
from gapless.formulations.deployment import Mode
from gapless.formulations.groups import GraphOptimum
from gapless.formulations.network import Network, Tensor
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.registry import formulation_named, formulation_names
from gapless.formulations.schedules import SectionBorders
from gapless.formulations.workload import Execution, RequestOrder
from gapless.solvers.protocol import SolveStatus
from gapless.solvers.samples import golden_instances

GOLDEN = {golden.name: golden.problem for golden in golden_instances()}

CLASSES = {
    "transfer_cost": "plans with at most one chunk per unit",
    "npu_lacks_the_middle": "plans with any number of chunks per unit",
    "workload_slowdown": "plans in which every request passes the units once, in the order npu, cpu, and all "
    "units serve them in the given order, as soon as they can",
    "workload_johnson": "plans in which every request passes the units once, in the order npu, cpu, and all "
    "units serve them in one order, as soon as they can",
    "jobs_each_unit_has_its_order": "schedules whose chunks start as soon as order and units allow, which "
    "cut requests only where other units can run the layers",
    "parts_follow_the_branches": "plans of convex parts, at most one per unit",
    "pipelines_side_by_side": "plans of pipelines side by side, at most one chunk per device",
    "groups_split_a_map": "plans of one line of groups, cut between the given pieces, each device in "
    "at most one",
    "branches_side_by_side": "plans in which every layer runs once, whole on one unit, as early as their "
    "order allows",
}


def plans(problem: Problem) -> Iterator[Plan]:
    formulation = problem.formulation
    return (formulation.plan(problem, code) for code in formulation.codes(problem))


def of_requests(plan: Plan) -> dict[str | None, list[Chunk]]:
    found: dict[str | None, list[Chunk]] = {}
    for chunk in sorted(plan.chunks, key=lambda chunk: chunk.start):
        found.setdefault(chunk.request, []).append(chunk)
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_the_class_of_each_formulation(name: str) -> None:
    problem = GOLDEN[name]
    assert problem.plan_class == CLASSES[name]
    assert gapless.plan(problem).plan_class == CLASSES[name]


def test_every_formulation_is_asked() -> None:
    assert {GOLDEN[name].formulation.name for name in CLASSES} == set(formulation_names())


def test_chunks_take_the_units_in_any_order_and_each_once() -> None:
    problem = gapless.table_problem({"a": [1, 2, 3], "b": [3, 2, 1], "c": [2, 2, 2]}, units=["u", "v", "w"])
    seen = [[chunk.unit for chunk in plan.chunks] for plan in plans(problem)]
    assert all(len(set(units)) == len(units) for units in seen)
    assert ["w", "u", "v"] in seen


def test_requests_of_a_workload_take_the_units_in_the_order_that_is_said() -> None:
    problem = GOLDEN["workload_johnson"]
    at = {unit: place for place, unit in enumerate(problem.platform.unit_names)}
    for plan in plans(problem):
        for chunks in of_requests(plan).values():
            assert all(at[one.unit] < at[other.unit] for one, other in pairwise(chunks))


def test_single_requests_come_back_to_a_unit_but_are_cut_at_sections_only() -> None:
    table = gapless.table_problem(
        {"a": [1, None], "b": [1, 1], "c": [1, 1], "d": [None, 1], "e": [1, None]}, units=["u", "v"]
    )
    network = table.network.name
    jobs = gapless.formulations.schedules.Jobs(
        requests=(gapless.formulations.schedules.JobRequest(name="r", network=network),)
    )
    problem = replace(table, data=jobs, objective=gapless.Objective.parse("makespan"))
    cuts = {chunk.start for plan in plans(problem) for chunk in plan.chunks}
    assert cuts == {0, 1, 3, 4}
    assert any([c.unit for c in plan.chunks] == ["u", "v", "u"] for plan in plans(problem))
    bordered = replace(problem, data=replace(jobs, borders=(SectionBorders(network=network, cuts=(2,)),)))
    assert 2 in {chunk.start for plan in plans(bordered) for chunk in plan.chunks}
    assert "or at the given borders" in bordered.plan_class


def test_pipelines_are_as_many_as_are_said_and_share_no_device() -> None:
    problem = GOLDEN["pipelines_side_by_side"]
    one = replace(problem, data=replace(problem.data, most=1))
    assert one.plan_class == "plans of one pipeline, at most one chunk per device"
    assert replace(problem, data=replace(problem.data, most=2)).plan_class.startswith("plans of at most 2 ")
    for plan in plans(one):
        assert len({chunk.request for chunk in plan.chunks}) == 1
    for plan in plans(problem):
        units = [chunk.unit for chunk in plan.chunks]
        assert len(set(units)) == len(units)


def test_what_a_workload_asks_is_part_of_its_class() -> None:
    problem = GOLDEN["workload_johnson"]
    columns = replace(problem, data=replace(problem.data, execution=Execution.COLUMNS))
    assert columns.plan_class.endswith("serve them in one order, in columns")
    stream = replace(problem, data=replace(problem.data, mode=Mode.STREAM))
    assert stream.plan_class.endswith("alike in every round")
    fixed = replace(problem, data=replace(problem.data, order=RequestOrder.FIXED))
    assert "serve them in the given order" in fixed.plan_class
    alone = replace(problem, data=replace(problem.data, requests=problem.data.requests[:1]))
    assert alone.plan_class.endswith("passes the units once, in the order npu, cpu")


def test_groups_say_where_they_are_cut_and_how_large_they_are() -> None:
    problem = GOLDEN["groups_split_a_map"]
    found = GraphOptimum(sets=12, period_us=1, given_pieces_us=1)
    graph = replace(problem, data=replace(problem.data, over_graph=found, most_group=1))
    assert graph.plan_class == (
        "plans of one line of groups of at most 1 device, cut between the chunks that are best over 12 "
        "down-sets, each device in at most one"
    )


def branched(*edges: tuple[int, int]) -> Network:
    line = gapless.table_problem({"a": [1], "b": [1], "c": [1]}, units=["u"]).network
    tensors = (
        Tensor(name=f"t{index}", source=source, targets=(target,), bytes=1)
        for index, (source, target) in enumerate(edges)
    )
    return replace(line, tensors=tuple(tensors))


@pytest.mark.parametrize(
    ("edges", "line"), [((), True), (((0, 1), (1, 2)), True), (((0, 1), (0, 2)), False), (((0, 2),), False)]
)
def test_the_order_of_the_layers_is_named_where_there_are_others(
    edges: tuple[tuple[int, int], ...], line: bool
) -> None:
    network = branched(*edges)
    assert is_line(network) == line
    assert order_words([network]) == ("" if line else ", in the given order of the layers")


def test_a_plan_in_another_order_of_the_units_is_another_problem() -> None:
    """The answer names its order: with the units listed the other way round there is a plan."""

    def asked(*units: str) -> Problem:
        times = {"npu": [None, 3], "cpu": [10, None]}
        rows = {layer: [times[unit][place] for unit in units] for place, layer in enumerate(("d1", "d0"))}
        table = gapless.table_problem(dict(reversed(rows.items())), units=list(units), network="detector")
        return gapless.with_workload(table, "detector")

    none = gapless.plan(asked("cpu", "npu"))
    assert none.status is SolveStatus.INFEASIBLE
    assert none.plan_class.endswith("in the order cpu, npu")
    found = gapless.plan(asked("npu", "cpu"))
    assert (found.status, found.objective) == (SolveStatus.OPTIMAL, 13_000)
    assert found.plan_class.endswith("in the order npu, cpu")


def test_what_lies_outside_is_said_where_there_is_something() -> None:
    workload = GOLDEN["workload_johnson"]
    assert "Another order of the units" in workload.formulation.outside(workload)
    alone = gapless.with_workload(gapless.table_problem({"a": [1]}, units=["u"], network="n"), "n")
    assert alone.formulation.outside(alone) == ""
    for name in formulation_names():
        assert formulation_named(name).label

"""Workloads and problems that hold one: what is valid, what is refused, and how plans are read."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.costs import Interference, NetworkContention
from gapless.formulations.deployment import Mode
from gapless.formulations.errors import InvalidInputError, InvalidPlanError, InvalidProblemError
from gapless.formulations.files import dump_plan, load_plan
from gapless.formulations.flow_shop.formulation import WorkloadFeature, deploy
from gapless.formulations.flow_shop.tables import Schedule, shop_of, workload_of
from gapless.formulations.flow_shop.values import WorkloadValues
from gapless.formulations.judge import check, rank_key, score
from gapless.formulations.losses import MOST_LOSS_PERMILLE
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.play import Run
from gapless.formulations.problem import Feature, Problem
from gapless.formulations.shares import unit_shares
from gapless.formulations.simulate import simulate
from gapless.formulations.terms import Objective
from gapless.formulations.workload import Execution, LoadPolicy, Request, RequestOrder, Workload
from gapless.solvers.exhaustive import all_plans, count_plans
from tests.workload_instances import workload_problem, workload_problems

A = Request(name="a", network="net")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Workload(requests=()), "requests are missing"),
        (lambda: Workload(requests=(A, A)), "request names must be unique"),
        (lambda: Workload(requests=(A,), task_slots=0), "task_slots is 0"),
        (lambda: Request(name="", network="net"), "name is empty"),
        (lambda: replace(A, deadline_us=0), "deadline_us is 0"),
        (
            lambda: Workload(requests=(replace(A, arrival_us=3),), execution=Execution.COLUMNS),
            "columns start together",
        ),
        (lambda: Workload(requests=(A,), task_slots=1, execution=Execution.COLUMNS), "no task slots"),
        (lambda: Workload(requests=(replace(A, deadline_us=3),), mode=Mode.STREAM), "a stream has no"),
        (
            lambda: Interference(units=("u", "v"), slowdown_permille=((0, 1), (1, 5))),
            "a unit does not slow itself down",
        ),
        (lambda: Interference(units=("u", "v"), slowdown_permille=((0, 1),)), "has 1 rows, needs 2"),
        (lambda: NetworkContention(network="n", intensity_permille=-1), "intensity_permille is -1"),
    ],
)
def test_what_makes_no_sense_is_refused(make: object, words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words):
        make()  # type: ignore[operator]


PROBLEM = workload_problem({"a": [[10, 20], [30, None]], "b": [[5, 9]]}, ["a", "b"])


def test_a_problem_checks_its_workload() -> None:
    stranger = Workload(requests=(Request(name="x", network="zoo"),))
    with pytest.raises(InvalidProblemError, match="is of network 'zoo', the problem has"):
        replace(PROBLEM, data=stranger)
    with pytest.raises(InvalidProblemError, match="'makespan' means nothing for problems without"):
        replace(PROBLEM, data=None)
    with pytest.raises(InvalidProblemError, match="'paper_gapness' means nothing for problems with a"):
        PROBLEM.with_objective(Objective.paper())
    other = Interference(units=("x",), slowdown_permille=((0,),))
    with pytest.raises(InvalidProblemError, match="the interference is for the units"):
        replace(PROBLEM, interference=other)


def test_features_say_what_is_asked() -> None:
    assert {WorkloadFeature.FREE_ORDER, Feature.UNSUPPORTED_LAYERS} == PROBLEM.features
    served = Workload(
        requests=(
            Request(name="a0", network="a", deadline_us=99),
            Request(name="b1", network="b", arrival_us=4),
        ),
        order=RequestOrder.FIXED,
        load_policy=LoadPolicy.RUNNING,
        task_slots=1,
    )
    board = replace(PROBLEM.platform, memory_bytes=10**6)
    asked = replace(PROBLEM, data=served, platform=board).features
    assert asked == {
        Feature.UNSUPPORTED_LAYERS,
        WorkloadFeature.DEADLINES,
        WorkloadFeature.ARRIVALS,
        WorkloadFeature.TASK_SLOTS,
        WorkloadFeature.RUNNING_WEIGHTS,
        Feature.DEVICE_MEMORY,
    }


def chunk(request: str, start: int, stop: int, unit: str, network: str = "a") -> Chunk:
    return Chunk(request=request, network=network, start=start, stop=stop, unit=unit)


B = chunk("b1", 0, 1, "big", "b")


@pytest.mark.parametrize(
    ("chunks", "order", "rule"),
    [
        ((chunk("a0", 0, 2, "npu"), B), ("a0",), "names"),
        ((chunk("a0", 0, 2, "npu"), B, chunk("c", 0, 2, "npu")), ("a0", "b1"), "names"),
        ((chunk("a0", 0, 2, "gpu"), B), ("a0", "b1"), "names"),
        ((chunk("a0", 0, 2, "npu", "b"), B), ("a0", "b1"), "names"),
        ((chunk("a0", 0, 1, "npu"), B), ("a0", "b1"), "coverage"),
        ((chunk("a0", 1, 2, "npu"), B), ("a0", "b1"), "coverage"),
        ((B,), ("a0", "b1"), "coverage"),
        ((chunk("a0", 0, 9, "npu"), B), ("a0", "b1"), "coverage"),
        ((chunk("a0", 0, 1, "big"), chunk("a0", 1, 2, "npu"), B), ("a0", "b1"), "unit_order"),
        ((chunk("a0", 0, 1, "npu"), chunk("a0", 1, 2, "big"), B), ("a0", "b1"), "support"),
    ],
)
def test_malformed_plans_are_told_apart(chunks: tuple[Chunk, ...], order: tuple[str, ...], rule: str) -> None:
    plan = Plan(chunks=chunks, order=order)
    assert rule in {violation.rule for violation in check(PROBLEM, plan)}
    with pytest.raises(InvalidPlanError):
        score(PROBLEM, plan)


def test_chunks_end_where_cuts_are_allowed() -> None:
    network = replace(PROBLEM.networks[0], forbidden_cuts=(1,))
    problem = replace(PROBLEM, networks=(network, PROBLEM.networks[1]))
    plan = Plan(chunks=(chunk("a0", 0, 1, "npu"), chunk("a0", 1, 2, "npu"), B), order=("a0", "b1"))
    assert {violation.rule for violation in check(problem, plan)} == {"unit_order"}
    able = replace(problem, costs=workload_problem({"a": [[1, 2], [3, 4]], "b": [[5, 9]]}, ["a"]).costs)
    plan = replace(plan, chunks=(chunk("a0", 0, 1, "npu"), chunk("a0", 1, 2, "big"), B))
    (found,) = score(able, plan).violations
    assert found.rule == "cut"
    assert "chunk [0, 1) on 'npu' ends where no cut is allowed" in found.message


@pytest.mark.slow
@given(problem=workload_problems(), data=st.data())
def test_plans_are_schedules_and_back(problem: Problem, data: st.DataObject) -> None:
    shop = shop_of(problem)
    plans = [plan for plan, _ in zip(all_plans(problem), range(60), strict=False)]
    if not plans:
        return
    plan = data.draw(st.sampled_from(plans))
    assert shop.plan(shop.schedule(plan)) == plan
    assert len(set(plans)) == len(plans) <= count_plans(problem)
    judged = score(problem, plan)
    assert judged.makespan_us >= max(busy or 0 for busy in judged.busy_us)
    assert rank_key(problem, judged)[0] == judged.values(problem.objective.terms)


@pytest.mark.slow
@given(problem=workload_problems())
def test_a_pair_loses_what_is_printed_for_it(problem: Problem) -> None:
    shop, known = shop_of(problem), problem.interference
    names = [chain.network for chain in shop.chains]
    for a, u, b, v in product(*map(range, (len(names), shop.unit_count) * 2)):
        slowdown = 0 if known is None or u == v else known.slowdown_of(names[a], u, names[b], v)
        printed = round(1000 * slowdown / (1000 + slowdown))
        for table in (shop.losses.least_permille, shop.losses.most_permille):
            assert table[a][u][b][v] == min(printed, MOST_LOSS_PERMILLE)


_SLOWDOWNS = st.sampled_from([0, 100, 900, 3000, 100_000])


@given(
    slowdown=st.lists(st.lists(_SLOWDOWNS, min_size=4, max_size=4), min_size=4, max_size=4),
    listed=st.integers(0, 3),
    times=st.lists(st.integers(1, 9000), min_size=2, max_size=2),
    execution=st.sampled_from(Execution),
)
def test_what_never_meets_a_pair_does_not_change_it(
    slowdown: list[list[int]], listed: int, times: list[int], execution: Execution
) -> None:
    """Requests that come later, of networks that slow others down most, and units that nothing uses."""
    tables: dict[str, list[list[int | None]]] = {name: [[*times, 9, 9]] for name in "abcde"}
    table = [[0 if u == v else each for v, each in enumerate(row)] for u, row in enumerate(slowdown)]

    def played(others: str) -> list[Run]:
        problem = workload_problem(
            tables, ["a", "b", *others], slowdown=table, high=tuple("cde"), workload=ordered
        )
        cuts = [(0, 0, 1, 1, 1), (0, 1, 1, 1, 1), *((0, 1, 1, 1, 1) for _ in others)]
        workload = workload_of(problem)
        requests = tuple(
            replace(request, arrival_us=100_000 if index > 1 and execution is Execution.ASYNCHRONOUS else 0)
            for index, request in enumerate(workload.requests)
        )
        shop = shop_of(replace(problem, data=replace(workload, requests=requests)))
        runs = WorkloadValues(shop, Schedule(tuple(range(len(cuts))), tuple(cuts))).runs
        return [run for run in runs if run.request < 2]

    ordered = Workload(
        requests=(Request(name="r", network="a"),), order=RequestOrder.FIXED, execution=execution
    )
    assert played("cde"[:listed]) == played("")


def test_a_pair_beside_each_other_whatever_else_is_listed() -> None:
    """Scaled down by company that never meets, both ended at 11,049 us with c listed, and at 12,799 alone."""
    tables: dict[str, list[list[int | None]]] = {name: [[8000, 8000, 8000]] for name in "abc"}
    table = [[0 if u == v else 900 for v in range(3)] for u in range(3)]
    for others in ("", "c"):
        problem = workload_problem(tables, ["a", "b", *others], slowdown=table, high=("c",))
        cuts = ((0, 1, 1, 1), (0, 0, 1, 1), *((0, 1, 1, 1) for _ in others))
        values = WorkloadValues(shop_of(problem), Schedule(tuple(range(len(cuts))), cuts))
        assert [run.end_us for run in values.runs[:2]] == [15_208, 15_208]


def test_three_at_once_lose_at_most_the_cap() -> None:
    """Two thirds of the speed go to each other one: a third is left beside one, a quarter beside two."""
    rows: list[list[int | None]] = [[100_000, 100_000, 100_000]]
    table = [[0 if u == v else 2000 for v in range(3)] for u in range(3)]
    problem = workload_problem({"a": rows}, ["a", "a", "a"], slowdown=table)
    three = ((0, 1, 1, 1), (0, 0, 1, 1), (0, 0, 0, 1))
    values = WorkloadValues(shop_of(problem), Schedule((0, 1, 2), three))
    assert [run.end_us for run in values.runs] == pytest.approx([400_000, 400_000, 400_000], abs=10)
    two = ((0, 1, 1, 1), (0, 0, 1, 1), (0, 0, 1, 1))
    values = WorkloadValues(shop_of(problem), Schedule((0, 1, 2), two))
    assert [run.end_us for run in values.runs] == pytest.approx([300_300, 300_300, 400_300], abs=10)


def test_plan_files_keep_order_requests_and_origin(tmp_path: object) -> None:
    plan = Plan(chunks=(chunk("a0", 0, 2, "npu"), B), order=("b1", "a0"))
    path = f"{tmp_path}/plan.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write(dump_plan(plan, PROBLEM, {"workload": "a,b", "platform": "board"}))
    assert load_plan(path) == plan
    assert plan.plan_id != replace(plan, order=("a0", "b1")).plan_id


def test_a_stream_is_paced_by_its_busiest_unit() -> None:
    problem = workload_problem({"a": [[10, 20], [30, 10]]}, ["a", "a"])
    repeated = replace(problem, data=replace(workload_of(problem), mode=Mode.STREAM))
    slots = replace(problem, data=replace(workload_of(problem), mode=Mode.STREAM, task_slots=1))
    plan = next(p for p in all_plans(problem) if str(p) == "a0: 0-0 npu | 1-1 big; a1: 0-0 npu | 1-1 big")
    assert score(repeated, plan).period_us == 20
    assert score(slots, plan).period_us == 40  # one at a time: the sum of both chunks of both requests


def test_a_stream_is_endless_the_chunks_of_its_last_rounds_are_slowed_down_too() -> None:
    """Played as a few rounds that end, the first unit is done early and no longer in the way: 20 was said."""
    problem = workload_problem({"a": [[10, 99], [99, 20]]}, ["a"], slowdown=[[0, 0], [500, 0]])
    endless = replace(problem, data=replace(workload_of(problem), mode=Mode.STREAM))
    plan = next(p for p in all_plans(problem) if str(p) == "a0: 0-0 npu | 1-1 big")
    assert score(endless, plan).period_us == 23  # beside the first unit for 10, and a third slower then
    shares = unit_shares(endless, deploy(plan, workload_of(endless)))
    assert {unit: share.permille for unit, share in shares.items()} == {"npu": 434, "big": 1000}


def test_the_stream_of_one_network_is_another_question() -> None:
    with pytest.raises(InvalidInputError, match="says which requests come when"):
        simulate(PROBLEM, Plan(chunks=(B,)), requests=2)

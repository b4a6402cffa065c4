"""Every encoding against the judge: each valid schedule is a solution, with the judge's numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.schedule_instances import sliced
from benchmarks.workload_instances import crowded_workload
from gapless.formulations.deployment import Mode
from gapless.formulations.errors import InvalidProblemError, UnsupportedFeatureError
from gapless.formulations.expr import Variable, variables
from gapless.formulations.flow_shop.encoding import encode_workload
from gapless.formulations.flow_shop.quantities import TERMS, idle_excess, quantities_of
from gapless.formulations.flow_shop.rules import before
from gapless.formulations.flow_shop.space import all_schedules
from gapless.formulations.flow_shop.tables import FlowShop, Schedule, shop_of
from gapless.formulations.flow_shop.values import WorkloadValues
from gapless.formulations.judge import check
from gapless.formulations.model import Constraint, Encoded, Values
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.formulations.workload import Execution, Request, RequestOrder, Workload
from gapless.solvers.exact.lowering import Lowering
from tests.solvers.workload_cases import random_workload
from tests.workload_instances import workload_problem, workload_problems

SETTINGS = settings(max_examples=60, suppress_health_check=list(HealthCheck))
TABLES: dict[str, list[list[int | None]]] = {
    "a": [[3, 5], [4, 2], [6, 6]],
    "b": [[2, 7], [9, 3]],
}


def values_of(encoded: Encoded[Schedule], schedule: Schedule) -> Values:
    """Return the values of all variables; a variable that `assign` forgets is a KeyError."""
    assert encoded.assign is not None
    assigned = encoded.assign(schedule)

    def read(variable: Variable) -> int:
        return assigned[variable.key]

    return read


@pytest.mark.parametrize("limit", ["", "min_units", "max_units"])
def test_a_model_says_which_units_are_in_use_only_where_a_limit_asks(limit: str) -> None:
    problem = workload_problem(TABLES, ["a", "b"])
    model = encode_workload(problem.with_limits(**{limit: 1}) if limit else problem, top=1).model
    spoken = {name for row in model.constraints for name, _ in variables(row.expr)}
    assert ("U" in spoken) == bool(limit)


def check_encoding(problem: Problem, top: int) -> None:
    shop, encoded = shop_of(problem), encode_workload(problem, top=top)
    lowering, variables = Lowering(encoded.model), quantities_of(shop)
    rows = [(c.name, lowering.truth(c.expr)) for c in encoded.model.constraints]
    rows += [("tighter", lowering.truth(row.expr)) for row in _tighter(encoded)]
    rows += [("channel", row) for row in lowering.channels]
    for drawn in islice(all_schedules(shop), 0, 3000, 53):
        schedule = encoded.settle(drawn)
        if check(problem, shop.plan(schedule)):
            continue
        if encoded.name in ("slicing", "ordering") and not encoded.complete and cut_unlike(shop, schedule):
            continue  # where cuts do not touch each other, such models cut equal requests alike
        values, judged = values_of(encoded, schedule), WorkloadValues(shop, schedule)
        assert [name for name, row in rows if not row.evaluate(values)] == []
        assert lowering.truth(encoded.exclude(schedule)).evaluate(values) == 0
        if encoded.complete:
            assert encoded.decode(values) == schedule
        for term in problem.objective.terms:
            stated = lowering.number(variables.number(TERMS[term].field)) if term != "idle" else None
            if stated is None:
                check_idle(problem, lowering, values, judged)
            elif term == "energy" and judged.tables.losses.contended and shop.workload.mode is Mode.STREAM:
                assert stated.evaluate(values) <= judged.term(term)  # without what slowdown adds
            elif encoded.name == "ordering":  # a pattern stands for the best order that has it
                assert stated.evaluate(values) <= judged.term(term)
            else:
                assert stated.evaluate(values) == judged.term(term)


def _tighter(encoded: Encoded[Schedule]) -> tuple[Constraint, ...]:
    return () if encoded.tighter is None else encoded.tighter()


def cut_unlike(shop: FlowShop, schedule: Schedule) -> bool:
    """Return whether two requests of one network are cut differently."""
    pairs = set(zip(shop.chain_of, schedule.cuts, strict=True))
    return len(pairs) > len(set(shop.chain_of))


def check_idle(problem: Problem, lowering: Lowering, values: Values, judged: WorkloadValues) -> None:
    for permille in (judged.idle_permille, judged.idle_permille - 1):
        stated = lowering.at_most(idle_excess(shop_of(problem), permille), 0).evaluate(values)
        assert stated == (permille == judged.idle_permille)


@pytest.mark.slow
@SETTINGS
@given(workload_problems())
def test_schedules_are_solutions(problem: Problem) -> None:
    check_encoding(problem, top=1)
    check_encoding(problem, top=2)


@pytest.mark.parametrize("seed", range(40))
def test_schedules_are_solutions_under_rules(seed: int) -> None:
    check_encoding(random_workload(seed), top=1 + seed % 2)


@pytest.mark.parametrize("seed", [*range(5), pytest.param(10, marks=pytest.mark.slow)])
def test_schedules_are_solutions_under_the_cap(seed: int) -> None:
    problem = crowded_workload(seed)
    assert shop_of(problem).losses.capped
    check_encoding(problem, top=1)


@pytest.mark.parametrize("seed", range(30))
def test_schedules_are_solutions_with_slowdown_by_slice(seed: int) -> None:
    problem = crowded_workload(seed) if seed % 5 == 0 else random_workload(seed)
    known = problem.interference
    asked = {name for rule in problem.expression_rules for name, _ in variables(rule.expr)}
    if known is not None and "contention" not in asked:
        problem = sliced(replace(problem, interference=replace(known, high_from_permille=900)), seed)
        check_encoding(problem, top=1 + seed % 2)


def test_rules_about_contention_by_slice_are_refused_by_name() -> None:
    problem = workload_problem(TABLES, ["a", "b"], high=("a",), objective="makespan")
    known = problem.interference
    assert known is not None
    problem = replace(problem, interference=replace(known, high_from_permille=1))
    ruled = problem.with_rules(lambda view: view.contention() <= 1)
    encode_workload(ruled, top=1)
    with pytest.raises(UnsupportedFeatureError, match="rules about contention are not encoded"):
        encode_workload(sliced(ruled, 0), top=1)


def test_slowed_workloads_have_rows_that_forbid_waiting() -> None:
    slowed = [random_workload(seed) for seed in range(40)]
    tighter = [_tighter(encode_workload(problem, top=1)) for problem in slowed]
    assert sum(map(bool, tighter)) >= 3  # which `test_schedules_are_solutions_under_rules` checks, too
    for problem, rows in zip(slowed, tighter, strict=True):
        assert bool(rows) <= shop_of(problem).losses.contended


@pytest.mark.parametrize(
    ("objective", "workload", "name"),
    [
        ("bottleneck,work", Workload(requests=(Request(name="r", network="a"),)), "slicing"),
        ("contention,displacement", Workload(requests=(Request(name="r", network="a"),)), "ordering"),
        (
            "makespan",
            Workload(requests=(Request(name="r", network="a"),), order=RequestOrder.FIXED),
            "alignment",
        ),
        ("makespan", Workload(requests=(Request(name="r", network="a"),)), "joint"),
        (
            "bubbles",
            Workload(requests=(Request(name="r", network="a"),), execution=Execution.COLUMNS),
            "columns",
        ),
        ("period", Workload(requests=(Request(name="r", network="a"),), mode=Mode.STREAM), "slicing"),
    ],
)
def test_the_formulation_follows_from_what_is_asked(objective: str, workload: Workload, name: str) -> None:
    problem = workload_problem(TABLES, ["a", "b", "a"], high=("a",), objective=objective, workload=workload)
    assert encode_workload(problem, top=1).name == name


def test_a_deadline_brings_clocks() -> None:
    problem = workload_problem(TABLES, ["a", "b"], objective="bottleneck")
    assert encode_workload(problem, top=1).name == "slicing"
    timed = problem.with_rules(lambda view: view.latency_us("a0") <= 20)
    assert encode_workload(timed, top=1).name == "joint"


def test_equal_requests_are_told_apart_only_where_something_does() -> None:
    problem = workload_problem(TABLES, ["a", "b", "a", "a"])
    encoded = encode_workload(problem, top=1)
    assert not encoded.complete
    cuts = ((0, 1, 3), (0, 2, 2), (0, 0, 3), (0, 3, 3))
    assert encoded.settle(Schedule((3, 1, 2, 0), cuts)) == Schedule(
        (0, 1, 2, 3), ((0, 3, 3), (0, 2, 2), (0, 0, 3), (0, 1, 3))
    )
    odd = OpaqueRule(name="odd", predicate=lambda plan: True)
    told_apart = [
        encode_workload(problem, top=2),
        encode_workload(problem.with_rules(before("a3", "a0")), top=1),
        encode_workload(problem.with_rules(odd), top=1),
    ]
    for encoded in told_apart:
        assert encoded.complete
        assert encoded.settle(Schedule((3, 1, 2, 0), cuts)) == Schedule((3, 1, 2, 0), cuts)


def test_an_unknown_request_is_refused() -> None:
    with pytest.raises(InvalidProblemError, match="no request 'c9'"):
        workload_problem(TABLES, ["a", "b"]).with_rules(before("c9", "a0"))

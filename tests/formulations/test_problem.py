"""Problems with co-run costs: which table a plan is charged by, and what such a problem may be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from gapless.api.problems import table_problem
from gapless.formulations.chunking.rules import avoid, busy_cap
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.co_run import CoRunModel, Interpolated, get_co_run_model
from gapless.formulations.costs import CostTable
from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.expr import IntVar, variables
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.judge import check, score
from gapless.formulations.limits import Limits
from gapless.formulations.parts import narrowed
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Feature, Problem
from gapless.formulations.rules import OpaqueRule
from gapless.formulations.simulate import simulate
from gapless.formulations.workload import Request, Workload
from gapless.solvers.chunking.samples import sample_problem
from tests.instances import co_run_problems, set_problems

from .cost_tables import UNITS, table


def plan(*parts: tuple[int, int, str], network: str = "net") -> Plan:
    return Plan(chunks=tuple(Chunk(network=network, start=a, stop=b, unit=u) for a, b, u in parts))


ROWS: list[list[int]] = [[10, 40], [30, 20]]
BESIDE = table("x", ((15, 44), (33, 12)), into=((1, 2), (3, 4), (5, 6)))
"""What both layers cost when both units are in use."""


def two_units(**changes: object) -> Problem:
    plain = table_problem([[t / 1000 for t in row] for row in ROWS], ["a", "b"], network="net")
    return replace(plain, co_run_costs=(BESIDE,), **changes)  # type: ignore[arg-type]


def test_the_judge_charges_by_the_number_of_units() -> None:
    problem = two_units()
    assert score(problem, plan((0, 2, "a"))).busy_us == (40, None)
    assert score(problem, plan((0, 2, "b"))).busy_us == (None, 60)
    # 15 + copy in at 0, 12 + copy in at 1
    judged = score(problem, plan((0, 1, "a"), (1, 2, "b")))
    assert judged.busy_us == (16, 16)
    assert (judged.period_us, judged.gapness_us, judged.latency_us) == (16, 0, 32)
    assert score(problem, plan((0, 1, "b"), (1, 2, "a"))).busy_us == (36, 46)


def test_the_simulation_charges_by_the_number_of_units() -> None:
    problem = two_units()
    both = simulate(problem, plan((0, 1, "b"), (1, 2, "a")), requests=2, interval_us=0)
    assert {(event.unit, event.end_us - event.start_us) for event in both.events} == {("b", 46), ("a", 36)}
    assert both.makespan_us == 46 + 46 + 36
    assert simulate(problem, plan((0, 2, "a")), requests=3, interval_us=0).makespan_us == 120


def test_rules_and_limits_read_the_same_table() -> None:
    problem = two_units().with_rules(busy_cap("a", most_us=39)).with_limits(max_period_us=41)
    assert {v.rule for v in check(problem, plan((0, 2, "a")))} == {"busy_cap(a, 39)"}
    assert check(problem, plan((0, 1, "a"), (1, 2, "b"))) == ()
    assert {v.rule for v in check(problem, plan((0, 1, "b"), (1, 2, "a")))} == {"max_period_us"}


@pytest.mark.slow
@given(co_run_problems())
def test_using_is_the_problem_that_plans_are_judged_by(problem: Problem) -> None:
    for used in problem.unit_counts:
        part = problem.using(used)
        assert part.co_run_costs is None
        own = problem.costs if used == 1 else (problem.co_run_costs or ())[used - 2]
        assert part.costs == own
        # Every total that a rule speaks of has the bounds of this table, not of the one for one unit.
        for rule in part.expression_rules:
            for variable in variables(rule.expr).values():
                if isinstance(variable, IntVar) and variable.name == "busy_us":
                    assert variable.high == chain_of(part).most_busy_us(variable.args[0])


def test_limits_join_the_number_of_units() -> None:
    problem = table_problem([[1, 2, 3, 4]] * 2, UNITS, network="net")
    problem = replace(problem, co_run_costs=(problem.costs,) * 3)
    assert problem.unit_counts == (1, 2, 3, 4)
    part = problem.using(2).limits
    assert (part.min_units, part.max_units) == (2, 2)
    some = problem.with_limits(min_units=2, max_units=3, max_gapness_us=9)
    assert some.unit_counts == (2, 3)
    assert some.using(3).limits == Limits(min_units=3, max_units=3, max_gapness_us=9)
    # Nothing is left: the parts say so themselves, so that it is proved.
    for limits in ({"min_units": 5}, {"min_units": 3, "max_units": 2}):
        none = problem.with_limits(**limits)
        assert none.unit_counts == (1, 2, 3, 4)
        for used in none.unit_counts:
            part = none.using(used).limits
            assert (part.min_units or 0) > (4 if part.max_units is None else part.max_units)
    assert problem.with_limits(max_units=9).unit_counts == (1, 2, 3, 4)


def test_opaque_rules_stay() -> None:
    rule = OpaqueRule(name="odd", predicate=lambda plan: len(plan.chunks) == 2)
    problem = two_units().with_rules(rule, avoid("a"))
    assert [r.name for r in problem.using(2).rules] == ["odd", "avoid(a)"]
    assert problem.using(2).rules[0] is rule


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        ((), "co_run_costs has 0 tables, needs one for each number of units from 2 to 2"),
        ((BESIDE, BESIDE), "co_run_costs has 2 tables"),
        ((table("x", ((1, None), (1, 1))),), "the table for 2 units differs from costs"),
        ((table("x", ((1, 1),)),), "the table for 2 units differs from costs"),
    ],
)
def test_tables_that_do_not_fit_are_refused(beside: tuple[CostTable, ...], words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words):
        replace(two_units(), co_run_costs=beside)


def by_set(*sets: str) -> Problem:
    """Return a problem of three units with a table for each of some sets."""
    plain = table_problem([[1, 2, 3], [4, 5, 6]], ["a", "b", "c"], network="net")
    return replace(plain, co_run_costs=tuple(narrowed(plain.costs, one) for one in sets))


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (("ab", "ac", "bc"), "no table for a, b, c, which can run at once"),
        (("ab", "ab"), "two tables for the same set"),
        (("ba",), r"a table for \[b, a\], must be for two or more units of the platform in its order"),
        (("a",), r"a table for \[a\], must be for two or more"),
    ],
)
def test_sets_that_do_not_fit_are_refused(sets: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words):
        by_set(*sets)


def test_units_that_share_a_core_need_no_table() -> None:
    whole = by_set("ab", "ac", "bc", "abc")
    a, b, c = whole.platform.units
    shared = replace(whole.platform, units=(replace(a, cores=(1,)), replace(b, cores=(1,)), c))
    tables = (whole.co_run_costs or ())[1:3]
    problem = replace(whole, platform=shared, co_run_costs=tables)
    assert [str(part) for part in problem.parts] == ["1 unit", "a+c", "b+c"]
    assert [str(part) for part in problem.with_limits(min_units=2).parts] == ["a+c", "b+c"]
    with pytest.raises(InvalidProblemError, match="no table for b, c"):
        replace(problem, co_run_costs=tables[:1])


@pytest.mark.slow
@given(set_problems())
def test_files_keep_tables_of_sets(problem: Problem) -> None:
    again = parse_problem(dump_problem(problem).encode(), name="problem")
    assert again == problem
    assert again.fingerprint == problem.fingerprint
    for part in problem.parts:
        assert again.using(part.key) == problem.using(part.key)


def test_a_workload_has_one_table() -> None:
    workload = Workload(requests=(Request(name="r", network="net"),))
    with pytest.raises(
        InvalidProblemError,
        match=r"with a workload take one table of costs.*are for one network alone",
    ):
        replace(two_units(), data=workload)


def test_features_are_those_of_all_tables() -> None:
    plain = replace(two_units(), co_run_costs=None)
    assert Feature.TRANSFERS not in plain.features
    assert {Feature.TRANSFERS, Feature.LIMITS} <= two_units().features  # the table for two units has copies


@pytest.mark.slow
@given(co_run_problems())
def test_files_keep_all_tables_and_rules(problem: Problem) -> None:
    again = parse_problem(dump_problem(problem).encode(), name="problem")
    assert again == problem
    assert again.fingerprint == problem.fingerprint
    for used in problem.unit_counts:
        assert again.using(used) == problem.using(used)


def test_fingerprints() -> None:
    # Files name their problem by these digits: fields that a problem does not use are not in them.
    assert sample_problem().fingerprint == "ce8c605e38c4bc9e"
    assert sample_problem().with_limits(min_units=2).fingerprint == "78c3c69e0c7043d5"
    problem = two_units()
    assert len({problem.fingerprint, replace(problem, co_run_costs=None).fingerprint}) == 2
    other = replace(problem, co_run_costs=(replace(BESIDE, networks=problem.costs.networks),))
    assert other.fingerprint != problem.fingerprint
    assert problem.with_limits(max_units=1).fingerprint != problem.fingerprint


def test_interpolated_is_a_model() -> None:
    model: CoRunModel = Interpolated()
    assert get_co_run_model("interpolated") == model

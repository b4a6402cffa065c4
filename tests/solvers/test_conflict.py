"""Why a problem is infeasible: smallest, confirmed, in words."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gapless.answers.plans import conflict_blocks
from gapless.api.problems import table_problem
from gapless.formulations.chunking.rules import at_least, at_most, avoid, forbid, pin, together
from gapless.formulations.errors import BackendDisagreementError
from gapless.formulations.flow_shop.rules import before, keep_off, keep_on
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Request, RequestOrder, Workload
from gapless.solvers import protocol
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.conflict import explain_infeasible
from gapless.solvers.protocol import Claim, Deadline, SolveOptions, SolveStatus, StopReason
from gapless.solvers.result import Conflict, SolveResult
from gapless.solvers.samples import Golden, golden_instances
from gapless.solvers.session import reconcile, solve
from tests.workload_instances import workload_problem

from .fakes import FakeBackend, claiming, optimal, plan

INFEASIBLE = [golden for golden in golden_instances() if golden.conflict]


def conflict(problem: Problem, backend: str = "native") -> Conflict:
    found = solve(problem, backend).conflict
    assert found is not None
    return found


def names(found: Conflict) -> set[str]:
    return {item.name for item in found.items}


@pytest.mark.parametrize("backend", ["native", "exhaustive"])
@pytest.mark.parametrize("golden", INFEASIBLE, ids=lambda golden: golden.name)
def test_golden_conflicts(golden: Golden, backend: str) -> None:
    found = conflict(golden.problem, backend)
    assert names(found) == set(golden.conflict)
    assert found.smallest
    assert found.confirmed_by == backend


def test_the_smallest_conflict_is_found_among_several() -> None:
    problem = table_problem([[1, 2, 3]] * 4, ["a", "b", "c"]).with_rules(
        at_least(3), at_most(2), pin(0, unit="a"), avoid("a"), forbid(3, unit="b"), avoid("c")
    )
    found = conflict(problem)
    assert found.smallest
    assert len(found.items) == 2


def test_a_single_impossible_limit() -> None:
    problem = sample_problem().with_limits(max_period_us=1, min_units=2)
    result = solve(problem, "native")
    assert result.conflict is not None
    assert names(result.conflict) == {"max_period_us"}
    assert result.conflict.items[0].text == "the period is at most 1 us"
    assert result.unfiltered is not None
    assert result.unfiltered.plan == solve(sample_problem(), "native").plan


def test_the_hardware_takes_part() -> None:
    problem = sample_problem().with_rules(pin("l0", unit="all"), pin("l6", unit="big"))
    assert names(conflict(problem)) == {"pin(l0, all)", "pin(l6, big)", "shared cores"}
    heavy = sample_problem().with_rules(pin("l4", unit="gpu"), together("l4", "l6"))
    found = conflict(heavy)
    assert names(found) == {"pin(l4, gpu)", "together(l4, l6)", "memory of gpu"}
    assert found.items[2].text == "unit 'gpu' holds at most 400 bytes"


def test_the_table_alone() -> None:
    stuck = table_problem({"a": [1, 2], "b": [None, None]}, ["x", "y"])
    found = conflict(stuck)
    assert names(found) == {"cost table"}
    assert "no unit can run the layers 'b'" in found.items[0].text
    zigzag = table_problem([[1, None], [None, 1], [1, None]], ["x", "y"])
    assert "no sequence of chunks" in conflict(zigzag).items[0].text


def test_a_feasible_problem_has_no_conflict() -> None:
    assert solve(sample_problem(), "native").conflict is None


def test_a_false_proof_of_infeasibility_is_refuted() -> None:
    def act(problem: Problem, options: SolveOptions) -> Claim:
        return Claim(status=SolveStatus.INFEASIBLE, stop=StopReason.COMPLETE)

    problem = table_problem([[9, 2], [1, 8]], ["a", "b"], network="net")
    with pytest.raises(BackendDisagreementError, match=r"'native' finds the plan .* by 'fake'"):
        solve(problem.with_rules(pin(0, unit="b")), FakeBackend(act=act))


def test_a_plan_for_contradictory_demands_is_refuted() -> None:
    best = plan((0, 1, "b"), (1, 2, "a"))

    def act(problem: Problem, options: SolveOptions) -> Claim:
        if len(problem.rules) > 2:
            return Claim(status=SolveStatus.INFEASIBLE, stop=StopReason.COMPLETE)
        return optimal(best, values=(2000,), bound=2000)

    problem = table_problem([[9, 2], [1, 8]], ["a", "b"], network="net")
    lying = problem.with_rules(pin(0, unit="a"), forbid(0, unit="a"), at_most(2))
    with pytest.raises(BackendDisagreementError, match="claims an optimum"):
        solve(lying, FakeBackend(act=act))


def test_a_conflict_in_a_workload_names_its_demands() -> None:
    tables: dict[str, list[list[int | None]]] = {"a": [[30, 50], [44, 22]], "b": [[20, 70]]}
    problem = workload_problem(
        tables,
        ["a", "b"],
        workload=Workload(requests=(Request(name="r", network="a"),), order=RequestOrder.FIXED),
    )
    ruled = problem.with_rules(before("b1", "a0"), keep_off("b1", unit="big"))
    assert names(conflict(ruled, "exhaustive")) == {"before(b1, a0)", "order"}
    first, second = workload_of(problem).requests
    late = replace(
        problem, data=replace(workload_of(problem), requests=(replace(first, deadline_us=60), second))
    )
    found = conflict(late.with_rules(keep_on("a0", units=("npu",))), "exhaustive")
    assert names(found) == {"deadline of a0", "keep_on(a0, npu)"}
    assert found.confirmed_by == "exhaustive"


def test_a_workload_that_no_plan_covers() -> None:
    tables: dict[str, list[list[int | None]]] = {"a": [[None, 50], [44, None]]}
    found = conflict(workload_problem(tables, ["a"]), "exhaustive")
    assert "in the order of the units" in found.items[0].text


def circle() -> Problem:
    """Return three requests, each before the next one."""
    return workload_problem({"a": [[30, 50], [44, 22]]}, ["a", "a", "a"]).with_rules(
        before("a0", "a1"), before("a1", "a2"), before("a2", "a0"), keep_on("a0", units=("npu",))
    )


@pytest.mark.parametrize("taken", [0.5, 1.0])
def test_the_diagnosis_ends_at_the_limit_and_says_that_it_did(
    taken: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(protocol, "time", SimpleNamespace(monotonic=lambda: clock.now))

    def again(variant: Problem, by: str | None, limit_s: float | None, *, best: bool) -> SolveResult:
        assert limit_s is not None
        clock.now += taken * limit_s
        nothing = Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.TIME_LIMIT)
        return reconcile(variant, claiming(nothing), nothing, 1, 0.0)

    found, _ = explain_infeasible(circle(), again, "slow", Deadline(40.0))
    assert clock.now <= 40.0
    assert (found.irreducible, found.smallest, found.confirmed_by) == (False, False, "slow")
    assert {"before(a0, a1)", "keep_on(a0, npu)"} <= names(found)
    assert "give a longer limit" in [*conflict_blocks(found)][-1].text


def test_with_no_time_left_nothing_is_asked() -> None:
    found, unfiltered = explain_infeasible(circle(), _never, "slow", Deadline(0.0))
    assert unfiltered is None
    assert not found.irreducible
    complete = conflict(circle(), "exhaustive")
    assert complete.irreducible
    assert names(complete) == {"before(a0, a1)", "before(a1, a2)", "before(a2, a0)"}


def test_whether_there_is_a_plan_is_known_with_the_first_one() -> None:
    cyclic = {"before(a0, a1)", "before(a1, a2)", "before(a2, a0)"}

    def act(problem: Problem, options: SolveOptions) -> Claim:
        if cyclic <= {rule.name for rule in problem.rules}:
            return Claim(status=SolveStatus.INFEASIBLE, stop=StopReason.COMPLETE)
        found = solve(problem, "exhaustive").plan
        assert found is not None
        options.publish(Claim(status=SolveStatus.FEASIBLE, stop=StopReason.TIME_LIMIT, plans=(found,)))
        raise AssertionError("went on")

    found = solve(circle(), FakeBackend(act=act)).conflict
    assert found is not None
    assert (names(found), found.smallest, found.irreducible) == (cyclic, True, True)


def _never(variant: Problem, by: str | None, limit_s: float | None, *, best: bool) -> SolveResult:
    raise AssertionError

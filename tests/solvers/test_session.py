"""The session: no claim gets past the judge."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from gapless.api.problems import table_problem
from gapless.formulations.availability import Availability
from gapless.formulations.chunking.rules import pin
from gapless.formulations.errors import (
    BackendDisagreementError,
    BackendFailedError,
    BackendUnavailableError,
    InvalidInputError,
    InvalidProblemError,
    UnknownBackendError,
    UnsupportedFeatureError,
)
from gapless.formulations.flow_shop.rules import before
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective
from gapless.solvers.protocol import Claim, Guarantee, SolveOptions, SolveStatus, StopReason, Support
from gapless.solvers.result import Candidate, SolveResult
from gapless.solvers.session import solve
from tests.workload_instances import workload_problem

from .fakes import FakeBackend, capabilities, claiming, fail, feasible, optimal, plan

BEST = plan((0, 1, "gpu"), (1, 2, "cpu"))  # busy 2 and 1
OTHER = plan((0, 1, "cpu"), (1, 2, "gpu"))  # busy 9 and 8
HOLEY = plan((0, 1, "gpu"))


@pytest.fixture
def problem() -> Problem:
    return table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net", objective="period")


def test_a_right_claim_is_optimal(problem: Problem) -> None:
    result = solve(problem, claiming(optimal(BEST, values=(2000,), bound=2000)))
    assert (result.status, result.objective, result.bound, result.gap) == ("optimal", 2000, 2000, 0.0)
    assert result.plan == BEST


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (optimal(OTHER, values=(2000,), bound=2000), "9000"),
        (optimal(BEST, values=(1999,), bound=1999), "2000"),
        (optimal(BEST, values=(2000,), bound=1500), "1500"),
        (optimal(BEST, values=(2000,), bound=None), "None"),
        (optimal(HOLEY, values=(2000,), bound=2000), "not covered"),
        (optimal(plan((0, 2, "npu")), values=(2,), bound=2), "no such unit"),
        (optimal(OTHER, BEST, values=(9000,), bound=9000, proven=2), "in order"),
    ],
)
def test_a_refuted_optimum_is_an_error(problem: Problem, claim: Claim, words: str) -> None:
    with pytest.raises(BackendDisagreementError, match="claims") as error:
        solve(problem, claiming(claim), SolveOptions(top=2))
    assert words in str(error.value)


def test_a_plan_that_breaks_a_rule_is_no_optimum(problem: Problem) -> None:
    ruled = problem.with_rules(pin(0, unit="cpu"))
    with pytest.raises(BackendDisagreementError, match="pin"):
        solve(ruled, claiming(optimal(BEST, values=(2000,), bound=2000)))


def test_an_unproved_claim_keeps_its_valid_plans_in_order(problem: Problem) -> None:
    result = solve(problem, claiming(feasible(OTHER, HOLEY, BEST, bound=1000)), SolveOptions(top=3))
    assert result.status is SolveStatus.FEASIBLE
    assert [c.plan for c in result.candidates] == [BEST, OTHER]
    assert result.gap == 0.5
    assert result.statistics["refused_by_judge"] == 1


def test_a_refuted_bound_is_dropped_and_told(problem: Problem) -> None:
    result = solve(problem, claiming(feasible(BEST, bound=2001)))
    assert (result.status, result.bound) == (SolveStatus.FEASIBLE, None)
    assert result.statistics["refuted_bound"] == 2001


def test_only_invalid_plans_are_no_solution(problem: Problem) -> None:
    result = solve(problem, claiming(feasible(HOLEY)))
    assert (result.status, result.candidates, result.plan) == (SolveStatus.NO_SOLUTION, (), None)


@pytest.mark.parametrize(
    ("guarantee", "status"),
    [(Guarantee.EXACT, SolveStatus.INFEASIBLE), (Guarantee.HEURISTIC, SolveStatus.NO_SOLUTION)],
)
def test_only_exact_backends_prove_infeasibility(
    problem: Problem, guarantee: Guarantee, status: SolveStatus
) -> None:
    claim = Claim(status=SolveStatus.INFEASIBLE, stop=StopReason.COMPLETE)
    assert solve(problem, claiming(claim, guarantee), explain=False).status is status


def test_a_heuristic_proves_no_optimum(problem: Problem) -> None:
    claim = optimal(BEST, values=(2000,), bound=2000)
    assert solve(problem, claiming(claim, Guarantee.HEURISTIC)).status is SolveStatus.FEASIBLE


@pytest.mark.parametrize(
    "claim",
    [
        feasible(BEST, BEST),
        feasible(BEST, OTHER, plan((0, 2, "cpu"))),
        feasible(),
        optimal(BEST, values=(2000,), bound=2000, proven=0),
        optimal(BEST, values=(2000,), bound=2000, proven=2),
        replace(feasible(BEST), status=SolveStatus.NO_SOLUTION),
        Claim(status=SolveStatus.INFEASIBLE, stop=StopReason.TIME_LIMIT),
    ],
)
def test_a_contradictory_claim_breaks_the_protocol(problem: Problem, claim: Claim) -> None:
    with pytest.raises(BackendFailedError, match="protocol"):
        solve(problem, claiming(claim), SolveOptions(top=2))


def test_an_exception_is_a_failed_backend(problem: Problem) -> None:
    with pytest.raises(BackendFailedError, match="ZeroDivisionError: by nought"):
        solve(problem, FakeBackend(act=fail))


def test_an_unknown_name_lists_the_known_ones(problem: Problem) -> None:
    with pytest.raises(UnknownBackendError, match="native"):
        solve(problem, "nativ")


def test_a_missing_solver_says_what_to_install(problem: Problem) -> None:
    missing = FakeBackend(act=fail, available=Availability(ok=False, reason="pip install it"))
    with pytest.raises(BackendUnavailableError, match="pip install it"):
        solve(problem, missing)


def test_missing_features_are_named(problem: Problem) -> None:
    able = Support(guarantee=Guarantee.EXACT, features=frozenset(), terms=frozenset())
    weak = FakeBackend(act=fail, capabilities=replace(capabilities(), others=able))
    with pytest.raises(UnsupportedFeatureError, match="rules") as error:
        solve(problem.with_rules(pin(0, unit="cpu")), weak)
    assert error.value.missing == {"rules", "objective period"}
    assert "exhaustive" in str(error.value)


def test_strict_rules_refuse_mere_checking(problem: Problem) -> None:
    ruled = problem.with_rules(pin(0, unit="gpu"))
    backend = claiming(optimal(BEST, values=(2000,), bound=2000))
    assert solve(ruled, backend).status is SolveStatus.OPTIMAL
    with pytest.raises(UnsupportedFeatureError, match="strict_rules"):
        solve(ruled, backend, strict_rules=True)


@pytest.mark.parametrize(
    "options", [SolveOptions(top=0), SolveOptions(time_limit_s=0), SolveOptions(threads=0)]
)
def test_options_are_checked(problem: Problem, options: SolveOptions) -> None:
    with pytest.raises(InvalidInputError, match="must be"):
        solve(problem, "exhaustive", options)


class TestSlackMode:
    def test_the_cap_follows_from_the_least_period(self, problem: Problem) -> None:
        slack = problem.with_objective("slack:5000:gapness")  # up to 12 ms
        result = solve(slack, "exhaustive", SolveOptions(top=5))
        assert result.statistics["least_period_us"] == 2000
        assert result.statistics["period_cap_us"] == 12000
        assert result.status is SolveStatus.OPTIMAL
        assert all(c.score.period_us <= 12000 for c in result.candidates)
        assert result.values == (1000,)
        assert result.asked == slack.objective
        assert result.fingerprint == slack.fingerprint

    def test_without_a_proven_least_period_nothing_is_proven(self, problem: Problem) -> None:
        backend = claiming(feasible(BEST, bound=100))
        result = solve(problem.with_objective("slack:10"), backend)
        assert (result.status, result.bound) == (SolveStatus.FEASIBLE, None)

    def test_no_plan_at_all(self, problem: Problem) -> None:
        capped = problem.with_objective("slack:10").with_limits(max_period_us=1)
        assert solve(capped, "exhaustive", explain=False).status is SolveStatus.INFEASIBLE

    def test_a_limit_that_the_least_period_uses_up_leaves_its_plan(self, problem: Problem) -> None:
        asked: list[Objective] = []

        def slow(problem: Problem, options: SolveOptions) -> Claim:
            asked.append(problem.objective)
            time.sleep(0.05)
            return optimal(BEST, values=(2000,), bound=2000)

        slack = problem.with_objective("slack:10")
        result = solve(slack, FakeBackend(act=slow), SolveOptions(time_limit_s=0.01))
        assert len(asked) == 1
        assert (result.status, result.stop, result.plan) == ("feasible", StopReason.TIME_LIMIT, BEST)
        assert (result.proven, result.bound, result.asked) == (0, None, slack.objective)


def test_the_paper_mode_is_shown_by_period(problem: Problem) -> None:
    result = solve(problem.with_objective("paper"), "exhaustive", SolveOptions(top=4))
    periods = [c.score.period_us for c in result.candidates]
    assert periods == sorted(periods)
    assert result.objective == 0


class TestContradictoryResults:
    """Every forbidden combination is refused by the type itself."""

    def make(self, problem: Problem, **changes: object) -> SolveResult:
        good = solve(problem, "exhaustive")
        return replace(good, **changes)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "changes",
        [
            {"status": SolveStatus.FEASIBLE},
            {"status": SolveStatus.NO_SOLUTION},
            {"status": SolveStatus.INFEASIBLE},
            {"candidates": ()},
            {"objective": 1999},
            {"values": (1,)},
            {"bound": None},
            {"bound": 1999},
            {"bound": 2001},
            {"proven": 0},
            {"proven": 2},
            {"runtime_s": -1.0},
            {
                "status": SolveStatus.INFEASIBLE,
                "candidates": (),
                "objective": None,
                "values": None,
                "proven": 0,
            },
            {
                "status": SolveStatus.INFEASIBLE,
                "candidates": (),
                "objective": None,
                "values": None,
                "proven": 0,
                "bound": None,
                "stop": StopReason.TIME_LIMIT,
            },
            {"status": SolveStatus.FEASIBLE, "proven": 0, "exhausted": True},
        ],
    )
    def test_refused(self, problem: Problem, changes: dict[str, object]) -> None:
        with pytest.raises(ValueError, match="contradictory"):
            self.make(problem, **changes)

    def test_an_invalid_candidate_is_refused(self, problem: Problem) -> None:
        good = solve(problem, "exhaustive")
        ruled = problem.with_rules(pin(0, unit="cpu"))
        from gapless.formulations.judge import score

        assert good.best is not None
        broken = Candidate(plan=good.best.plan, score=score(ruled, good.best.plan))
        with pytest.raises(ValueError, match="invalid candidate"):
            replace(good, candidates=(broken,))


def test_the_objective_travels_in_the_problem(problem: Problem) -> None:
    assert solve(problem.with_objective(Objective.paper()), "exhaustive").plan != BEST


def test_strict_rules_know_that_workloads_are_only_checked_natively() -> None:
    problem = workload_problem({"a": [[10, 20], [30, 10]]}, ["a", "a"]).with_rules(before("a1", "a0"))
    with pytest.raises(UnsupportedFeatureError, match="such as 'cpsat'"):
        solve(problem, "native", strict_rules=True)
    found = solve(problem, "exhaustive", strict_rules=True)
    assert found.plan is not None
    assert found.plan.order == ("a1", "a0")


def test_several_networks_need_a_workload() -> None:
    problem = workload_problem({"a": [[10, 20]], "b": [[10, 20]]}, ["a", "b"])
    with pytest.raises(InvalidProblemError, match="say which requests come"):
        solve(replace(problem, data=None, objective=Objective()), "native")

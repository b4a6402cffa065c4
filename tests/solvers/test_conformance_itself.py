"""The conformance tests themselves: who answers nothing, or promises nothing that can be tried, fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from gapless.formulations.availability import Availability
from gapless.formulations.problem import Problem
from gapless.solvers import conformance
from gapless.solvers.conformance import BackendConformance
from gapless.solvers.exhaustive import ExhaustiveBackend
from gapless.solvers.protocol import (
    EXACT,
    PROPOSING,
    Backend,
    Capabilities,
    Claim,
    SolveOptions,
    SolveStatus,
    StopReason,
    Support,
    handling_of,
)

pytestmark = pytest.mark.slow

TESTS = [name for name in dir(BackendConformance) if name.startswith("test_")]


@dataclass
class Walker:
    """The oracle with other promises."""

    capabilities: Capabilities
    name: str = "walker"

    def availability(self) -> Availability:
        return Availability(ok=True)

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        return replace(_walked(problem, options), handling=handling_of(problem, self.capabilities))


_claims: dict[tuple[object, ...], Claim] = {}


def _walked(problem: Problem, options: SolveOptions) -> Claim:
    """Return the claim of the oracle, which is kept: all walkers are asked the same."""
    asked = (problem.fingerprint, options.top, options.time_limit_s)
    if asked not in _claims:
        _claims[asked] = ExhaustiveBackend().solve(problem, options)
    return _claims[asked]


class Kept(ExhaustiveBackend):
    """The oracle that walkers are compared with: it has walked already where they have."""

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        return _walked(problem, options)


@pytest.fixture(autouse=True)
def _once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "ExhaustiveBackend", Kept)


class Silent(Walker):
    """Answers nothing, whatever is asked."""

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        return Claim(
            status=SolveStatus.NO_SOLUTION,
            stop=StopReason.TIME_LIMIT,
            handling=handling_of(problem, self.capabilities),
        )


class Worst(Walker):
    """Says that its plan is the best one, with the last of all plans."""

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        every = super().solve(problem, replace(options, top=100_000))
        return replace(every, plans=every.plans[-1:], values=None, bound=None, proven=0, status=_found(every))


class Loud(Walker):
    """Finds the best plans, and orders them by another objective."""

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        term = list(problem.formulation.terms)[-1]
        claim = super().solve(problem.with_objective(term), options)
        return replace(claim, values=None, bound=None, proven=0, exhausted=False, status=_found(claim))


def _found(claim: Claim) -> SolveStatus:
    return SolveStatus.FEASIBLE if claim.plans else SolveStatus.NO_SOLUTION


def failures(backend: Backend, tests: Sequence[str] = TESTS) -> set[str]:
    """Return the conformance tests that a backend fails."""

    class Conformance(BackendConformance):
        every = 3  # fakes answer every question alike

        def make_backend(self) -> Backend:
            return backend

    failed = set()
    for name in tests:
        try:
            getattr(Conformance(), name)()
        except AssertionError:
            failed.add(name)
    return failed


def promising(support: Support, *names: str) -> Capabilities:
    """Return the promise of a support for some formulations; for all of them without names."""
    if not names:
        return Capabilities(summary="a fake", others=support)
    return Capabilities(summary="a fake", formulations=dict.fromkeys(names, support))


@pytest.mark.parametrize("names", [(), ("chunking",), ("flow_shop",)])
def test_who_keeps_its_promises_passes(names: tuple[str, ...]) -> None:
    assert failures(Walker(promising(EXACT, *names))) == set()
    assert failures(Walker(promising(PROPOSING, *names))) == set()


NO_ANSWER = {
    "test_a_time_limit_is_no_proof_of_infeasibility",
    "test_asking_for_more_plans_than_exist",  # of exact backends only
    "test_the_objective_decides",  # likewise
    "test_plans_that_differ_agree_with_the_oracle",  # where plans have a distance
}
"""What no answer can be right for, or what is not asked of every backend."""


@pytest.mark.parametrize("support", [EXACT, PROPOSING], ids=["exact", "proposing"])
@pytest.mark.parametrize("names", [(), ("chunking",), ("flow_shop",)])
def test_who_answers_nothing_fails(support: Support, names: tuple[str, ...]) -> None:
    assert failures(Silent(promising(support, *names))) >= set(TESTS) - NO_ANSWER


def test_who_answers_nothing_and_says_so_late_fails_nearly_everything() -> None:
    exact = failures(Silent(promising(EXACT)))
    assert set(TESTS) - exact == {"test_a_time_limit_is_no_proof_of_infeasibility"}


def test_who_is_not_exact_but_says_so_fails() -> None:
    failed = failures(Worst(promising(EXACT)))
    assert {
        "test_golden_instances",
        "test_every_objective_agrees_with_the_oracle",
        "test_every_sample_agrees_with_the_oracle",
        "test_every_limit_agrees_with_the_oracle",
        "test_every_kind_of_rule_agrees_with_the_oracle",
        "test_every_quantity_agrees_with_the_oracle",
        "test_the_objective_decides",
        "test_asking_for_more_plans_than_exist",
    } <= failed
    decides = "test_the_objective_decides"
    assert failures(Loud(promising(EXACT)), [decides]) == {decides}


@pytest.mark.parametrize(
    "capabilities",
    [
        Capabilities(summary="nothing"),
        promising(EXACT, "no_such_formulation"),
        promising(replace(EXACT, terms=frozenset())),
        promising(replace(EXACT, terms=frozenset({"no such term"}))),
    ],
    ids=["no formulation", "an unknown one", "no term", "an unknown one"],
)
def test_who_can_be_asked_nothing_fails_everything_that_asks(capabilities: Capabilities) -> None:
    assert failures(Walker(capabilities)) >= set(TESTS)


def test_who_says_that_it_lowers_rules_but_refuses_them_fails() -> None:
    featureless = promising(replace(EXACT, features=frozenset()))
    failed = failures(Walker(featureless))
    assert failed >= {
        "test_every_kind_of_rule_agrees_with_the_oracle",
        "test_every_quantity_agrees_with_the_oracle",
    }
    without_rules = promising(replace(EXACT, features=frozenset(), rules=None, opaque_rules=None))
    assert failures(Walker(without_rules)) <= {"test_golden_instances"}


def test_who_tells_no_handling_fails() -> None:
    class Quiet(Walker):
        def solve(self, problem: Problem, options: SolveOptions) -> Claim:
            return replace(super().solve(problem, options), handling={})

    class Wrong(Walker):
        def solve(self, problem: Problem, options: SolveOptions) -> Claim:
            return replace(
                super().solve(problem, options), handling=handling_of(problem, promising(PROPOSING))
            )

    with pytest.raises(KeyError):
        failures(Quiet(promising(EXACT)))
    assert failures(Wrong(promising(EXACT))) == {"test_every_kind_of_rule_agrees_with_the_oracle"}

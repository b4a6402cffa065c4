"""Candidates that differ: each at least so many layers away from all before it, greedily, with proof.

BetterTogether (III-D, C5) forbids each plan that was found, so that the next one differs somewhere; the
20 best plans are then often one plan with a cut moved to and fro, and what the costs get wrong about
one of them they get wrong about all. With a distance d (`Formulation.difference`; C5 is d = 1) the list is
the *greedy* one:

    p_1 = the first plan of all in the canonical order (`rank_key`),
    p_i = the first plan in the canonical order with distance(p_i, p_j) >= d for all j < i.

It is unique, so that all exact backends return the same one, and p_1 is the optimum whatever d is.

Where plans are the same to people (those of a workload that differ by who of several equal requests is who)
they are one plan: the one that stands for all of them is listed (`Difference.settle`), at distance 1, too.

How it is found: a list of the best plans is walked in order, and each plan that is far enough from all
chosen ones is chosen; whatever the list does not show comes behind it. When it ends too early, a longer
list is asked for, or one without the plans that are too close to a chosen one (`Difference.rule`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..formulations.errors import BackendDisagreementError, InvalidInputError
from ..formulations.judge import rank_key, score
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from .by_units import Present, SolveOne
from .protocol import (
    LEAST_S,
    Capabilities,
    Claim,
    Deadline,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    StopReason,
)
from .result import Candidate, SolveResult

_SHARE = 20
"""How many plans are listed for one that is wanted, by backends that list plans cheaply.

Those are the ones in this process; solvers in a child process pay a call for each further plan, and
opaque rules may be slow, so then only as many are listed as are still missing, at once without those that
are too close. Native lists are cheap (0.02 to 0.1 s for 400 plans of 9x4 to 100x8 layers x units, 0.2 to
0.4 s for 6400), while a rule for each chosen plan slows its search down (20 plans at distance 3, one plan a
question: 0.3 s at 9x4, 1.6 s at 30x6, 7 s at 100x8).
"""
_GROWTH = 4
"""How much longer the next list is."""
_LONGEST = 5000
"""Length from which rules are better than longer lists: these grow without limit with the distance."""


def check_distance(distance: int, *, defined: bool) -> None:
    """Refuse a distance between plans that have none; `defined`: whether they have one."""
    if distance > 1 and not defined:
        raise InvalidInputError(
            f"distance is {distance}, but these plans have none: it is defined for one network, and for "
            "several requests. Leave it out"
        )


def has_same_plans(problem: Problem) -> bool:
    """Return whether a list of the best plans can have plans in it that are the same to people."""
    difference = problem.formulation.difference
    return difference is not None and bool(difference.settling(problem))


def solve_diverse(
    problem: Problem,
    options: SolveOptions,
    capabilities: Capabilities,
    solve_one: SolveOne,
    present: Present,
) -> SolveResult:
    """Solve a problem for plans that differ from each other by `SolveOptions.distance`.

    Status, values and bound are about the best plan; `proven` counts the leading plans that are proven to
    be those of the greedy list, and `exhausted` says that no further plan is far enough from all of them.

    `problem`, `options`: what is asked; a time limit is for all lists together. `capabilities`: of the
    backend. One that takes no rules is asked for longer and longer lists only. `solve_one`: returns a list of
    the best plans, whatever their distance, judged. `present`: brings candidates into the order in which they
    are shown.
    """
    search = _Search(problem, options, capabilities)
    while search.open:
        search.walk(solve_one(*search.question()))
    return search.result(present)


class _Search:
    """The plans that are chosen, and the lists that they were chosen from."""

    def __init__(self, problem: Problem, options: SolveOptions, capabilities: Capabilities) -> None:
        self._problem, self._options = problem, options
        difference, support = problem.formulation.difference, capabilities.support(problem)
        assert difference is not None
        self._difference = difference
        self._ruled = support is not None and support.rules is not None
        self._exact = support is not None and support.exact
        self._cheap = not capabilities.isolated and not problem.opaque_demands
        self._settling = difference.settling(problem) if self._ruled else ()
        # A heuristic has no longer list that would hold plans far from its best one.
        self._steered = self._ruled and (not self._cheap or (not self._exact and options.distance > 1))
        self._deadline = Deadline(options.time_limit_s, options.clock)
        self._chosen: list[Candidate] = []
        self._lists: list[SolveResult] = []
        self._asked = self._proven = 0
        self._nothing_left = False
        self.open = True

    def question(self) -> tuple[Problem, SolveOptions]:
        """Return what to ask next."""
        missing = self._options.top - len(self._chosen)
        longer = self._cheap and self._options.distance > 1 and not self._steered
        usual = missing + min((_SHARE - 1) * missing, _LONGEST) if longer else missing
        # A backend's only proven plan may tie with another one (`Claim.proven`); of two, the first does not.
        self._asked = max(usual, 0 if self._steered else _GROWTH * self._asked, 2)
        left_s = self._deadline.left_s
        if left_s is not None and self._steered and not self._exact:
            left_s /= missing  # it searches until its time is up, and may find no more than one
        options = replace(
            self._options,
            top=self._asked,
            distance=1,
            time_limit_s=None if left_s is None else max(left_s, LEAST_S),
            publish=lambda claim: self._options.publish(self._so_far(claim)),
        )
        rule, least = self._difference.rule, self._options.distance
        if not self._steered:
            return self._problem, options
        rules = (rule(candidate.plan, least) for candidate in self._chosen)
        return self._problem.with_rules(*self._settling, *rules), options

    def walk(self, found: SolveResult) -> None:
        """Choose from a list what is far enough from all chosen before."""
        self._lists.append(found)
        ranked = sorted(map(self._settled, found.candidates), key=self._rank)
        sole = found.proven == 1 and not found.exhausted
        certain = len(ranked) if found.exhausted else 0 if sole else found.proven
        before, wanted = len(self._chosen), self._options.top
        for place, candidate in enumerate(ranked):
            if not self._is_far(candidate.plan):
                continue
            if len(self._chosen) == wanted:
                break
            self._proven += place < certain and self._proven == len(self._chosen)
            self._chosen.append(candidate)
        else:
            self._nothing_left = found.exhausted or found.status is SolveStatus.INFEASIBLE
        stopped = found.stop is StopReason.INTERRUPTED or self._deadline.passed
        done = len(self._chosen) == wanted or self._nothing_left or stopped
        self.open = not done and self._has_more(
            full=len(ranked) == self._asked, new=len(self._chosen) > before
        )

    def _has_more(self, *, full: bool, new: bool) -> bool:
        """Return whether another question may give more; the next one has rules where they are better."""
        if self._steered:
            return new
        if not self._exact and self._options.distance == 1:
            return full  # a heuristic that has no more is not pressed for others
        if self._ruled and (not full or self._asked >= _LONGEST):
            self._steered = True
            return bool(self._chosen)
        return full

    def _rank(self, candidate: Candidate) -> tuple[object, ...]:
        return rank_key(self._problem, candidate.score)

    def _settled(self, candidate: Candidate) -> Candidate:
        """Return the plan that stands for all that are the same to people."""
        plan = self._difference.settle(self._problem, candidate.plan)
        same = plan == candidate.plan
        return candidate if same else Candidate(plan=plan, score=score(self._problem, plan))

    def _is_far(self, plan: Plan) -> bool:
        return all(
            self._difference.between(plan, other.plan) >= self._options.distance for other in self._chosen
        )

    def _so_far(self, claim: Claim) -> Claim:
        """Return what is known during a list: the chosen plans, and the best one that is new; no proof."""
        plans = [candidate.plan for candidate in self._chosen]
        found = (self._difference.settle(self._problem, plan) for plan in claim.plans[:1])
        plans += [plan for plan in found if self._is_far(plan)]
        about = self._lists[0] if self._chosen else claim
        return replace(
            claim,
            status=SolveStatus.FEASIBLE if plans else SolveStatus.NO_SOLUTION,
            plans=tuple(plans),
            values=about.values,
            bound=about.bound,
            plan_source=about.plan_source or claim.plan_source,
            bound_source=about.bound_source or claim.bound_source,
            proven=0,
            exhausted=False,
            handling=self._handling(claim.handling),
        )

    def _handling(self, handling: Mapping[str, RuleHandling]) -> dict[str, RuleHandling]:
        """Return how the rules of the user were handled, without those that keep plans apart."""
        return {rule.name: handling[rule.name] for rule in self._problem.rules if rule.name in handling}

    def result(self, present: Present) -> SolveResult:
        """Return the answer to the whole: that of the first list, with the plans of all."""
        first, ranked = self._lists[0], sorted(self._chosen, key=self._rank)
        values = ranked[0].score.values(self._problem.objective.terms) if ranked else None
        if values != first.values and first.status is SolveStatus.OPTIMAL:
            raise BackendDisagreementError(
                f"backend {first.backend!r} claims an optimum of {first.values}, and later lists "
                f"[{ranked[0].plan}] with {values}"
            )
        proven = max(self._proven, int(first.status is SolveStatus.OPTIMAL))
        exhausted = self._nothing_left and proven == len(ranked)
        statistics: dict[str, int | float | str] = {
            **first.statistics,
            "lists": len(self._lists),
            "listed": sum(len(found.candidates) for found in self._lists),
        }
        bound = first.bound
        if bound is not None and values is not None and bound > values[0]:
            statistics["refuted_bound"], bound = bound, None
        return replace(
            first,
            stop=StopReason.COMPLETE if exhausted or proven == self._options.top else self._stop(),
            runtime_s=sum(found.runtime_s for found in self._lists),
            startup_s=sum(found.startup_s for found in self._lists),
            start_s=sum(found.start_s for found in self._lists),
            candidates=present(self._problem, ranked),
            objective=values[0] if values else None,
            values=values,
            bound=bound,
            proven=proven,
            exhausted=exhausted,
            handling=self._handling(first.handling),
            statistics=statistics,
        )

    def _stop(self) -> StopReason:
        reasons = [found.stop for found in self._lists if found.stop is not StopReason.COMPLETE]
        late = StopReason.TIME_LIMIT if self._deadline.passed else StopReason.COMPLETE
        return reasons[-1] if reasons else late

"""How an answer came about: which plan and which bound a backend had when, and what that is worth.

What a backend publishes while it works is noted with its time, and judged when the answer is there, so that
the judge takes none of the time of the search. A plan that the judge refuses is no milestone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..formulations.errors import InvalidPlanError
from ..formulations.judge import score
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from .protocol import Claim, Clock, unwatched
from .result import Milestone, SolveResult
from .sources import Source

NEAR = 0.01
"""Share of the best value within which a plan counts as near the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """A published claim, not judged."""

    at_s: float
    plan: Plan | None
    bound: int | None
    plan_source: Source
    bound_source: Source


class Recorder:
    """Notes what a backend publishes: of each claim the first plan and the bound, where one got better.

    `clock`: that of the search (`SolveOptions.clock`); None: one of its own.
    """

    def __init__(
        self, problem: Problem, publish: Callable[[Claim], None] = unwatched, clock: Clock | None = None
    ) -> None:
        self._problem, self._tell = problem, publish
        self.clock = clock or Clock()
        self._started = self.clock.now()
        self._notes: list[_Note] = []
        self._values: tuple[int, ...] | None = None
        self._bound = 0

    def publish(self, claim: Claim) -> None:
        """Note a claim, and pass it on (`SolveOptions.publish`)."""
        at_s = round(self.clock.now() - self._started, 6)
        # The slack mode asks two questions, and its first plans and bounds are about the other one.
        if self._problem.objective.period_slack_permille is None:
            self._note(at_s, claim)
        self._tell(claim)

    def _note(self, at_s: float, claim: Claim) -> None:
        better = bool(claim.plans) and (
            claim.values is None or self._values is None or claim.values < self._values
        )
        bound = claim.bound if claim.bound is not None and claim.bound > self._bound else None
        if not better and bound is None:
            return
        self._values = claim.values if better and claim.values is not None else self._values
        self._bound = bound or self._bound
        self._notes.append(
            _Note(
                at_s=at_s,
                plan=claim.plans[0] if better else None,
                bound=bound,
                plan_source=claim.plan_source,
                bound_source=claim.bound_source,
            )
        )

    def course(self, result: SolveResult) -> tuple[Milestone, ...]:
        """Return the milestones on the way to an answer, which is the last one.

        Bounds that the answer itself refutes are left out.
        """
        best, end_s = result.objective, result.runtime_s
        found: list[Milestone] = []
        for note in self._notes:
            value = None if note.plan is None else self._judged(note.plan)
            bound = None if best is not None and (note.bound or 0) > best else note.bound
            _add(found, note.at_s, (value, note.plan_source), (bound, note.bound_source))
        last_s = max([round(end_s, 6), *(milestone.at_s for milestone in found[-1:])])
        _add(found, last_s, (best, result.plan_source), (result.bound, result.bound_source))
        return tuple(found)

    def _judged(self, plan: Plan) -> int | None:
        """Return the value of a plan by the judge; None: it is not valid."""
        try:
            judged = score(self._problem, plan)
        except InvalidPlanError:
            return None
        return judged.value(self._problem.objective.terms[0]) if judged.valid else None


_Known = tuple[int | None, Source | None]
"""A value or a bound, and where it comes from."""


def _add(found: list[Milestone], at_s: float, plan: _Known, bound: _Known) -> None:
    """Add what is known at a time, if it is better than what was known before."""
    before = found[-1] if found else Milestone(at_s=0.0)
    less = plan[0] is not None and (before.value is None or plan[0] < before.value)
    more = bound[0] is not None and (before.bound is None or bound[0] > before.bound)
    if less or more:
        plan = plan if less else (before.value, before.plan_source)
        bound = bound if more else (before.bound, before.bound_source)
        found.append(
            Milestone(at_s=at_s, value=plan[0], bound=bound[0], plan_source=plan[1], bound_source=bound[1])
        )


def credited(one: Milestone) -> int | None:
    """Return the value of the best plan that counts as a backend's own; None: there is none.

    A plan that was handed over (`Source.START`) is nobody's find. It counts from when the backend itself has
    proved that no plan is better.
    """
    confirmed = one.bound == one.value and one.bound_source is Source.OWN
    return one.value if one.plan_source is not Source.START or confirmed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a backend came to a good plan of its own (`credited`); None: never, or nothing to measure by.

    Attributes
    ----------
    first_plan_s
        Seconds of the search until its first valid plan.
    near_best_s
        Seconds until its first plan within 1 % of the best that is known.
    primal_integral_s
        Area under its primal gap over time (`primal_integral_s`).
    """

    first_plan_s: float | None = None
    near_best_s: float | None = None
    primal_integral_s: float | None = None


def pace_of(course: Sequence[Milestone], best: int | None, horizon_s: float) -> Pace:
    """Return how fast a course came to a good plan.

    `course`: milestones in the order of time; empty: there was neither plan nor bound. `best`: the best value
    that anybody has; None: nobody has a plan.
    """
    if best is None:
        return Pace()
    times = [(one.at_s, value) for one in course if (value := credited(one)) is not None]
    return Pace(
        first_plan_s=next((at_s for at_s, _ in times), None),
        near_best_s=next((at_s for at_s, value in times if value <= (1 + NEAR) * best), None),
        primal_integral_s=primal_integral_s(course, best, horizon_s),
    )


def primal_gap(value: int | None, best: int) -> float:
    """Return |value - best| / max(|value|, |best|), from 0 to 1; 1 without a plan, 0 where both are 0."""
    if value is None:
        return 1.0
    return abs(value - best) / max(abs(value), abs(best), 1)


def primal_integral_s(course: Sequence[Milestone], best: int, horizon_s: float) -> float:
    """Return the area under the primal gap over the time of a search, in seconds; less is better.

    0: the best plan was there at once; `horizon_s`: there was none at all. Plans that were handed over count
    as `credited` says. From T. Berthold, "Measuring the
    impact of primal heuristics", Operations Research Letters 41 (2013), 611-614, with the best known value in
    the place of the optimum.
    """
    return sum((stop - start) * primal_gap(value, best) for start, stop, value in _steps(course, horizon_s))


def _steps(course: Sequence[Milestone], horizon_s: float) -> Iterator[tuple[float, float, int | None]]:
    """Yield from when to when there was which value, until the horizon."""
    start, value = 0.0, None
    for milestone in course:
        stop = min(milestone.at_s, horizon_s)
        yield start, stop, value
        start, value = stop, credited(milestone)
    yield start, max(start, horizon_s), value

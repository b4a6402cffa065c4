"""Trade-offs: all plans that no other plan is better than, in two or three terms, each with its proof.

A plan is on the front if no plan is at least as good in every term and better in one. The front is found by
epsilon constraints on exact integers. A *box* bounds all terms but the first from above. The best plan of a
box in lexicographic order is on the front, and whatever else of the front lies in the box is smaller in one
of the bounded terms, since none is smaller in the first: with the values z of that plan the rest is in the
boxes whose bound j is z[j] - 1. Values are integers, so nothing lies between.

With two terms these boxes are a chain: one solve a point, and one for the least value of the second term,
where the chain ends. With three they overlap; two things keep them few. A box inside one that waits need
not wait, and a box inside one that was solved has the answer of that one, if it lies in it, or none, if that
one had none: Ozlen, Burton and MacRae (2014),
"Multi-objective integer programming: an improved recursive algorithm"; Kirlik and Sayin (2014), "A new
algorithm for generating all nondominated solutions of multiobjective discrete optimization problems".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..formulations.errors import InvalidInputError
from ..formulations.limits import LIMIT_NAMES
from ..formulations.problem import Problem
from ..formulations.rules import Rule
from ..formulations.terms import Objective
from ..formulations.validation import meant, shown
from .protocol import LEAST_S, Backend, Clock, Deadline, SolveOptions, SolveStatus, StopReason
from .result import Candidate, SolveResult, relative_gap
from .session import solve

FEWEST_TERMS, MOST_TERMS = 2, 3

_SHARE = 8
"""A solve may take one in this number of parts of the time that is left."""

_OPEN = 1 << 63
"""A bound that no value reaches."""

Box = tuple[int, ...]
"""Upper bounds of the terms after the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoPoint:
    """One plan of a front.

    Attributes
    ----------
    candidate
        The plan with its score.
    values
        Its values of the terms, in their order.
    proven
        Whether it is proved that no plan of the class is better in one of the terms and as good in the
        others.
    bound
        What the first term is at least, of all plans that are as good in the others; None: not known.
    measured
        What was measured of it, by the names of scores; empty: it was not run.
    """

    candidate: Candidate
    values: tuple[int, ...]
    proven: bool
    bound: int | None
    measured: Mapping[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """(value - bound) / value of the first term; 0 where it is proven, None without a bound."""
        return 0.0 if self.proven else relative_gap(self.values[0], self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoFront:
    """Plans that no other known plan is better than.

    Attributes
    ----------
    terms
        What is traded, the first one first.
    points
        The plans, by their values.
    complete
        Whether it is proved that these are all: for each further plan of `plan_class` there is one that is as
        good in every term.
    stop
        Why the search ended.
    backend, version
        Who solved.
    fingerprint
        `Problem.fingerprint`.
    plan_class
        Which plans the proofs are about (`Problem.plan_class`).
    solves
        How many problems were solved.
    runtime_s
        Wall-clock seconds altogether.
    energy_by
        Of measured plans, how their energy is known; empty: it is not.
    """

    terms: tuple[str, ...]
    points: tuple[ParetoPoint, ...]
    complete: bool
    stop: StopReason
    backend: str
    version: str
    fingerprint: str
    plan_class: str
    solves: int
    runtime_s: float
    energy_by: str = ""

    def fields(self, problem: Problem) -> tuple[str, ...]:
        """Return the terms with their units, as scores call them."""
        return tuple(problem.formulation.terms[term].field for term in self.terms)


class ParetoSearch:
    """The state of one search for a front; see the module.

    `options`: a time limit is for all solves together; what is asked of lists does not count.
    Raises InvalidInputError: the terms are not two or three different ones of the problem.
    """

    def __init__(
        self,
        problem: Problem,
        terms: Sequence[str],
        backend: str | Backend,
        options: SolveOptions | None = None,
        *,
        isolate: bool = False,
        strict_rules: bool = False,
        on_point: Callable[[ParetoPoint], None] = lambda point: None,
    ) -> None:
        check_terms(problem, terms)
        self._terms, self._fingerprint = tuple(terms), problem.fingerprint
        self._problem = replace(problem, objective=Objective(terms=self._terms))
        self._options = replace(options or SolveOptions(), top=1, distance=1, clock=Clock())
        self._deadline = Deadline(self._options.time_limit_s, self._options.clock)
        self._began = time.monotonic()
        self._on_point = on_point
        self._backend = backend
        self._how = {"isolate": isolate, "strict_rules": strict_rules, "explain": False}
        self._waiting: list[Box] = [(_OPEN,) * (len(self._terms) - 1)]
        self._least = [0] * (len(self._terms) - 1)
        self._solved: list[tuple[Box, tuple[int, ...] | None]] = []
        self._points: dict[tuple[int, ...], ParetoPoint] = {}
        self._answers: list[SolveResult] = []
        self._left_open = False

    def run(self) -> ParetoFront:
        """Search until all boxes are done or the time is up."""
        for place in range(len(self._least)):
            self._find_least(place)
        while self._waiting and not self._deadline.passed:
            box = max(self._waiting)  # the largest first: smaller ones may then be known
            known = [values for solved, values in self._solved if _inside(box, solved)]
            known = [values for values in known if values is None or _inside(values[1:], box)]
            values = known[0] if known else None if self._is_empty(box) else self._ask(box)
            self._waiting.remove(box)
            if values is not None:
                self._split(box, values)
        return self.front()

    def front(self, stop: StopReason | None = None) -> ParetoFront:
        """Return what is known so far.

        `stop`: why the search ended before its time.
        """
        found = [point for point in self._points.values() if not self._is_beaten(point)]
        found.sort(key=lambda point: point.values)
        complete = not self._waiting and not self._left_open and all(point.proven for point in found)
        reasons = [each.stop for each in self._answers if each.stop is not StopReason.COMPLETE]
        late = StopReason.TIME_LIMIT if self._waiting else StopReason.COMPLETE
        answer = self._answers[-1] if self._answers else None
        return ParetoFront(
            terms=self._terms,
            points=tuple(found),
            complete=complete,
            stop=stop or (StopReason.COMPLETE if complete else next(iter(reasons), late)),
            backend=answer.backend if answer else str(getattr(self._backend, "name", self._backend)),
            version=answer.version if answer else "",
            fingerprint=self._fingerprint,
            plan_class=self._problem.plan_class,
            solves=len(self._answers),
            runtime_s=time.monotonic() - self._began,
        )

    def _find_least(self, place: int) -> None:
        """Find the least value of a bounded term: to prove that a box below it is empty is harder."""
        term = self._terms[place + 1]
        order = (term, *(other for other in self._terms if other != term))
        answer = self._solve(replace(self._problem, objective=Objective(terms=order)))
        if answer.bound is not None:
            self._least[place] = answer.bound
        if answer.status is SolveStatus.INFEASIBLE:
            self._solved.append((self._waiting[0], None))
        if answer.best is not None:
            values = answer.best.score.values(self._terms)
            proven = answer.status is SolveStatus.OPTIMAL
            self._keep(ParetoPoint(candidate=answer.best, values=values, proven=proven, bound=None))

    def _is_empty(self, box: Box) -> bool:
        return any(most < least for most, least in zip(box, self._least, strict=True))

    def _ask(self, box: Box) -> tuple[int, ...] | None:
        """Solve a box; return the values of its best plan, or None if none was found."""
        around = (values[0] for solved, values in self._solved if values and _inside(box, solved))
        answer = self._solve(within(self._problem, self._terms, box), max(around, default=None))
        proven = answer.status in (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE)
        if proven:
            self._solved.append((box, answer.values))
        if answer.best is None or answer.values is None:
            self._left_open |= not proven
            return None
        self._keep(
            ParetoPoint(candidate=answer.best, values=answer.values, proven=proven, bound=answer.bound)
        )
        return answer.values

    def _solve(self, problem: Problem, at_least: int | None = None) -> SolveResult:
        """Solve a problem in its share of the time."""
        left_s = self._deadline.left_s
        share_s = None if left_s is None else max(left_s / _SHARE, LEAST_S)
        options = replace(self._options, time_limit_s=share_s, at_least=at_least)
        answer = solve(problem, self._backend, options, **self._how)
        self._answers.append(answer)
        return answer

    def _keep(self, point: ParetoPoint) -> None:
        known = self._points.get(point.values)
        if known is None:
            self._on_point(point)
        if known is None or point.proven or (point.bound is not None and not known.proven):
            self._points[point.values] = point

    def _split(self, box: Box, values: tuple[int, ...]) -> None:
        """Let the boxes wait that hold the rest of a box."""
        for place, value in enumerate(values[1:]):
            rest = (*box[:place], value - 1, *box[place + 1 :])
            if value > 0 and not any(_inside(rest, other) for other in self._waiting):
                self._waiting = [other for other in self._waiting if not _inside(other, rest)]
                self._waiting.append(rest)

    def _is_beaten(self, point: ParetoPoint) -> bool:
        return any(_inside(other, point.values) for other in self._points if other != point.values)


def _inside(values: Sequence[int], bounds: Sequence[int]) -> bool:
    return all(value <= bound for value, bound in zip(values, bounds, strict=True))


def within(problem: Problem, terms: Sequence[str], box: Box) -> Problem:
    """Return a problem whose terms after the first are at most some numbers, as limits or as rules."""
    formulation, limits, rules = problem.formulation, {}, []
    for term, most in zip(terms[1:], box, strict=True):
        info, name = formulation.terms[term], f"max_{formulation.terms[term].field}"
        if most == _OPEN:
            continue
        if name in LIMIT_NAMES and name in formulation.limits:
            given = getattr(problem.limits, name)
            limits[name] = most if given is None else min(most, given)
            continue
        if info.excess is not None:
            condition = info.excess(problem.tables, most) <= 0
        else:
            condition = formulation.variables(problem).number(info.field) <= most
        text = f"the {info.label} is at most {most}"
        rules.append(Rule(name=f"pareto_{term}", expr=condition, text=text))
    return problem.with_limits(**limits).with_rules(*rules)


def check_terms(problem: Problem, terms: Sequence[str]) -> None:
    """Refuse terms that no front is of."""
    known = problem.formulation.terms
    for term in terms:
        if term not in known:
            raise InvalidInputError(f"a front of {shown(term)}: {meant(term, tuple(known))}")
    for term, reason in problem.formulation.unknown(problem).items():
        if term in terms:
            raise InvalidInputError(reason)
    if len(set(terms)) != len(terms) or not FEWEST_TERMS <= len(terms) <= MOST_TERMS:
        raise InvalidInputError(
            f"a front of {', '.join(terms) or 'nothing'}: give {FEWEST_TERMS} or {MOST_TERMS} different "
            f"terms, such as {','.join(list(known)[:2])}"
        )

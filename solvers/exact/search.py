"""Best plans first, with proof: the search that all exact third-party solvers share.

Plans are ordered by integer levels. The search keeps a pool of plans that it has seen
and bars them from the solver, so every further answer is about the plans *not yet seen*; it also keeps,
for each prefix of a key, a proven lower bound of the next level over the unseen plans. The first plan
of the pool is next in order as soon as these bounds rule out an unseen one before it.

A question is asked at the first level where something is open: while few plans of a group (equal
prefix) are seen, "the least of this level, please" yields one plan a call and, when its value jumps,
the proof for the whole group. Only when a group turns out to be larger than the number of plans that
are still wanted does the search go down one level. So K plans cost about K calls, ties included.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import takewhile
from math import inf
from typing import Any, Generic, Protocol, runtime_checkable

from ...formulations.errors import BackendFailedError, MalformedPlanError, UnsupportedFeatureError
from ...formulations.expr import BoolExpr, Expr, VariableKey, linear
from ...formulations.judge import examined
from ...formulations.model import CodeT, Digits, Encoded, Model, Task, Values
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.terms import PlanNumbers
from ..protocol import Capabilities, Claim, Deadline, SolveOptions, SolveStatus, StopReason, handling_of
from ..sources import Source
from .lowering import Lowering


class LargeNumbersError(ArithmeticError):
    """A condition or an objective whose sums leave the numbers that a solver can count with."""


class Verdict(StrEnum):
    """What a solver knows after one question.

    OPTIMAL
        The values are a best solution, proven.
    FEASIBLE
        The values are a solution; the time was up before a proof.
    INFEASIBLE
        There is no solution, proven.
    UNKNOWN
        Nothing.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question to a solver; all expressions are in the normal form of `lowering.py`."""

    objective: Expr  # what to minimise
    conditions: tuple[BoolExpr, ...]  # what must hold in addition, for this question only
    at_least: int | None
    """A lower bound of the objective that is known already: a solution that reaches it is optimal."""
    deadline: Deadline  # when to stop
    progress: Callable[[Values | None, int | None], None]
    """To be called with every better solution and bound on the way (either may be None), by solvers that
    can."""
    hint: Mapping[VariableKey, int] | None = None
    """The value of every variable in a solution that is known already, or None; for solvers that can start
    from one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortAnswer:
    """What a solver found: a solution, if any, and a proven lower bound of the objective, if any."""

    verdict: Verdict
    values: Values | None = None
    bound: int | None = None


def reader_of(hint: Mapping[VariableKey, int]) -> Values:
    """Return the values of variables as a function; what the hint leaves open is 0."""
    return lambda variable: hint.get(variable.key, 0)


class Port(Protocol):
    """A solver that holds a growing set of conditions."""

    def add(self, condition: BoolExpr) -> None:
        """Add a condition in normal form, for all questions to come."""
        ...

    def minimise(self, query: Query) -> PortAnswer:
        """Answer one question."""
        ...


@runtime_checkable
class Scheduler(Protocol):
    """A port whose solver knows tasks that cannot be done at the same time."""

    def share(self, tasks: Sequence[Task]) -> None:
        """Add "no two of these tasks overlap"; their expressions are in normal form."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to minimise in order to learn about one level."""

    objective: Expr  # in normal form
    at_least: int | None  # a known lower bound of the objective over the plans not yet seen, or None
    learn: Callable[[int], int]  # from a proven lower bound of the objective to one of the level


class Level(Protocol):
    """One integer key of a plan."""

    def value(self, code: Any, numbers: PlanNumbers) -> int:
        """Return the key of a plan."""
        ...

    def at_most(self, most: int) -> BoolExpr:
        """Return the condition that the key is at most a number."""
        ...

    def question(self, least: int, known: int | None) -> Question:
        """Return what to minimise, given that the key of every plan not yet seen is at least `least`.

        `known` is the least key among the plans that are seen already, or None.
        """
        ...


class TermLevel:
    """An objective term that is an integer quantity, given by an expression."""

    def __init__(self, lowering: Lowering, term: str, expr: Expr) -> None:
        self._lowering = lowering
        self._term = term
        self._expr = lowering.number(expr)

    def value(self, code: Any, numbers: PlanNumbers) -> int:
        """Return the term of a plan."""
        return numbers.term(self._term)

    def at_most(self, most: int) -> BoolExpr:
        """Return "the term is at most `most`"."""
        return self._lowering.at_most(self._expr, most)

    def question(self, least: int, known: int | None) -> Question:
        """Minimise the term itself."""
        return Question(objective=self._expr, at_least=least, learn=lambda bound: max(bound, least))


class RatioLevel:
    """An objective term that is a ratio of two quantities, such as the share of the platform that is idle.

    `ratio <= v` is linear for a fixed v, so the least ratio is found as in Dinkelbach (1967): minimise
    the excess over v; when it is positive no plan reaches v, otherwise its plan gives the next v.

    `excess`: from v to an expression that is at most 0 exactly if the term is at most v (`TermInfo.excess`).
    """

    def __init__(self, lowering: Lowering, term: str, excess: Callable[[int], Expr]) -> None:
        self._lowering = lowering
        self._term = term
        self._excess = excess

    def value(self, code: Any, numbers: PlanNumbers) -> int:
        """Return the term of a plan."""
        return numbers.term(self._term)

    def at_most(self, most: int) -> BoolExpr:
        """Return "the term is at most `most`"."""
        return self._lowering.at_most(self._excess(most), 0)

    def question(self, least: int, known: int | None) -> Question:
        """Minimise the excess over the best value that is not refuted."""
        target = least if known is None or known <= least else known - 1
        objective = self._lowering.number(self._excess(target))
        return Question(
            objective=objective,
            at_least=None,
            learn=lambda bound: max(least, target + 1) if bound > 0 else least,
        )


class OrderLevel:
    """A few digits of the canonical order, as one number (`Digits`)."""

    def __init__(self, lowering: Lowering, digits: Digits[Any], first: int, stop: int) -> None:
        self._lowering, self._digits = lowering, digits
        self._first, self._stop = first, stop
        weights = [digits.base ** (stop - 1 - place) for place in range(first, stop)]
        terms = zip(weights, digits.symbols[first:stop], strict=True)
        self._expr = lowering.number(linear(terms))

    def value(self, code: Any, numbers: PlanNumbers) -> int:
        """Return the number that stands for these digits of a plan."""
        number = 0
        for digit in self._digits.of(code)[self._first : self._stop]:
            number = number * self._digits.base + digit
        return number

    def at_most(self, most: int) -> BoolExpr:
        """Return "the number is at most `most`"."""
        return self._lowering.at_most(self._expr, most)

    def question(self, least: int, known: int | None) -> Question:
        """Minimise the number itself."""
        return Question(objective=self._expr, at_least=least, learn=lambda bound: max(bound, least))


def build_levels(
    problem: Problem, encoded: Encoded[Any], lowering: Lowering, largest_number: int
) -> tuple[Level, ...]:
    """Return the levels of the canonical order: the terms that rank plans, then the digits of the order.

    `largest_number`: digits are taken together as long as their number stays below this.
    """
    levels: list[Level] = [_term_level(problem, term, lowering) for term in problem.ranking]
    digits = encoded.digits
    if digits is None:
        return tuple(levels)
    width = 1
    while digits.base ** (width + 1) <= largest_number:
        width += 1
    count = len(digits.symbols)
    starts = range(0, count, width)
    levels += (OrderLevel(lowering, digits, first, min(first + width, count)) for first in starts)
    return tuple(levels)


def _term_level(problem: Problem, term: str, lowering: Lowering) -> Level:
    info = problem.formulation.terms[term]
    if info.excess is not None:
        return RatioLevel(lowering, term, partial(info.excess, problem.tables))
    variable = problem.formulation.variables(problem).number(info.field)
    return TermLevel(lowering, term, variable)


Key = tuple[int, ...]
"""The position of a plan in the canonical order: first the values of the levels."""


class Space(Generic[CodeT]):
    """The plans of one problem, and what a solver knows about them.

    `largest_number`: largest coefficient that the solver handles well in an objective.
    `name`: name of the encoding. `complete`: whether every valid plan is a solution of the model; otherwise a
    best one is.
    """

    def __init__(
        self, problem: Problem, encoded: Encoded[CodeT], lowering: Lowering, largest_number: int
    ) -> None:
        self.name, self.complete = encoded.name, encoded.complete
        # what the search optimises, most important first
        self.levels = build_levels(problem, encoded, lowering, largest_number)
        # whether they tell all plans apart. Otherwise keys are longer, and any of the plans that are equal at
        # all levels will do
        self.levels_decide = encoded.digits is not None
        self._problem, self._encoded, self._lowering = problem, encoded, lowering

    def decode(self, values: Values) -> CodeT:
        """Return the plan of a solution."""
        return self._encoded.decode(values)

    def exclude(self, code: CodeT) -> BoolExpr:
        """Return the condition, in normal form, that a plan is another one."""
        return self._lowering.truth(self._encoded.exclude(code))

    def tighter(self) -> list[BoolExpr]:
        """Return further rows in normal form (`Encoded.tighter`)."""
        rows = () if self._encoded.tighter is None else self._encoded.tighter()
        return [self._lowering.truth(row.expr) for row in rows]

    def plan(self, code: CodeT) -> Plan:
        """Return a plan by name."""
        return self._problem.formulation.plan(self._problem, code)

    def judge(self, code: CodeT) -> tuple[Key, frozenset[str]]:
        """Return the key of a plan (empty if it is not valid) and the rules that it breaks.

        Raises MalformedPlanError: what the model holds to be a plan is none.
        """
        formulation = self._problem.formulation
        formulation.code(self._problem, self.plan(code))
        numbers, broken = examined(self._problem, code)
        if broken:
            return (), frozenset(violation.rule for violation in broken)
        key = tuple(level.value(code, numbers) for level in self.levels)
        return key if self.levels_decide else key + formulation.key(self._problem, code), frozenset()

    def hint(self, code: CodeT) -> Mapping[VariableKey, int] | None:
        """Return the value of every variable of the model on a plan, if that is known."""
        return None if self._encoded.assign is None else self._encoded.assign(code)


_PUBLISH_EVERY_S = 0.2


def too_large(what: str, error: LargeNumbersError) -> UnsupportedFeatureError:
    """Return what is said of numbers that a solver cannot count with."""
    return UnsupportedFeatureError(
        f"{what} needs {error}: use smaller factors, coarser units, or another backend (native, z3)",
        {"numbers too large for the solver"},
    )


def add_model(model: Model, lowering: Lowering, port: Port, deadline: Deadline) -> None:
    """Give all constraints of a model to a solver, or stop early when the time is up.

    Raises UnsupportedFeatureError: the numbers of a constraint are too large for the solver.
    """
    for constraint in model.constraints:
        if deadline.passed:
            break  # the search stops before its first question
        try:
            port.add(lowering.truth(constraint.expr))
        except LargeNumbersError as error:
            raise too_large(f"the rule or limit {constraint.name!r}", error) from None
    for sharing in model.sharing:
        if deadline.passed:
            break
        if isinstance(port, Scheduler):
            tasks = [replace(task, start=lowering.number(task.start)) for task in sharing.tasks]
            port.share(tasks)
        else:
            for row in sharing.rows:
                port.add(lowering.truth(row))


class Search(Generic[CodeT]):
    """The state of one enumeration; see the module.

    `seed`: a plan to start from, or None. It has to be a solution of the model. `given`: the lower bound on
    the first level that came with it, or None. `at_least`: a lower bound on the first level that is known
    already.
    """

    def __init__(
        self,
        *,
        problem: Problem,
        options: SolveOptions,
        capabilities: Capabilities,
        space: Space[CodeT],
        lowering: Lowering,
        port: Port,
        deadline: Deadline,
        seed: CodeT | None = None,
        given: int | None = None,
        at_least: int | None = None,
    ) -> None:
        self._problem, self._options, self._capabilities = problem, options, capabilities
        self._space, self._levels, self._lowering = space, space.levels, lowering
        self._port, self._deadline = port, deadline
        self._opaque = problem.opaque_demands
        self._proven: list[tuple[Key, CodeT]] = []
        self._pool: list[tuple[Key, CodeT]] = []
        self._incumbent: list[tuple[Key, CodeT]] = []
        """The best plan that is known and not barred from the solver, if any."""
        self._seen: set[CodeT] = set()
        self._least: dict[Key, float] = {} if at_least is None else {(): at_least}
        self._counts = {"calls": 0, "rejected": 0, "refuted": 0, "loose": 0}
        self._stop = StopReason.COMPLETE
        self._shown = time.monotonic()
        if seed is not None:
            self._consider(seed)
        self._seed = self._incumbent[0][0] if self._incumbent else None
        self._given = given

    def run(self) -> Claim:
        """Enumerate until there are enough plans, no more plans, or no more time."""
        while self._stop is StopReason.COMPLETE and not self._enough():
            level = self._open_level()
            if level is None and not self._pool:
                break
            if level is None:
                self._proven.append(self._pool.pop(0))
                self._options.publish(self._claim())
            elif self._deadline.passed:
                self._stop = StopReason.TIME_LIMIT
            else:
                self._ask(level)
        return self._claim()

    def _enough(self) -> bool:
        """Return whether nothing more is to be found out.

        Where the levels do not tell all plans apart, the best plan is one that no other is better than.
        """
        if self._options.top == 1 and not self._space.levels_decide:
            best = min(self._pool + self._incumbent, default=None)
            if best is not None and self._terms_settled(best[0]):
                return True
        return len(self._proven) >= self._options.top

    def _open_level(self) -> int | None:
        """Return the level to ask about next; None if the first plan of the pool is settled."""
        if not self._pool:
            return None if self._least.get((), 0) == inf else 0
        head = self._pool[0][0]
        wanted = self._options.top - len(self._proven)
        for index in range(len(self._levels)):
            least = self._least.get(head[:index], 0)
            if least > head[index]:
                return None
            group = sum(key[: index + 1] == head[: index + 1] for key, _ in self._pool[:wanted])
            if least < head[index] or group < wanted:
                return index
        return None

    def _ask(self, index: int) -> None:
        """Learn more about one level of the group that the first plan of the pool belongs to."""
        head = self._pool[0][0] if self._pool else None
        known = head or (self._incumbent[0][0] if self._incumbent else None)
        prefix = head[:index] if head else ()
        conditions = [self._levels[i].at_most(value) for i, value in enumerate(prefix)]
        cutoff = self._cutoff(prefix)
        if cutoff is not None:
            conditions.append(self._levels[index].at_most(cutoff))
        least = int(self._least.get(prefix, 0))
        question = self._levels[index].question(least, known[index] if known else None)

        def progress(values: Values | None, bound: int | None) -> None:
            if bound is not None:
                self._learn(prefix, question.learn(bound))
            self._show(values)

        self._take_channels()
        query = Query(
            objective=question.objective,
            conditions=tuple(conditions),
            at_least=question.at_least,
            deadline=self._deadline,
            progress=progress,
            hint=self._space.hint(self._incumbent[0][1]) if self._incumbent else None,
        )
        answer = self._port.minimise(query)
        self._counts["calls"] += 1
        if answer.verdict is Verdict.INFEASIBLE:
            refuted = inf if cutoff is None else cutoff + 1
            self._check_denial((*prefix, refuted))
            self._learn(prefix, refuted)
        elif answer.bound is not None:
            self._learn(prefix, question.learn(answer.bound))
        taken = self._take(answer)
        if answer.verdict is Verdict.OPTIMAL and isinstance(self._levels[index], TermLevel):
            loose = taken[: index + 1] > (*prefix, self._least[prefix])
            if loose and not self._counts["loose"]:
                for row in self._space.tighter():
                    self._port.add(row)
            self._counts["loose"] += loose
        if not self._proven:
            self._options.publish(self._claim())

    def _cutoff(self, prefix: Key) -> int | None:
        """Return the value beyond which plans of a group are not wanted, if that is known."""
        wanted = self._options.top - len(self._proven)
        known = sorted(self._pool + self._incumbent)
        if len(known) < wanted:
            return None
        last = known[wanted - 1][0]
        return last[len(prefix)] if last[: len(prefix)] == prefix else None

    def _learn(self, prefix: Key, least: float) -> None:
        self._least[prefix] = max(least, self._least.get(prefix, 0))

    def _check_denial(self, least: tuple[float, ...]) -> None:
        """Refuse a proof that there is no plan before a key, if one is known that the solver may return."""
        for key, code in self._incumbent:
            if key[: len(least) - 1] == least[:-1] and key[len(least) - 1] < least[-1]:
                raise BackendFailedError(f"the solver denies that there is the plan {code}")

    def _take(self, answer: PortAnswer) -> Key:
        """Put the plan of an answer into the pool, if it is valid, and bar it from the solver.

        The result is its key; empty without a valid plan.
        """
        if answer.values is None:
            if answer.verdict is Verdict.UNKNOWN:
                self._give_up()
            return ()
        code = self._space.decode(answer.values)
        if code in self._seen:
            raise BackendFailedError(f"the solver returned the plan {code} although it is ruled out")
        self._seen.add(code)
        self._incumbent = [entry for entry in self._incumbent if entry[1] != code]
        self._port.add(self._space.exclude(code))
        try:
            key, broken = self._space.judge(code)
        except MalformedPlanError as error:
            raise BackendFailedError(f"the solver returned {code}, which is no plan: {error}") from error
        if not broken:
            insort(self._pool, (key, code))
        elif broken <= self._opaque:
            self._counts["rejected"] += 1
        else:
            # A solver that computes with tolerances accepted it; in exact integers it is not valid.
            self._counts["refuted"] += 1
        if self._counts["rejected"] > self._options.max_rejections:
            self._stop = StopReason.REJECTION_LIMIT
        return () if broken else key

    def _give_up(self) -> None:
        if self._options.time_limit_s is None:
            raise BackendFailedError("the solver gave up without a limit and without an answer")
        self._stop = StopReason.TIME_LIMIT

    def _take_channels(self) -> None:
        while self._lowering.channels:
            self._port.add(self._lowering.channels.pop())

    def _show(self, values: Values | None) -> None:
        """Publish what the solver holds while it still searches for the first plan."""
        if self._proven:
            return
        if values is not None:
            self._consider(self._space.decode(values))
        elif time.monotonic() < self._shown + _PUBLISH_EVERY_S:
            return
        self._shown = time.monotonic()
        self._options.publish(self._claim())

    def _consider(self, code: CodeT) -> None:
        """Remember a plan that is not barred from the solver, if it is the best of these."""
        if code in self._seen:
            return
        with suppress(MalformedPlanError):  # what a solver holds on the way may be none
            key, broken = self._space.judge(code)
            if not broken and (not self._incumbent or key < self._incumbent[0][0]):
                self._incumbent = [(key, code)]

    def _claim(self) -> Claim:
        found = sorted(self._proven + self._pool + self._incumbent)[: self._options.top]
        best = found[0][0] if found else None
        settled = bool(self._proven) or (best is not None and self._terms_settled(best))
        exhausted = not self._pool and self._least.get((), 0) == inf
        exhausted = exhausted and (self._space.complete or not found)
        terms = len(self._problem.objective.terms)
        bound = best[0] if best and settled else self._bound(best)
        given = best is not None and self._seed is not None and self._seed[:terms] <= best[:terms]
        return Claim(
            status=SolveStatus.of(found=bool(found), proven=settled, exhausted=exhausted),
            stop=self._stop,
            plans=tuple(self._space.plan(code) for _, code in found),
            values=best[:terms] if best else None,
            bound=bound,
            plan_source=Source.START if given else Source.OWN,
            bound_source=Source.OWN if bound != self._given else Source.START,
            proven=max(self._certain([key for key, _ in found]), int(settled)),
            exhausted=exhausted,
            handling=handling_of(self._problem, self._capabilities),
            statistics={**self._counts, "encoding": self._space.name},
        )

    def _certain(self, keys: Sequence[Key]) -> int:
        """Return how many leading plans are the best ones in order.

        Where the levels do not tell all plans apart, an unseen one may tie with those of a group.
        """
        depth = len(self._levels)
        proven = {key[:depth] for key, _ in self._proven}
        closed = (key[:depth] in proven and self._closed(key) for key in keys)
        return sum(takewhile(bool, closed))

    def _closed(self, key: Key) -> bool:
        """Return whether no unseen plan is equal at all levels."""
        levels = range(len(self._levels))
        unseen_later = any(self._least.get(key[:level], 0) > key[level] for level in levels)
        return self._space.levels_decide or (self._space.complete and unseen_later)

    def _terms_settled(self, best: Key) -> bool:
        """Return whether no unseen plan can be better in the terms of the objective (ties left open)."""
        for index in range(len(self._problem.objective.terms)):
            least = self._least.get(best[:index], 0)
            if least != best[index]:
                return least > best[index]
        return True

    def _bound(self, best: Key | None) -> int | None:
        least = self._least.get((), None)
        if best is not None and least is not None:
            return int(min(least, best[0]))
        return int(least) if least not in (None, inf) else None

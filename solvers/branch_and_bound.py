"""Exact searches that build plans piece by piece: the best valid plans, and what they allow to claim.

A branch is left out when it leads to no valid plan, or to none that is better than those that are kept
already. Plans that differ only in devices of one kind are kept as one, their *form*.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from ..formulations.judge import examined
from ..formulations.problem import Problem
from .protocol import Claim, Deadline, SolveOptions, SolveStatus, StopReason, Support
from .rounds import Showing

CodeT = TypeVar("CodeT", bound=Hashable)
FormT = TypeVar("FormT", bound=Hashable)

Values = tuple[int, ...]


class Kept(NamedTuple, Generic[FormT]):
    """Plans that are kept, in the order of plans."""

    values: Values  # with the key, what orders them
    key: tuple[int, ...]
    form: FormT
    copies: int  # for how many plans the form stands, at most


class _StoppedError(Exception):
    """The search has to end before it is done."""


class BranchAndBound(ABC, Generic[FormT, CodeT]):
    """The best plans of a problem; `on_better` is called when there is a better one."""

    def __init__(
        self,
        problem: Problem,
        options: SolveOptions,
        *,
        deadline: Deadline,
        on_better: Callable[[], None],
    ) -> None:
        self._problem, self._top, self._most_rejections = problem, options.top, options.max_rejections
        self._deadline, self._on_better = deadline, on_better
        self._terms = problem.objective.terms if options.top == 1 else problem.ranking
        self._opaque = {rule.name for rule in problem.opaque_rules}
        self.kept: list[Kept[FormT]] = []  # the best plans, in order
        self._seen: set[Hashable] = set()
        self._full = False
        self.dropped = False  # whether there may be more plans than those
        self._rejected = 0  # how many plans opaque rules have turned down
        self.stop = StopReason.COMPLETE  # why it ended

    @abstractmethod
    def _code(self, form: FormT) -> CodeT:
        """Return one of the plans that a form stands for: the first in the order of plans."""

    @abstractmethod
    def _shape(self, form: FormT) -> Hashable:
        """Return what all of them have in common."""

    @abstractmethod
    def _copies(self, form: FormT) -> int:
        """Return how many they are; more than are wanted need not be counted."""

    @abstractmethod
    def _search(self) -> None:
        """Offer plans until all is known."""

    def run(self, seeds: Iterable[FormT] = ()) -> None:
        """Search, beginning with some plans, until all is known or what was given is used up."""
        try:
            for form in seeds:
                self.offer(form)
            self._search()
        except _StoppedError:  # why stands in `stop`; what was found until then stays
            pass

    def offer(self, form: FormT) -> None:
        """Keep a plan if it is valid and among the best."""
        shape = self._shape(form)
        if shape in self._seen:
            return
        code, formulation = self._code(form), self._problem.formulation
        values = formulation.numbers(self._problem, code).values(self._problem.ranking)
        if self._hopeless(values[: len(self._terms)]):
            return
        _, broken = examined(self._problem, code)
        if broken:
            if {violation.rule for violation in broken} <= self._opaque:
                self._rejected += 1
                if self._rejected > self._most_rejections:
                    self._end(StopReason.REJECTION_LIMIT)
            return
        best = self.kept[0] if self.kept else None
        insort(self.kept, Kept(values, formulation.key(self._problem, code), form, self._copies(form)))
        self._seen.add(shape)
        while sum(kept.copies for kept in self.kept[:-1]) >= self._top:
            self.kept.pop()
            self.dropped = True
        self._full = sum(kept.copies for kept in self.kept) >= self._top
        if self.kept[0] is not best:
            self._on_better()

    def _hopeless(self, values: Values | None) -> bool:
        """Return whether plans with at least these values of the leading terms are not among the best."""
        if values is None:
            return True
        if not self._full or values < self.kept[-1].values[: len(values)]:
            return False
        self.dropped = True
        return True

    def _end(self, reason: StopReason) -> None:
        self.stop = reason
        raise _StoppedError

    def _obey_deadline(self) -> None:
        if self._deadline.passed:
            self._end(StopReason.TIME_LIMIT)


class BranchingSolve(Generic[CodeT]):
    """One solve of one problem: what is known of it, and what that allows to claim."""

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        self._problem, self._options = problem, options
        self._handling = support.handling(problem)
        self._deadline = Deadline(options.time_limit_s)
        self._showing = Showing(options)
        self._bound: int | None = None
        self._sets = 0

    def _met(self, values: Values) -> bool:
        """Return whether the bound alone proves the best plan, whose terms these are."""
        return False

    def _publish(self, codes: Iterable[CodeT]) -> None:
        """Show the best plans so far."""
        shown = islice(codes, self._options.top)
        self._showing.offer(lambda: self._claim(shown, StopReason.TIME_LIMIT, proven=0))

    def _claim(
        self, codes: Iterable[CodeT], stop: StopReason, *, proven: int, exhausted: bool = False, **told: str
    ) -> Claim:
        """Return what some valid plans allow to claim."""
        problem = self._problem
        formulation, terms = problem.formulation, problem.objective.terms

        def order(code: CodeT) -> tuple[Values, tuple[int, ...]]:
            values = formulation.numbers(problem, code).values(problem.ranking)
            return values, formulation.key(problem, code)

        ranked = sorted(codes, key=order)
        values = formulation.numbers(problem, ranked[0]).values(terms) if ranked else None
        optimal = values is not None and (proven > 0 or self._met(values))
        return Claim(
            status=SolveStatus.of(found=values is not None, proven=optimal, exhausted=exhausted),
            stop=stop,
            plans=tuple(formulation.plan(problem, code) for code in ranked),
            values=values,
            bound=values[0] if optimal and values else self._bound,
            proven=max(proven, int(optimal)),
            exhausted=exhausted,
            handling=self._handling,
            statistics={"sets": self._sets, **told},
        )

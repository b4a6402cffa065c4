"""What a native search has found: its best valid plans, and what they allow to claim."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from ..formulations.judge import examined
from ..formulations.problem import Problem
from .protocol import (
    Claim,
    Deadline,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    Statistics,
    StopReason,
)

_MOST_BROKEN = 20
"""Plans that break something are kept for repair, if no other is found."""

CodeT = TypeVar("CodeT", bound=Hashable)


class Pool(Generic[CodeT]):
    """The best valid plans of one problem."""

    def __init__(self, problem: Problem, *, most: int = 1) -> None:
        self._problem, self._most = problem, most
        self._kept: dict[CodeT, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self.broken: dict[CodeT, None] = {}  # some plans that break something
        self.rejected = 0  # how many plans break opaque rules alone

    @property
    def codes(self) -> list[CodeT]:
        """The plans, in canonical order."""
        return sorted(self._kept, key=self._kept.__getitem__)

    def offer(self, code: CodeT) -> bool:
        """Keep a plan if it is valid and wanted; return whether it is the best one."""
        if code in self._kept:
            return False
        numbers, broken = examined(self._problem, code)
        if broken:
            self.rejected += {violation.rule for violation in broken} <= self._problem.opaque_demands
            if len(self.broken) < _MOST_BROKEN:
                self.broken[code] = None
            return False
        best = min(self._kept.values(), default=None)
        key = numbers.values(self._problem.ranking), self._problem.formulation.key(self._problem, code)
        self._kept[code] = key
        if len(self._kept) > self._most:
            del self._kept[max(self._kept, key=self._kept.__getitem__)]
        return best is None or key < best

    def meets(self, bound: int | None) -> bool:
        """Return whether a bound proves the best plan to be one, and no further ones are wanted."""
        terms, best = self._problem.objective.terms, self.codes[:1]
        if not best or len(terms) > 1 or self._most > 1:
            return False
        return bool(self._problem.formulation.numbers(self._problem, best[0]).values(terms) == (bound,))

    def stopped(self, options: SolveOptions, deadline: Deadline) -> StopReason:
        """Return why a search ends that has proved nothing."""
        if self.rejected > options.max_rejections:
            return StopReason.REJECTION_LIMIT
        return StopReason.TIME_LIMIT if deadline.passed else StopReason.SPACE_LIMIT

    def claim(
        self,
        *,
        bound: int | None,
        stop: StopReason,
        handling: Mapping[str, RuleHandling],
        statistics: Statistics,
    ) -> Claim:
        """Return what the plans and a bound on the first term allow to claim.

        `stop` is why the search ended, if it has not proved its best plan.
        """
        problem, codes, proven = self._problem, self.codes, self.meets(bound)
        values = None
        if codes:
            values = problem.formulation.numbers(problem, codes[0]).values(problem.objective.terms)
        status = SolveStatus.OPTIMAL if proven else SolveStatus.FEASIBLE
        return Claim(
            status=status if codes else SolveStatus.NO_SOLUTION,
            stop=StopReason.COMPLETE if proven else stop,
            plans=tuple(problem.formulation.plan(problem, code) for code in codes),
            values=values,
            bound=bound,
            proven=int(proven),
            handling=handling,
            statistics=statistics,
        )

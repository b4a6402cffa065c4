"""Native searches in rounds and planners that propose: what they show, claim and hand on."""

from __future__ import annotations

import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np

from ..formulations.availability import Availability
from ..formulations.judge import examined, malformations
from ..formulations.problem import Problem
from .families import Start
from .protocol import (
    PROPOSING,
    Capabilities,
    Claim,
    Deadline,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    Statistics,
    StopReason,
    Support,
    TimeIsUpError,
    handling_of,
    unwatched,
)
from .repairing import repair

SHARE, ALLOWANCE_S = 0.03, 0.02
"""Share of the time of a search that goes into showing plans, and what may be spent before that counts."""


class Showing:
    """Publishes what a search has whenever it got better, as long as that takes little time.

    Who watches wants every step: how fast a search comes to good plans is read off what it publishes. But a
    claim about a large workload takes milliseconds to write down, and the first plans come in bursts.
    """

    def __init__(self, options: SolveOptions) -> None:
        self._publish = options.publish
        self._started, self._spent = time.monotonic(), 0.0

    def offer(self, claim: Callable[[], Claim]) -> None:
        """Publish a claim, which is made only if somebody watches and there is time for it."""
        began = time.monotonic()
        if self._publish is unwatched or self._spent > ALLOWANCE_S + SHARE * (began - self._started):
            return
        self._publish(claim())
        self._spent += time.monotonic() - began


CodeT = TypeVar("CodeT", bound=Hashable)

_MOST_BROKEN = 20
"""Plans that break something are kept for repair, if no other is found."""

_SHARE = 0.1
"""Share of a time limit that the search for a plan to start from may take."""


class Pool(Generic[CodeT]):
    """The best valid plans of one problem, and some that break something."""

    def __init__(self, problem: Problem, *, most: int = 1, most_broken: int | None = _MOST_BROKEN) -> None:
        self._problem, self._most, self._most_broken = problem, most, most_broken
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
            if self._most_broken is None or len(self.broken) < self._most_broken:
                self.broken[code] = None
            return False
        best = min(self._kept.values(), default=None)
        key = numbers.values(self._problem.ranking), self._problem.formulation.key(self._problem, code)
        self._kept[code] = key
        if len(self._kept) > self._most:
            del self._kept[max(self._kept, key=self._kept.__getitem__)]
        return best is None or key < best

    def meets(self, bound: int | None) -> bool:
        """Return whether a bound proves the best plan to be one."""
        return len(self._problem.objective.terms) == 1 and self.values == (bound,)

    def finished(self, bound: int | None) -> bool:
        """Return whether a bound proves the best plan to be one, and no further ones are wanted."""
        return self._most == 1 and self.meets(bound)

    @property
    def values(self) -> tuple[int, ...] | None:
        """The terms of the best plan, if there is one."""
        best = min(self._kept.values(), default=None)
        return None if best is None else best[0][: len(self._problem.objective.terms)]

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
        status = SolveStatus.OPTIMAL if proven else SolveStatus.FEASIBLE
        return Claim(
            status=status if codes else SolveStatus.NO_SOLUTION,
            stop=StopReason.COMPLETE if self.finished(bound) else stop,
            plans=tuple(problem.formulation.plan(problem, code) for code in codes),
            values=self.values,
            bound=bound,
            proven=int(proven),
            handling=handling,
            statistics=statistics,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """When a search ends that meets no bound; without these numbers it ends by itself."""

    without_better: int | None = None  # rounds, for a claim with that of the best plan
    rounds: int | None = None  # the last one, counted from 0

    def ends(self, number: int, waited: int) -> bool:
        """Return whether it ends after a round, and some without a better plan."""
        tired = self.without_better is not None and waited >= self.without_better
        return tired or (self.rounds is not None and number >= self.rounds)


class RoundSearch(ABC, Generic[CodeT]):
    """A search for one problem: its valid plans, the best first, and a lower bound on the first term."""

    def __init__(self, problem: Problem, *, most: int = 1) -> None:
        self._problem, self.pool = problem, Pool[CodeT](problem, most=most)
        self.least: int | None = None  # the bound, as far as it is known

    @property
    @abstractmethod
    def statistics(self) -> Statistics:
        """What it has done."""

    @abstractmethod
    def begin(self, deadline: Deadline) -> None:
        """Take the first plans; after the deadline as few as will do."""

    def bound(self, deadline: Deadline) -> int:
        """Return a lower bound on the first term, when the first plans are there."""
        assert self.least is not None
        return self.least

    @abstractmethod
    def rounds(self, deadline: Deadline) -> Iterator[bool]:
        """Search until the time is up; say after each plan whether it, or the bound, is the best so far."""

    def done(self, options: SolveOptions) -> bool:
        """Return whether the best plan meets the bound, or rules reject too many."""
        return self.pool.finished(self.least) or self.pool.rejected > options.max_rejections


def claim_of(
    begun: Callable[[], RoundSearch[CodeT]],
    problem: Problem,
    options: SolveOptions,
    support: Support,
    patience: Patience = Patience(),
) -> Claim:
    """Search until the best plan meets the bound, or the time or, without a limit, the patience is up.

    `begun`: makes the search, whose tables take time, too.
    """
    deadline = Deadline(options.time_limit_s, options.clock)
    showing, handling = Showing(options), support.handling(problem)
    search = begun()

    def claim(stop: StopReason) -> Claim:
        return search.pool.claim(
            bound=search.least, stop=stop, handling=handling, statistics=search.statistics
        )

    search.begin(deadline)
    search.bound(deadline)
    if search.pool.codes:
        showing.offer(lambda: claim(StopReason.TIME_LIMIT))
    waited = 0
    for number, better in enumerate(search.rounds(deadline)):
        if search.done(options):
            break
        if better:
            showing.offer(lambda: claim(StopReason.TIME_LIMIT))
        waited = 1 if better else waited + 1
        if deadline.passed or (options.time_limit_s is None and patience.ends(number, waited)):
            break
    return claim(search.pool.stopped(options, deadline))


def starts_by(
    begun: Callable[[], RoundSearch[CodeT]], options: SolveOptions, patience: Patience = Patience()
) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    The search takes a fixed number of rounds, so that equal questions have equal answers, or ends when its
    plan meets the bound, or after a share of the time limit. With one, the first plan is there before the
    bound.
    """
    limit_s = options.time_limit_s
    deadline = Deadline(None if limit_s is None else _SHARE * limit_s)
    search = begun()

    def known() -> Start:
        return Start(code=next(iter(search.pool.codes), None), at_least=search.least)

    search.begin(deadline)
    if limit_s is not None:
        yield known()
    search.bound(deadline)
    yield known()
    waited = 0
    for number, better in enumerate(search.rounds(deadline)):
        waited = 0 if better else waited + 1
        if search.done(options) or deadline.passed or patience.ends(number, waited):
            break
    yield known()


UNFINISHED = "unfinished_steps"
"""The statistic of how many steps time was too short for: a planner may end a little before its deadline."""


Proposals = Generator[CodeT, None, Statistics]
"""Plans, which may break rules and limits; then what is worth telling ("reason": why there are none)."""


def proposing(summary: str, formulation: str) -> Capabilities:
    """Return what a planner of a formulation can do: plans that break rules are repaired or dropped."""
    return Capabilities(summary=summary, formulations={formulation: PROPOSING})


class Proposing(ABC, Generic[CodeT]):
    """A planner that proposes few plans, by costs of its own; they are judged by those of the problem.

    Plans that break something are repaired where a few changes do it (`repairing.py`). Where that gives no
    valid plan either, `whole` is tried. The statistics say both.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    @abstractmethod
    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[CodeT]:
        """Yield plans by index, which may break anything; the rest is left out at the deadline.

        A generator may return what is worth telling (`Proposals`).
        """

    def whole(self, problem: Problem) -> Iterator[CodeT]:
        """Yield plans of a single chunk on a single device, where such plans are worth a try."""
        yield from ()

    def tidy(self, code: CodeT) -> CodeT:
        """Return a plan in the order in which plans are written."""
        return code

    def availability(self) -> Availability:
        """Say yes: numpy is a requirement of the package."""
        return Availability(ok=True, version=f"numpy {np.__version__}, Python {platform.python_version()}")

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Propose, and keep the best plans that the judge finds valid."""
        deadline, showing = Deadline(options.time_limit_s, options.clock), Showing(options)
        pool = Pool[CodeT](problem, most=options.top, most_broken=None)
        handling, seen = handling_of(problem, self.capabilities), set[CodeT]()
        told: Statistics = {}

        def claim(stop: StopReason) -> Claim:
            statistics = {"proposed": len(seen), **told}
            return pool.claim(bound=None, stop=stop, handling=handling, statistics=statistics)

        def keep(code: CodeT) -> None:
            if _is_plan(problem, code) and pool.offer(code):
                showing.offer(lambda: claim(StopReason.TIME_LIMIT))

        def proposed() -> Iterator[CodeT]:
            nonlocal told
            with suppress(TimeIsUpError):
                told = (yield from self.propose(problem, options, deadline)) or {}  # type: ignore[func-returns-value]

        for code in map(self.tidy, proposed()):
            seen.add(code)
            keep(code)
            if deadline.passed:
                break
        repaired = repair(problem, [*pool.broken], deadline, keep)
        if pool.broken:
            told = {**told, "repaired": repaired}
        for code in () if pool.codes else self.whole(problem):
            told = {**told, "whole": 1}
            keep(code)
        if pool.broken and not pool.codes:
            wrong = examined(problem, next(iter(pool.broken)))[1][0]
            told = {**told, "reason": f"{wrong.rule}: {wrong.message}"}
        late = deadline.passed or told.get(UNFINISHED)
        return claim(StopReason.TIME_LIMIT if late else StopReason.COMPLETE)


def _is_plan(problem: Problem, code: Hashable) -> bool:
    """Return whether it is one: planned as if devices were alike, a layer may stand where it cannot run."""
    return bool(code) and not malformations(problem, problem.formulation.plan(problem, code))

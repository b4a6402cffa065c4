"""What planners have in common that propose plans: the judge picks."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Generator, Hashable, Iterator
from contextlib import suppress
from typing import ClassVar, Generic, TypeVar

import numpy as np

from ..formulations.availability import Availability
from ..formulations.judge import examined, malformations
from ..formulations.problem import Problem
from .protocol import (
    PROPOSING,
    Capabilities,
    Claim,
    Deadline,
    SolveOptions,
    Statistics,
    StopReason,
    TimeIsUpError,
    handling_of,
)
from .repairing import repair
from .rounds import Pool
from .showing import Showing

UNFINISHED = "unfinished_steps"
"""The statistic of how many steps time was too short for: a planner may end a little before its deadline."""

CodeT = TypeVar("CodeT", bound=Hashable)

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

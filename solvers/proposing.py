"""What planners have in common that propose plans: the judge picks."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from ..formulations.availability import Availability
from ..formulations.errors import MalformedPlanError
from ..formulations.judge import rank_key, score
from ..formulations.problem import Problem
from ..formulations.scores import Score
from .protocol import (
    PROPOSING,
    Capabilities,
    Claim,
    Deadline,
    SolveOptions,
    SolveStatus,
    StopReason,
    TimeIsUpError,
    handling_of,
)
from .repairing import repair


def proposing(summary: str, formulation: str) -> Capabilities:
    """Return what a planner of a formulation can do: plans that break rules are repaired or dropped."""
    return Capabilities(summary=summary, formulations={formulation: PROPOSING})


CodeT = TypeVar("CodeT", bound=tuple[Any, ...])


class Proposing(ABC, Generic[CodeT]):
    """A planner that proposes plans by costs of its own; they are judged by those of the problem.

    Plans that break something are repaired where a few changes do it (`repairing.py`). Where that gives no
    valid plan either, the network whole on each device is tried. The statistics say both.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    @abstractmethod
    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[CodeT]:
        """Yield plans by index, which may break anything; the rest is left out at the deadline."""

    @abstractmethod
    def whole(self, problem: Problem) -> Iterator[CodeT]:
        """Yield the plans of a single chunk on a single device."""

    def tidy(self, code: CodeT) -> CodeT:
        """Return a plan in the order in which plans are written."""
        return code

    def availability(self) -> Availability:
        """Say yes: numpy is a requirement of the package."""
        return Availability(ok=True, version=f"numpy {np.__version__}, Python {platform.python_version()}")

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Propose, and keep the best plans that the judge finds valid."""
        deadline = Deadline(options.time_limit_s, options.clock)
        valid: dict[CodeT, Score] = {}
        broken: dict[CodeT, None] = {}
        proposed = 0

        def claim(stop: StopReason, **told: int) -> Claim:
            best = sorted(valid, key=lambda code: rank_key(problem, valid[code]))[: options.top]
            return Claim(
                status=SolveStatus.FEASIBLE if best else SolveStatus.NO_SOLUTION,
                stop=stop,
                plans=tuple(problem.formulation.plan(problem, code) for code in best),
                values=valid[best[0]].values(problem.objective.terms) if best else None,
                handling=handling_of(problem, self.capabilities),
                statistics={"proposed": proposed, **told},
            )

        for code in self._until(problem, options, deadline):
            proposed += 1
            if _judge(problem, self.tidy(code), valid, broken):
                options.publish(claim(StopReason.TIME_LIMIT))

        def keep(code: CodeT) -> None:
            _judge(problem, code, valid, broken)

        repaired = repair(problem, [*broken], deadline, keep)
        whole = int(not valid)
        if whole:
            for code in self.whole(problem):
                _judge(problem, code, valid, broken)
        stop = StopReason.TIME_LIMIT if deadline.passed else StopReason.COMPLETE
        return claim(stop, repaired=repaired, whole=whole)

    def _until(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[CodeT]:
        try:
            for code in self.propose(problem, options, deadline):
                yield code
                if deadline.passed:
                    return
        except TimeIsUpError:
            return


def _judge(problem: Problem, code: CodeT, valid: dict[CodeT, Score], broken: dict[CodeT, None]) -> bool:
    """Keep a plan where it belongs; return whether it is valid and the best so far."""
    if not code or code in valid:
        return False
    try:
        judged = score(problem, problem.formulation.plan(problem, code))
    except MalformedPlanError:  # planned as if devices were alike, a layer may stand where it cannot run
        return False
    if not judged.valid:
        broken[code] = None
        return False
    best = all(rank_key(problem, judged) < rank_key(problem, other) for other in valid.values())
    valid[code] = judged
    return best

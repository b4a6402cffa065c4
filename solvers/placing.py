"""Backends that place layers by a rule of their own: what policies and execution providers would do."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from ..formulations.availability import Availability
from ..formulations.errors import MalformedPlanError
from ..formulations.judge import rank_key, score
from ..formulations.problem import Feature, Problem
from .protocol import Capabilities, Claim, Guarantee, SolveOptions, SolveStatus, StopReason, Support

PLAIN = Support(
    guarantee=Guarantee.HEURISTIC,
    features=frozenset(
        map(
            str,
            (
                Feature.UNSUPPORTED_LAYERS,
                Feature.TRANSFERS,
                Feature.UNIT_CONFLICTS,
                Feature.UNIT_MEMORY,
                Feature.DEVICE_MEMORY,
                Feature.CUT_RESTRICTIONS,
            ),
        )
    ),
)
"""What a placement can do that knows no limits and no rules."""


class Placement(ABC):
    """A way to place the layers that asks for no time; what the judge finds invalid is no answer."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    @abstractmethod
    def place(self, problem: Problem) -> Iterator[Any]:
        """Yield plans by index."""

    def availability(self) -> Availability:
        """Say yes: it needs nothing."""
        return Availability(ok=True, version=f"Python {platform.python_version()}")

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Return the valid ones of its plans, best first."""
        found, wrong = [], ""
        for code in self.place(problem):
            try:
                plan = problem.formulation.plan(problem, code)
                judged = score(problem, plan)
            except MalformedPlanError as error:
                wrong = wrong or str(error)
                continue
            if judged.valid:
                found.append((rank_key(problem, judged), judged, plan))
            else:
                wrong = wrong or f"{judged.violations[0].rule}: {judged.violations[0].message}"
        best = sorted(found, key=lambda entry: entry[0])[: options.top]
        return Claim(
            status=SolveStatus.FEASIBLE if best else SolveStatus.NO_SOLUTION,
            stop=StopReason.COMPLETE,
            plans=tuple(plan for _, _, plan in best),
            values=best[0][1].values(problem.objective.terms) if best else None,
            statistics={} if best or not wrong else {"reason": wrong},
        )

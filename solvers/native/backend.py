"""The backend `native`: exact lists of the best plans, without a third-party solver."""

from __future__ import annotations

import platform
from typing import ClassVar

import numpy as np

from ...formulations.objective import Term
from ...formulations.problem import Feature, Problem
from ..protocol import (
    Availability,
    Capabilities,
    Claim,
    Guarantee,
    RuleHandling,
    SolveOptions,
)
from .solving import ChainSolve


class NativeBackend:
    """Exact best plans of one network, in canonical order (see `solving`)."""

    name: ClassVar[str] = "native"
    capabilities: ClassVar[Capabilities] = Capabilities(
        features=frozenset(Feature) - {Feature.SEVERAL_NETWORKS},
        terms=frozenset(Term),
        guarantee=Guarantee.EXACT,
        gives_bound=True,
        deterministic=True,
        isolated=False,
        rules=RuleHandling.LOWERED,
        opaque_rules=RuleHandling.CUT,
        summary="exact best-first search with dynamic programming bounds; fastest for one network",
    )

    def availability(self) -> Availability:
        """Say yes: numpy is a requirement of the package."""
        return Availability(ok=True, version=f"numpy {np.__version__}, Python {platform.python_version()}")

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Find the best plans."""
        return ChainSolve(problem, options, self.capabilities).run()

"""The backend `native`: algorithms of our own, without a third-party solver."""

from __future__ import annotations

import platform
from typing import ClassVar

import numpy as np

from ..formulations.availability import Availability
from ..formulations.problem import Problem
from .families import families, family_of
from .protocol import Capabilities, Claim, SolveOptions


class NativeBackend:
    """Hands each problem to the algorithm of its formulation (`Family.native`)."""

    name: ClassVar[str] = "native"

    @property
    def capabilities(self) -> Capabilities:
        """What the algorithms can do, one entry a formulation."""
        known = {name: family.support for name, family in families().items()}
        return Capabilities(
            summary="one network: exact best-first search, fastest; workloads: local search with bounds",
            formulations={name: support for name, support in known.items() if support is not None},
        )

    def availability(self) -> Availability:
        """Say yes: numpy is a requirement of the package."""
        return Availability(ok=True, version=f"numpy {np.__version__}, Python {platform.python_version()}")

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Find the best plans, or good ones and a bound."""
        family = family_of(problem.formulation.name)
        assert family.native is not None
        assert family.support is not None
        claim: Claim = family.load(family.native)(problem, options, family.support)
        return claim

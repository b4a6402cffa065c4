"""The backend `native`: algorithms of our own, without a third-party solver."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from ..formulations.availability import Availability
from ..formulations.problem import Problem
from .families import families, family_of
from .protocol import Capabilities, Claim, SolveOptions, Support


class _Supports(Mapping[str, Support]):
    """What the algorithms of each formulation can do, found when it is asked for: plug-ins cost time."""

    def __getitem__(self, formulation: str) -> Support:
        support = family_of(formulation).support
        if support is None:
            raise KeyError(formulation)
        return support

    def __iter__(self) -> Iterator[str]:
        return (name for name, family in families().items() if family.support is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class NativeBackend:
    """Hands each problem to the algorithm of its formulation (`Search.native`)."""

    name: ClassVar[str] = "native"

    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="one network or a cluster: exact search, fastest; workloads: local search with bounds",
        formulations=_Supports(),
    )

    def availability(self) -> Availability:
        """Say yes: numpy is a requirement of the package."""
        return Availability(ok=True, version=f"numpy {np.__version__}, Python {platform.python_version()}")

    def warm_up(self, formulation: str) -> None:
        """Load the algorithm."""
        search = family_of(formulation).search
        if search is not None:
            search()

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Find the best plans, or good ones and a bound."""
        family = family_of(problem.formulation.name)
        assert family.search is not None
        assert family.support is not None
        return family.search().native(problem, options, family.support)

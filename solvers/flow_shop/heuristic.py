"""What the heuristics for workloads have in common: they propose schedules, the judge picks."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ...formulations.availability import Availability
from ...formulations.flow_shop.formulation import FORMULATION
from ...formulations.flow_shop.tables import FlowShop, Schedule, shop_of
from ...formulations.judge import rank_key, score
from ...formulations.problem import Problem
from ..protocol import (
    PROPOSING,
    Capabilities,
    Claim,
    SolveOptions,
    SolveStatus,
    Statistics,
    StopReason,
    handling_of,
)
from .arrays import ChainArrays, Ints, build_arrays
from .slicing import least_bottleneck
from .units import confine


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a heuristic came up with.

    Attributes
    ----------
    schedules
        In any order; they may break rules and limits.
    stop
        Why it stopped.
    statistics
        Anything worth telling; "reason" says why there is no schedule.
    """

    schedules: Sequence[Schedule]
    stop: StopReason = StopReason.COMPLETE
    statistics: Statistics = field(default_factory=dict)


def workload_capabilities(summary: str) -> Capabilities:
    """Return what a heuristic for workloads can do: it checks the rules of the user on its plans."""
    return Capabilities(summary=summary, formulations={FORMULATION.name: PROPOSING})


class WorkloadHeuristic(ABC):
    """A backend that proposes few schedules; those that break a rule or a limit are dropped."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    @abstractmethod
    def propose(self, problem: Problem, options: SolveOptions) -> Proposal:
        """Return some schedules."""

    def availability(self) -> Availability:
        """Say yes: numpy is a requirement of the package."""
        return Availability(ok=True, version=f"numpy {np.__version__}, Python {platform.python_version()}")

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Propose, and keep the best schedules that the judge finds valid."""
        proposal = self.propose(problem, options)
        valid, broken = [], []
        for plan in dict.fromkeys(map(shop_of(problem).plan, proposal.schedules)):
            judged = score(problem, plan)
            if judged.valid:
                valid.append((rank_key(problem, plan, judged), plan, judged))
            else:
                broken.append(f"{judged.violations[0].rule}: {judged.violations[0].message}")
        valid.sort(key=lambda entry: entry[0])
        best = valid[: options.top]
        statistics = {"proposed": len(valid) + len(broken), **proposal.statistics}
        if broken and not best:
            statistics["reason"] = broken[0]
        return Claim(
            status=SolveStatus.FEASIBLE if best else SolveStatus.NO_SOLUTION,
            stop=proposal.stop,
            plans=tuple(plan for _, plan, _ in best),
            values=best[0][2].values(problem.objective.terms) if best else None,
            handling=handling_of(problem, self.capabilities),
            statistics=statistics,
        )


def confined_arrays(shop: FlowShop, units: frozenset[int]) -> list[ChainArrays]:
    """Return the networks of a workload (not its requests), confined to some units."""
    return [confine(build_arrays(chain), units) for chain in shop.chains]


def slice_requests(shop: FlowShop, networks: Sequence[ChainArrays]) -> list[Ints] | None:
    """Return the cuts with the least bottleneck (P1) of each request, as places; None if one cannot run."""
    slices = [least_bottleneck(network) for network in networks]
    places = [found[1] for found in slices if found is not None]
    return [places[index] for index in shop.chain_of] if len(places) == len(slices) else None

"""What the heuristics for workloads have in common: they propose schedules, the judge picks."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from typing import ClassVar

import numpy as np

from ...formulations.availability import Availability
from ...formulations.flow_shop.formulation import FORMULATION
from ...formulations.flow_shop.tables import FlowShop, Schedule, shop_of
from ...formulations.judge import rank_key, score
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ..protocol import (
    PROPOSING,
    Capabilities,
    Claim,
    Deadline,
    SolveOptions,
    SolveStatus,
    Statistics,
    StopReason,
    handling_of,
)
from ..repairing import repair
from .arrays import ChainArrays, Ints, build_arrays
from .slicing import least_bottleneck
from .units import confine

UNFINISHED = "unfinished_steps"
"""The statistic of how many steps time was too short for: a planner may end a little before its deadline."""

Proposals = Generator[Schedule, None, Statistics]
"""Schedules, which may break rules and limits; then what is worth telling ("reason": why there are none)."""


def workload_capabilities(summary: str) -> Capabilities:
    """Return what a heuristic for workloads can do: plans that break rules are repaired or dropped."""
    return Capabilities(summary=summary, formulations={FORMULATION.name: PROPOSING})


class WorkloadHeuristic(ABC):
    """A backend that proposes few schedules; those that break something are repaired, or dropped."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]

    @abstractmethod
    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Proposals:
        """Yield schedules; once there is one, what is left to do is left out at the deadline."""

    def availability(self) -> Availability:
        """Say yes: numpy is a requirement of the package."""
        return Availability(ok=True, version=f"numpy {np.__version__}, Python {platform.python_version()}")

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Propose, and keep the best schedules that the judge finds valid."""
        deadline = Deadline(options.time_limit_s, options.clock)
        kept = _Kept(problem, options, self.capabilities)
        proposals = self.propose(problem, options, deadline)
        told: Statistics = {}

        def proposed() -> Iterator[Schedule]:
            nonlocal told
            told = yield from proposals

        for schedule in proposed():
            kept.add(schedule)
            if deadline.passed:
                break
        repaired = repair(problem, kept.broken, deadline, kept.add)
        late = deadline.passed or told.get(UNFINISHED)
        told = {**told, **({"repaired": repaired} if kept.broken else {})}
        return kept.claim(StopReason.TIME_LIMIT if late else StopReason.COMPLETE, told)


class _Kept:
    """The proposals so far: those that are valid, and what the others break."""

    def __init__(self, problem: Problem, options: SolveOptions, capabilities: Capabilities) -> None:
        self._problem, self._options = problem, options
        self._handling = handling_of(problem, capabilities)
        self._valid: dict[Plan, tuple[tuple[object, ...], Score]] = {}
        self._broken: dict[Schedule, str] = {}

    @property
    def broken(self) -> list[Schedule]:
        """The schedules that break something."""
        return list(self._broken)

    def add(self, schedule: Schedule) -> None:
        """Have the judge look at a schedule, and show the best plans if it is one of them."""
        plan = shop_of(self._problem).plan(schedule)
        judged = score(self._problem, plan)
        if not judged.valid:
            self._broken[schedule] = f"{judged.violations[0].rule}: {judged.violations[0].message}"
        elif plan not in self._valid:
            self._valid[plan] = rank_key(self._problem, judged), judged
            if plan in self._best():
                self._options.publish(self.claim(StopReason.TIME_LIMIT, {}))

    def _best(self) -> list[Plan]:
        ranked = sorted(self._valid, key=lambda plan: self._valid[plan][0])
        return ranked[: self._options.top]

    def claim(self, stop: StopReason, told: Statistics) -> Claim:
        """Return the best plans."""
        best = self._best()
        statistics = {"proposed": len(self._valid) + len(self._broken), **told}
        if self._broken and not best:
            statistics["reason"] = next(iter(self._broken.values()))
        terms = self._problem.objective.terms
        return Claim(
            status=SolveStatus.FEASIBLE if best else SolveStatus.NO_SOLUTION,
            stop=stop,
            plans=tuple(best),
            values=self._valid[best[0]][1].values(terms) if best else None,
            handling=self._handling,
            statistics=statistics,
        )


def network_arrays(shop: FlowShop) -> list[ChainArrays]:
    """Return the networks of a workload (not its requests)."""
    return [build_arrays(chain) for chain in shop.chains]


def confined(networks: Sequence[ChainArrays], units: frozenset[int]) -> list[ChainArrays]:
    """Return networks that run on some units only."""
    return [confine(network, units) for network in networks]


def slice_requests(shop: FlowShop, networks: Sequence[ChainArrays]) -> list[Ints] | None:
    """Return the cuts with the least bottleneck (P1) of each request, as places; None if one cannot run."""
    slices = [least_bottleneck(network) for network in networks]
    places = [found[1] for found in slices if found is not None]
    return [places[index] for index in shop.chain_of] if len(places) == len(slices) else None

"""What the heuristics for workloads have in common: they propose schedules, the judge picks."""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from typing import ClassVar

import numpy as np

from ...formulations.availability import Availability
from ...formulations.flow_shop.formulation import FORMULATION
from ...formulations.flow_shop.tables import FlowShop, Schedule
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..protocol import (
    PROPOSING,
    Capabilities,
    Claim,
    Deadline,
    SolveOptions,
    Statistics,
    StopReason,
    handling_of,
)
from ..repairing import repair
from ..rounds import Pool
from ..showing import Showing
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
        deadline, showing = Deadline(options.time_limit_s, options.clock), Showing(options)
        pool = Pool[Schedule](problem, most=options.top, most_broken=None)
        handling, seen = handling_of(problem, self.capabilities), set[Schedule]()
        proposals = self.propose(problem, options, deadline)
        told: Statistics = {}

        def claim(stop: StopReason) -> Claim:
            statistics = {"proposed": len(seen), **told}
            return pool.claim(bound=None, stop=stop, handling=handling, statistics=statistics)

        def keep(schedule: Schedule) -> None:
            seen.add(schedule)
            if pool.offer(schedule):
                showing.offer(lambda: claim(StopReason.TIME_LIMIT))

        def proposed() -> Iterator[Schedule]:
            nonlocal told
            told = yield from proposals

        for schedule in proposed():
            keep(schedule)
            if deadline.passed:
                break
        repaired = repair(problem, [*pool.broken], deadline, keep)
        late = deadline.passed or told.get(UNFINISHED)
        if pool.broken:
            told = {**told, "repaired": repaired}
        if pool.broken and not pool.codes:
            wrong = examined(problem, next(iter(pool.broken)))[1][0]
            told = {**told, "reason": f"{wrong.rule}: {wrong.message}"}
        return claim(StopReason.TIME_LIMIT if late else StopReason.COMPLETE)


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

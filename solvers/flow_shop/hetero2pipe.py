"""Hetero2Pipe's planner as published (section V) and corrected, its ablations, and Pipe-it.

Four steps: slice every request for itself (P1), keep high requests apart (P3, by assignment), align the
chunks of each column by work stealing (P2), and shorten the tail. The backends differ in which of them
they take. Where the device's memory is limited (Eq. 6), which the paper's algorithms say nothing about, every
step prefers what fits, and a plan that does not fit in the end is repaired (`fitting`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...formulations.flow_shop.tables import FlowShop, Schedule, shop_of
from ...formulations.problem import Problem
from ..protocol import Capabilities, Deadline, SolveOptions
from .arrays import ChainArrays, Ints
from .assignment import order_by_assignment
from .fitting import Merit, fitted, merit
from .heuristic import (
    UNFINISHED,
    Proposals,
    WorkloadHeuristic,
    confined,
    network_arrays,
    slice_requests,
    workload_capabilities,
)
from .stealing import Alignment
from .units import compatible_units, processor_units, runs_whole, subsets, whole_cuts


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Which steps a planner takes after slicing."""

    reorder: bool = False  # keep high requests apart, where the order is free (Algorithm 2)
    steal: bool = False  # align columns by work stealing (Algorithm 3)
    tail: bool = False  # try to run each of the last K requests on one unit
    processors_only: bool = False  # use CPU units only, in every combination: the best one is kept


class SteppedBackend(WorkloadHeuristic):
    """A planner that slices, and takes some further steps."""

    steps: ClassVar[Steps]

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Proposals:
        """Yield one schedule for each largest set of units that share no cores, or each combination."""
        shop = shop_of(problem)
        among = processor_units(problem.platform) if self.steps.processors_only else range(shop.unit_count)
        if not among:
            return {"reason": "the platform has no CPU unit"}
        found, hurried, reason, everywhere = False, 0, "", network_arrays(shop)
        sets = compatible_units(shop, among)
        for units in subsets(sets) if self.steps.processors_only else sets:
            networks = confined(everywhere, units)
            places = slice_requests(shop, networks)
            if places is None:
                names = ", ".join(shop.units[unit] for unit in sorted(units))
                reason = f"some request has a layer that none of {names} can run in its turn"
            else:
                found = True
                best = self._refine(shop, networks, places, deadline)
                hurried += best.hurried
                yield best.schedule
        if not found:
            return {"reason": reason}
        return {UNFINISHED: hurried} if hurried else {}

    def _refine(
        self, shop: FlowShop, networks: Sequence[ChainArrays], places: Sequence[Ints], deadline: Deadline
    ) -> _Best:
        """Take the further steps as far as the time suffices; playing a schedule takes some, too."""
        order = tuple(range(shop.request_count))
        if self.steps.reorder and shop.order_is_free and not deadline.passed:
            order = order_by_assignment(shop.high, shop.unit_count)
        best = _Best(shop, _schedule(shop, networks, order, places), deadline)
        if self.steps.steal and not deadline.passed:
            stolen = _steal(shop, networks, order, places, best.last_call())
            best.offer(_schedule(shop, networks, order, stolen))
        if self.steps.tail:
            _shorten_tail(shop, networks, best)
        best.schedule = fitted(shop, networks, best.schedule, deadline)
        return best


class _Best:
    """The best schedule so far; others are played while there is time for that, and for the judge."""

    def __init__(self, shop: FlowShop, schedule: Schedule, deadline: Deadline) -> None:
        self._shop, self._deadline, self.schedule = shop, deadline, schedule
        self._look_s = 0.0
        self._least: Merit | None = None
        self.hurried = False

    def last_call(self) -> Deadline:
        """Return until when another schedule has to be there."""
        self._least = self._merit(self.schedule)
        return self._deadline.share(less_s=2 * self._look_s)

    def offer(self, other: Schedule) -> bool:
        """Take another schedule if it is better; return whether there was the time to find out."""
        if self._least is None:
            self._least = self._merit(self.schedule)
        found = None if self._least is None else self._merit(other)
        if found is None or self._least is None:
            self.hurried = True
            return False
        if found < self._least:
            self.schedule, self._least = other, found
        return True

    def _merit(self, schedule: Schedule) -> Merit | None:
        if self._deadline.within(2 * self._look_s):
            return None
        began = self._deadline.now()
        found = merit(self._shop, schedule)
        self._look_s = self._deadline.now() - began
        return found


def _schedule(
    shop: FlowShop, networks: Sequence[ChainArrays], order: tuple[int, ...], places: Sequence[Ints]
) -> Schedule:
    chains = zip(shop.chain_of, places, strict=True)
    return Schedule(order, tuple(networks[index].cuts_of(own) for index, own in chains))


def _steal(
    shop: FlowShop,
    networks: Sequence[ChainArrays],
    order: Sequence[int],
    places: Sequence[Ints],
    deadline: Deadline,
) -> list[Ints]:
    """Return the places of each request after work stealing in an order."""
    alignment = Alignment([networks[shop.chain_of[r]] for r in order], [places[r] for r in order])
    alignment.steal(deadline)
    aligned = dict(zip(order, alignment.places, strict=True))
    return [aligned[request] for request in range(len(order))]


def _shorten_tail(shop: FlowShop, networks: Sequence[ChainArrays], best: _Best) -> None:
    """Try each of the last K requests whole on each unit, and keep what shortens the makespan.

    The paper's second phase (section V-C) with the simulation as the measure.
    """
    for request in best.schedule.order[-shop.unit_count :]:
        for unit in runs_whole(networks[shop.chain_of[request]]).tolist():
            cuts = list(best.schedule.cuts)
            cuts[request] = whole_cuts(shop, request, unit)
            if not best.offer(Schedule(best.schedule.order, tuple(cuts))):
                return


class Hetero2PipeBackend(SteppedBackend):
    """All steps of the paper."""

    name: ClassVar[str] = "hetero2pipe"
    capabilities: ClassVar[Capabilities] = workload_capabilities(
        "the paper's planner: slicing, assignment, work stealing, tail"
    )
    steps: ClassVar[Steps] = Steps(reorder=True, steal=True, tail=True)


class NoContentionNoTailBackend(SteppedBackend):
    """The paper's "No C/T"."""

    name: ClassVar[str] = "hetero2pipe-noct"
    capabilities: ClassVar[Capabilities] = workload_capabilities(
        "hetero2pipe without contention mitigation and tail"
    )
    steps: ClassVar[Steps] = Steps(steal=True)


class NoContentionBackend(SteppedBackend):
    """The paper's ablation without contention mitigation (Fig. 8b)."""

    name: ClassVar[str] = "hetero2pipe-noc"
    capabilities: ClassVar[Capabilities] = workload_capabilities("hetero2pipe without contention mitigation")
    steps: ClassVar[Steps] = Steps(steal=True, tail=True)


class NoTailBackend(SteppedBackend):
    """The paper's ablation without the tail (Fig. 8b)."""

    name: ClassVar[str] = "hetero2pipe-not"
    capabilities: ClassVar[Capabilities] = workload_capabilities("hetero2pipe without the tail")
    steps: ClassVar[Steps] = Steps(reorder=True, steal=True)


class HungarianBackend(SteppedBackend):
    """Slicing and ordering alone: to compare the assignment with the exact order."""

    name: ClassVar[str] = "hungarian"
    capabilities: ClassVar[Capabilities] = workload_capabilities(
        "slices each request, and orders by the paper's assignment"
    )
    steps: ClassVar[Steps] = Steps(reorder=True)


class PipeItBackend(SteppedBackend):
    """Pipe-it adapted to unlike networks (Hetero2Pipe, VI-A): balanced pipelines over the CPU clusters.

    It "selects the fastest core combination": among those of one cluster or group of cores alone, and of
    several that share none.
    """

    name: ClassVar[str] = "pipe-it"
    capabilities: ClassVar[Capabilities] = workload_capabilities(
        "Pipe-it adapted: balanced slices over the best combination of CPU units, in order of arrival"
    )
    steps: ClassVar[Steps] = Steps(processors_only=True)

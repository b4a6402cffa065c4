"""Hetero2Pipe's planner as published (section V) and corrected, its ablations, and Pipe-it.

Four steps: slice every request for itself (P1), keep high requests apart (P3, by assignment), align the
chunks of each column by work stealing (P2), and shorten the tail. The backends differ in which of them
they take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...formulations.flow_shop.tables import FlowShop, Schedule, shop_of
from ...formulations.flow_shop.values import WorkloadValues
from ...formulations.problem import Problem
from ..protocol import Capabilities, Deadline, SolveOptions
from .arrays import ChainArrays, Ints
from .assignment import order_by_assignment
from .heuristic import (
    Proposals,
    WorkloadHeuristic,
    confined,
    network_arrays,
    slice_requests,
    workload_capabilities,
)
from .stealing import Alignment
from .units import compatible_units, processor_units, runs_whole, whole_cuts


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Which steps a planner takes after slicing.

    Attributes
    ----------
    reorder
        Keep high requests apart, where the order is free (Algorithm 2).
    steal
        Align columns by work stealing (Algorithm 3).
    tail
        Try to run each of the last K requests on one unit.
    processors_only
        Use CPU units only.
    """

    reorder: bool = False
    steal: bool = False
    tail: bool = False
    processors_only: bool = False


class SteppedBackend(WorkloadHeuristic):
    """A planner that slices, and takes some further steps."""

    steps: ClassVar[Steps]

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Proposals:
        """Yield one schedule for each largest set of units that share no cores."""
        shop = shop_of(problem)
        among = processor_units(problem.platform) if self.steps.processors_only else range(shop.unit_count)
        if not among:
            return {"reason": "the platform has no CPU unit"}
        found, reason, everywhere = False, "", network_arrays(shop)
        for units in compatible_units(shop, among):
            networks = confined(everywhere, units)
            places = slice_requests(shop, networks)
            if places is None:
                names = ", ".join(shop.units[unit] for unit in sorted(units))
                reason = f"some request has a layer that none of {names} can run in its turn"
            else:
                found = True
                yield self._refine(shop, networks, places, deadline)
        return {} if found else {"reason": reason}

    def _refine(
        self, shop: FlowShop, networks: Sequence[ChainArrays], places: Sequence[Ints], deadline: Deadline
    ) -> Schedule:
        """Take the further steps as far as the time suffices; playing a schedule takes some, too."""
        order = tuple(range(shop.request_count))
        if self.steps.reorder and shop.order_is_free and not deadline.passed:
            order = order_by_assignment(shop.high, shop.unit_count)
        schedule = _schedule(shop, networks, order, places)
        if self.steps.steal and not deadline.passed:
            stolen = _schedule(shop, networks, order, _steal(shop, networks, order, places, deadline))
            if not deadline.passed:
                schedule = min(schedule, stolen, key=lambda found: _makespan_us(shop, found))
        return _shorten_tail(shop, networks, schedule, deadline) if self.steps.tail else schedule


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


def _shorten_tail(
    shop: FlowShop, networks: Sequence[ChainArrays], schedule: Schedule, deadline: Deadline
) -> Schedule:
    """Try each of the last K requests whole on each unit, and keep what shortens the makespan.

    The paper's second phase (section V-C) with the simulation as the measure.
    """
    best, least = schedule, 0 if deadline.passed else _makespan_us(shop, schedule)
    for request in schedule.order[-shop.unit_count :]:
        for unit in runs_whole(networks[shop.chain_of[request]]).tolist():
            if deadline.passed:
                return best
            cuts = list(best.cuts)
            cuts[request] = whole_cuts(shop, request, unit)
            candidate = Schedule(best.order, tuple(cuts))
            makespan = _makespan_us(shop, candidate)
            if makespan < least:
                best, least = candidate, makespan
    return best


def _makespan_us(shop: FlowShop, schedule: Schedule) -> int:
    return WorkloadValues(shop, schedule).makespan_us


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
    """Pipe-it adapted to unlike networks (Hetero2Pipe, VI-A): balanced pipelines over the CPU clusters."""

    name: ClassVar[str] = "pipe-it"
    capabilities: ClassVar[Capabilities] = workload_capabilities(
        "Pipe-it adapted: balanced slices over the CPU units, requests in order of arrival"
    )
    steps: ClassVar[Steps] = Steps(processors_only=True)

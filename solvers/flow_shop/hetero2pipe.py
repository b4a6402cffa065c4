"""Hetero2Pipe's planner as published (section V) and corrected, its ablations, and Pipe-it.

Four steps: slice every request for itself (P1), keep high requests apart (P3, by assignment), align the
chunks of each column by work stealing (P2), and shorten the tail. The backends differ in which of them
they take. Where the device's memory is limited (Eq. 6), which the paper's algorithms say nothing about, every
step prefers what fits, and a plan that does not fit in the end is repaired (`fitted`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...formulations.flow_shop.tables import FlowShop, Schedule, shop_of
from ...formulations.flow_shop.values import WorkloadValues
from ...formulations.problem import Problem
from ..protocol import NEVER, Capabilities, Deadline, SolveOptions
from ..rounds import UNFINISHED, Proposals, Proposing
from .arrays import FORBIDDEN, ChainArrays, Ints
from .baselines import (
    confined,
    network_arrays,
    processor_units,
    runs_whole,
    slice_requests,
    subsets,
    unit_sets,
    whole_cuts,
    workload_capabilities,
)

Merit = tuple[int, int]
"""Bytes above what the device has, then the makespan in microseconds: less is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Which steps a planner takes after slicing."""

    reorder: bool = False  # keep high requests apart, where the order is free (Algorithm 2)
    steal: bool = False  # align columns by work stealing (Algorithm 3)
    tail: bool = False  # try to run each of the last K requests on one unit
    processors_only: bool = False  # use CPU units only, in every combination: the best one is kept


class SteppedBackend(Proposing[Schedule]):
    """A planner that slices, and takes some further steps."""

    steps: ClassVar[Steps]

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Proposals[Schedule]:
        """Yield one schedule for each largest set of units that share no cores, or each combination."""
        shop = shop_of(problem)
        sets = unit_sets(shop)
        if self.steps.processors_only:
            sets = subsets(own.intersection(processor_units(problem.platform)) for own in sets)
            if not sets:
                return {"reason": "the platform has no CPU unit"}
        found, hurried, reason, everywhere = False, 0, "", network_arrays(shop)
        for units in sets:
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


class NoStealingBackend(SteppedBackend):
    """Without work stealing (Algorithm 3), which the paper's ablations always have."""

    name: ClassVar[str] = "hetero2pipe-nos"
    capabilities: ClassVar[Capabilities] = workload_capabilities("hetero2pipe without work stealing")
    steps: ClassVar[Steps] = Steps(reorder=True, tail=True)


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


def order_by_assignment(high: Sequence[bool], reach: int) -> tuple[int, ...]:
    """Return the order of the paper's contention mitigation (section V-B): low requests move between high.

    Algorithm 2 leaves open how the moves of one assignment act together, forbids every donor of its own
    window, and has no way out when no finite assignment is left (errata 19 to 21). The reading here:

    - a *slot* is an H with another H within the K - 1 positions behind it; a *donor* is an L that has not
      moved yet;
    - moving donor i behind slot j costs |j - i| (Eq. 10), and is forbidden inside the window
      [j - K + 1, j + K - 1] and where the gap that i leaves brings two H closer than K;
    - the assignment is rectangular: as many pairs as are possible, all inserted at once;
    - again, until no slot or no allowed pair is left. Each round uses up a donor, so it ends.

    It is neither the least displacement nor always the least violation: `columns` finds both.

    `high`: whether each request is of high contention, in order of arrival; M values. `reach`: units K: two
    requests disturb each other at distances below K.
    The result has the request at each position.
    """
    order = list(range(len(high)))
    donors = {request for request in order if not high[request]}
    while moves := _assign(order, high, donors, reach):
        donors -= set(moves)
        order = _insert(order, moves)
    return tuple(order)


def _assign(order: Sequence[int], high: Sequence[bool], donors: set[int], reach: int) -> dict[int, int]:
    """Return the slot that each donor moves behind, both as requests; empty when no move is left."""
    pattern = np.array([high[request] for request in order])
    slots = [p for p in np.flatnonzero(pattern).tolist() if pattern[p + 1 : p + reach].any()]
    places = [p for p, request in enumerate(order) if request in donors and _may_leave(pattern, p, reach)]
    if not slots or not places:
        return {}
    forbidden = len(order) ** 2
    cost = np.abs(np.array(places)[:, None] - np.array(slots))
    cost = np.where(cost < reach, forbidden, cost)
    pairs = cheapest_pairs(cost) if len(places) <= len(slots) else [(i, j) for j, i in cheapest_pairs(cost.T)]
    return {order[places[i]]: order[slots[j]] for i, j in pairs if cost[i, j] < forbidden}


def cheapest_pairs(cost: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the assignment of every row to a column of its own that costs least.

    Shortest augmenting paths (Crouse 2016), with the ties of scipy's `linear_sum_assignment`: loading that
    takes longer than many a time limit.

    `cost`: shape (R, C), R <= C.
    """
    rows, columns = cost.shape
    row_price, column_price = np.zeros(rows, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    row_of, column_of = np.full(columns, -1), np.full(rows, -1)
    for first in range(rows):
        path, length = np.full(columns, -1), np.full(columns, np.iinfo(np.int64).max)
        row, least, open_, passed = first, 0, np.arange(columns)[::-1].copy(), []
        while True:
            to = least + cost[row, open_] - row_price[row] - column_price[open_]
            shorter = to < length[open_]
            path[open_[shorter]], length[open_[shorter]] = row, to[shorter]
            least = int(length[open_].min())
            nearest = np.flatnonzero(length[open_] == least)
            free = nearest[row_of[open_[nearest]] < 0]
            place = free[-1] if len(free) else nearest[0]
            column = int(open_[place])
            passed.append(column)
            open_[place] = open_[-1]
            open_ = open_[:-1]
            if row_of[column] < 0:
                break
            row = int(row_of[column])
        row_price[first] += least
        row_price[row_of[passed[:-1]]] += least - length[passed[:-1]]
        column_price[passed] -= least - length[passed]
        while column >= 0:
            row = int(path[column])
            row_of[column], column_of[row], column = row, column, int(column_of[row])
    return list(enumerate(column_of.tolist()))


def _may_leave(pattern: NDArray[np.bool_], place: int, reach: int) -> bool:
    """Return whether no two H come closer than K when the request at a place leaves."""
    before = np.flatnonzero(pattern[:place])
    behind = np.flatnonzero(pattern[place:])
    if not len(before) or not len(behind):
        return True
    return bool(place + behind[0] - before[-1] - 1 >= reach)


def _insert(order: Sequence[int], moves: dict[int, int]) -> list[int]:
    """Return the order with each donor right behind its slot."""
    donor_of = {slot: donor for donor, slot in moves.items()}
    stay = [request for request in order if request not in moves]
    return [r for request in stay for r in (request, donor_of.get(request)) if r is not None]


class Alignment:
    """The cuts of requests in order, and how long their columns last: aligned by work stealing.

    That is Algorithm 3 with its errata 22 to 25 repaired. The model is the paper's: column j holds the chunks
    with position + unit = j, and lasts as long as its longest chunk. In each window of K positions the
    request with the most work is *critical*; the others hand layers along the chain until their chunk in each
    of its columns is no longer than its own. Work moves towards the units that are not aligned yet, so that
    no alignment is undone, and an alignment stays only if every unit can run what it got and the columns
    together do not last longer.

    `arrays`: the network of each request, in order. `places`: cuts of each request as places among the legal
    boundaries, shape (K + 1,); not changed.
    """

    def __init__(self, arrays: Sequence[ChainArrays], places: Sequence[Ints]) -> None:
        self._arrays = arrays
        self.places = list(places)
        self.times = np.array([a.times_us(own) for a, own in zip(arrays, places, strict=True)])

    @property
    def columns_us(self) -> int:
        """Sum over the columns of their longest chunk, without slowdown."""
        return sum(self._column_us(column) for column in range(sum(self.times.shape) - 1))

    def steal(self, deadline: Deadline = NEVER) -> None:
        """Align every window of K positions with its critical request, one after the other, in time."""
        count, units = self.times.shape
        for start in range(count):
            if deadline.passed:
                return
            window = range(start, min(count, start + units))
            critical = max(window, key=lambda place: int(self.times[place].sum()))
            for place in window:
                if place != critical:
                    self._offer(place, self._aligned(place, critical))

    def _aligned(self, place: int, critical: int) -> Ints:
        """Return cuts with which no chunk takes longer than the critical one of its column, if possible."""
        later = place > critical
        return self._pushed(place, critical) if later else self._pulled(place, critical)

    def _pushed(self, place: int, critical: int) -> Ints:
        """Fill the units from the first on; what is left flows to later units."""
        arrays, cuts, distance = self._arrays[place], self.places[place].copy(), place - critical
        for unit in range(len(cuts) - 1 - distance):
            most = self.times[critical, unit + distance]
            stops = _row(arrays, unit, int(cuts[unit])) <= most
            cuts[unit + 1] = np.flatnonzero(stops)[-1]
            cuts[unit + 2 :] = np.maximum(cuts[unit + 2 :], cuts[unit + 1])
        return cuts

    def _pulled(self, place: int, critical: int) -> Ints:
        """Fill the units from the last on; what is left flows to earlier units."""
        arrays, cuts, distance = self._arrays[place], self.places[place].copy(), critical - place
        for unit in reversed(range(distance, len(cuts) - 1)):
            most = self.times[critical, unit - distance]
            starts = _column(arrays, unit, int(cuts[unit + 1])) <= most
            cuts[unit] = np.flatnonzero(starts)[0]
            cuts[:unit] = np.minimum(cuts[:unit], cuts[unit])
        return cuts

    def _offer(self, place: int, cuts: Ints) -> None:
        """Take new cuts of a request if the columns do not last longer."""
        times = self._arrays[place].times_us(cuts)
        if times.max() >= FORBIDDEN:
            return
        touched = range(place, place + len(times))
        old, before = self.times[place].copy(), sum(map(self._column_us, touched))
        self.times[place] = times
        if sum(map(self._column_us, touched)) <= before:
            self.places[place] = cuts
        else:
            self.times[place] = old

    def _column_us(self, column: int) -> int:
        count, units = self.times.shape
        return max(int(self.times[column - u, u]) for u in range(units) if 0 <= column - u < count)


def _row(arrays: ChainArrays, unit: int, start: int) -> Ints:
    """Return the times of the chunks of a unit from one boundary, by where they stop."""
    stops = np.arange(arrays.size + 1)
    times = arrays.tail[unit] + arrays.head[unit, start]
    times = np.where((stops < start) | (stops > arrays.last[unit, start]), FORBIDDEN, times)
    times[start] = 0
    return times


def _column(arrays: ChainArrays, unit: int, stop: int) -> Ints:
    """Return the times of the chunks of a unit to one boundary, by where they start."""
    starts = np.arange(arrays.size + 1)
    times = arrays.tail[unit, stop] + arrays.head[unit]
    times = np.where((starts > stop) | (arrays.last[unit] < stop), FORBIDDEN, times)
    times[stop] = 0
    return times


def merit(shop: FlowShop, schedule: Schedule) -> Merit:
    """Return how good a schedule is."""
    values = WorkloadValues(shop, schedule)
    capacity = shop.chains[0].device_memory
    over = 0 if capacity is None else max(0, values.peak_bytes - capacity)
    return over, values.makespan_us


def fitted(
    shop: FlowShop, networks: Sequence[ChainArrays], schedule: Schedule, deadline: Deadline
) -> Schedule:
    """Return a schedule that fits the memory of the device (Eq. 6), as far as small changes lead there.

    The paper states the limit and no algorithm for it; it trusts that large networks, which press most, are
    kept apart. Here the schedule is changed a little at a time, towards the least excess and then the least
    makespan: one request is run whole on one unit, which shortens how long its tensors wait, or two requests
    that stand beside each other change places. It ends when the schedule fits, or nothing helps.
    """
    if shop.chains[0].device_memory is None or deadline.passed:
        return schedule
    least = merit(shop, schedule)
    while least[0] and not deadline.passed:
        best = schedule
        for candidate in _neighbours(shop, networks, schedule):
            if deadline.passed:
                break
            found = merit(shop, candidate)
            if found < least:
                best, least = candidate, found
        if best is schedule:
            break
        schedule = best
    return schedule


def _neighbours(shop: FlowShop, networks: Sequence[ChainArrays], schedule: Schedule) -> Iterator[Schedule]:
    """Yield the schedules with one request whole on one unit, or two neighbours in the other order."""
    for request in schedule.order:
        for unit in runs_whole(networks[shop.chain_of[request]]).tolist():
            cuts = list(schedule.cuts)
            cuts[request] = whole_cuts(shop, request, unit)
            if cuts[request] != schedule.cuts[request]:
                yield Schedule(schedule.order, tuple(cuts))
    for place in range(len(schedule.order) - 1) if shop.order_is_free else ():
        order = list(schedule.order)
        order[place : place + 2] = order[place : place + 2][::-1]
        yield Schedule(tuple(order), schedule.cuts)

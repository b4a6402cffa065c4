"""The serial and the greedy planner that Hetero2Pipe is compared with (section VI-A)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from ...formulations.flow_shop.tables import Cuts, FlowShop, Schedule, shop_of
from ...formulations.flow_shop.values import WorkloadValues
from ...formulations.problem import Problem
from ..proposing import Proposals, Proposing
from ..protocol import Capabilities, Deadline, SolveOptions
from .arrays import ChainArrays, Ints
from .heuristic import confined, network_arrays, workload_capabilities
from .units import processor_units, runs_whole, unit_sets, whole_cuts


class SerialBackend(Proposing[Schedule]):
    """One request after the other on one CPU unit: MNN on the big cores."""

    name: ClassVar[str] = "serial"
    capabilities: ClassVar[Capabilities] = workload_capabilities(
        "every request whole on the CPU unit that is fastest for all of them"
    )

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Proposals[Schedule]:
        """Yield the fastest unit's schedule; a unit that cannot run some layer gives way to the next."""
        shop, units = shop_of(problem), frozenset(processor_units(problem.platform))
        able = [set(runs_whole(network).tolist()) for network in confined(network_arrays(shop), units)]
        common = sorted(set.intersection(*able))
        if not common:
            reason = "no CPU unit runs every layer" if units else "the platform has no CPU unit"
            return {"reason": reason}
        requests = range(shop.request_count)
        schedules = [
            Schedule(tuple(requests), tuple(whole_cuts(shop, r, u) for r in requests)) for u in common
        ]
        yield min(schedules, key=lambda schedule: WorkloadValues(shop, schedule).work_us)
        return {}


class BandBackend(Proposing[Schedule]):
    """Band's greedy scheduler with fallback, adapted: requests pass the units in platform order.

    Band cuts a network where the set of units that can run the layers changes, and sends each piece,
    when its turn comes, to the unit that would finish it first. Here the pieces of one request may stay
    on their unit or go on to a later one, never back; a unit from which the rest could not be finished
    is not chosen. Requests are dispatched in order of arrival.
    """

    name: ClassVar[str] = "band"
    capabilities: ClassVar[Capabilities] = workload_capabilities(
        "Band adapted: greedy earliest finish with fallback, units in platform order"
    )

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Proposals[Schedule]:
        """Yield one schedule for each largest set of units that share no cores."""
        shop = shop_of(problem)
        found, everywhere = False, network_arrays(shop)
        for units in unit_sets(shop):
            schedule = _dispatch_all(shop, confined(everywhere, units))
            if schedule is not None:
                found = True
                yield schedule
        return {} if found else {"reason": "some request has layers that no order of the units can run"}


def _dispatch_all(shop: FlowShop, networks: Sequence[ChainArrays]) -> Schedule | None:
    """Send every request on its way, or return None if one of them cannot run."""
    free_us = [0] * shop.unit_count
    dispatchers = [Dispatcher(network) for network in networks]
    cuts: list[Cuts] = []
    for request, index in zip(shop.workload.requests, shop.chain_of, strict=True):
        places = dispatchers[index].dispatch(request.arrival_us, free_us)
        if places is None:
            return None
        cuts.append(networks[index].cuts_of(places))
    return Schedule(tuple(range(len(cuts))), tuple(cuts))


class Dispatcher:
    """Sends the requests of one network to units."""

    def __init__(self, arrays: ChainArrays) -> None:
        self._arrays = arrays
        self._ways_out = ways_out(arrays)
        able = arrays.last > np.arange(arrays.size + 1)
        changes = (able[:, 1:-1] != able[:, :-2]).any(axis=0)
        self._ends: Ints = np.append(np.flatnonzero(changes) + 1, arrays.size)

    def dispatch(self, arrival_us: int, free_us: list[int]) -> Ints | None:
        """Return the cuts of a request as places, or None if it cannot run."""
        size = self._arrays.size
        places = np.full(self._arrays.unit_count + 1, size, dtype=np.int64)
        at, unit, start, ready_us = 0, -1, 0, arrival_us
        while at < size:
            choices = list(self._choices(at, unit, start, ready_us, free_us))
            if not choices:
                return None
            _, ready_us, chosen, stop = min(choices)
            if chosen != unit:
                places[unit + 1 : chosen + 1] = at
                unit, start = chosen, at
            free_us[unit], at = ready_us, stop
        return places

    def _choices(
        self, at: int, unit: int, start: int, ready_us: int, free_us: Sequence[int]
    ) -> Iterator[tuple[bool, int, int, int]]:
        """Yield (whether the piece stays unfinished, finish, unit, stop) for each unit that may go on."""
        arrays = self._arrays
        end = int(self._ends[np.searchsorted(self._ends, at, side="right")])
        for other in range(max(unit, 0), arrays.unit_count):
            begin = start if other == unit else at
            stop = min(end, int(self._ways_out[other + 1, arrays.last[other, begin]]))
            if stop <= at:
                continue
            if other == unit:
                finish = ready_us + int(arrays.tail[unit, stop] - arrays.tail[unit, at])
            else:
                took = int(arrays.tail[other, stop] + arrays.head[other, at])
                finish = max(ready_us, free_us[other]) + took
            yield stop < end, finish, other, stop


def ways_out(arrays: ChainArrays) -> Ints:
    """Return the last boundary up to b from which the units k, k + 1, ... can run all that is left.

    Shape (K + 1, m + 1), by [k][b]; -1 where there is none.
    """
    places = np.arange(arrays.size + 1)
    table = np.full((arrays.unit_count + 1, arrays.size + 1), -1, dtype=np.int64)
    table[-1, -1] = arrays.size
    for unit in reversed(range(arrays.unit_count)):
        can = table[unit + 1, arrays.last[unit]] >= places
        table[unit] = np.maximum.accumulate(np.where(can, places, -1))
    return table

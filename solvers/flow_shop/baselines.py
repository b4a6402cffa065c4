"""The planners that Hetero2Pipe is compared with: serial, greedy, and simulated annealing (section VI-A)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import ClassVar

import numpy as np

from ...formulations.flow_shop.formulation import FORMULATION
from ...formulations.flow_shop.tables import Cuts, FlowShop, Schedule, shop_of
from ...formulations.flow_shop.values import WorkloadValues
from ...formulations.hardware import Platform, UnitKind, free_sets
from ...formulations.judge import violations
from ...formulations.problem import Problem
from ..protocol import Capabilities, Deadline, SolveOptions
from ..rounds import UNFINISHED, Proposals, Proposing, proposing
from .arrays import FORBIDDEN, ChainArrays, Ints, build_arrays
from .columns import least_bottleneck

MOST_SETS = 32
"""Most sets of compatible units that are tried."""


def processor_units(platform: Platform) -> tuple[int, ...]:
    """Return the CPU units; on a platform that names no CPU, the units of unnamed kind."""
    for kind in (UnitKind.CPU, UnitKind.OTHER):
        found = tuple(index for index, unit in enumerate(platform.units) if unit.kind is kind)
        if found:
            return found
    return ()


def unit_sets(shop: FlowShop) -> tuple[frozenset[int], ...]:
    """Return the largest sets of units that share no cores, at most `MOST_SETS`; all units where none do."""
    return tuple(islice(free_sets(shop.chains[0].exclusive), MOST_SETS))


def subsets(sets: Iterable[frozenset[int]]) -> tuple[frozenset[int], ...]:
    """Return all sets that are part of one of these, largest first: the combinations of units."""
    found = {
        frozenset(chosen)
        for each in sets
        for count in range(1, len(each) + 1)
        for chosen in combinations(sorted(each), count)
    }
    return tuple(sorted(found, key=lambda each: (-len(each), sorted(each))))


def whole_cuts(shop: FlowShop, request: int, unit: int) -> Cuts:
    """Return the cuts that lay a request on one unit."""
    return (0,) * (unit + 1) + (shop.chain(request).layer_count,) * (shop.unit_count - unit)


def confine(arrays: ChainArrays, units: frozenset[int]) -> ChainArrays:
    """Return a network that only these units can run."""
    open_ = np.array([unit in units for unit in range(arrays.unit_count)])
    nowhere = np.arange(arrays.size + 1)
    return replace(arrays, last=np.where(open_[:, None], arrays.last, nowhere))


def runs_whole(arrays: ChainArrays) -> Ints:
    """Return the units that can run the whole network."""
    return np.flatnonzero(arrays.last[:, 0] == arrays.size)


def workload_capabilities(summary: str) -> Capabilities:
    """Return what a heuristic for workloads can do: plans that break rules are repaired or dropped."""
    return proposing(summary, FORMULATION.name)


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


STEPS = 5000
"""Moves that are tried for each set of units."""

SHOWN_EVERY = 100
"""After this number of moves the best schedule is shown, if it is a new one."""

FIRST_PERMILLE, LAST_PERMILLE = 50, 1
"""Temperature at the start and at the end, relative to the value of the first schedule."""

ORDER_SHARE, NEAR_SHARE = 0.3, 0.5
"""Share of the moves that change a free order, and of the others that move a cut by one place."""


_FADING = 0.9
"""How much of the longest look at a schedule counts a step later."""

_STUCK = "some request has layers that the units in their order cannot run"


class AnnealingBackend(Proposing[Schedule]):
    """Simulated annealing of the first objective term on the simulation."""

    name: ClassVar[str] = "annealing"
    capabilities: ClassVar[Capabilities] = workload_capabilities(
        f"simulated annealing over order and cuts, {STEPS:,} simulations"
    )

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Proposals[Schedule]:
        """Anneal from the slicing in order of arrival, for each largest set of units without conflicts."""
        shop = shop_of(problem)
        steps, left, everywhere = 0, 0, network_arrays(shop)
        for units in unit_sets(shop):
            networks = confined(everywhere, units)
            places = slice_requests(shop, networks)
            if places is not None:
                annealer = _Annealer(problem, networks, places, options.seed)
                yield from annealer.walk(deadline)
                steps, left = steps + annealer.steps, left + STEPS - annealer.steps
        return {"steps": steps, UNFINISHED: left} if steps or left else {"steps": 0, "reason": _STUCK}


class _Annealer:
    """One walk: the schedule where it is, and the best valid one so far (the first one, if none was)."""

    def __init__(
        self, problem: Problem, networks: Sequence[ChainArrays], places: Sequence[Ints], seed: int
    ) -> None:
        self._problem, self._shop = problem, shop_of(problem)
        self._arrays = [networks[index] for index in self._shop.chain_of]
        self._random = random.Random(seed)
        cuts = tuple(own.cuts_of(found) for own, found in zip(self._arrays, places, strict=True))
        self._here = self.best = Schedule(tuple(range(len(cuts))), cuts)
        self.steps = 0
        self._terms = problem.objective.terms
        self._energy = 0
        self._least: tuple[int, ...] | None = None

    def walk(self, deadline: Deadline) -> Iterator[Schedule]:
        """Walk until it is cold or time is up; yield the best schedule at once, now and then, and at the end.

        Time is up when it is not enough for another step and for the judge, who takes as long.
        """
        yield self.best
        shown, began = self.best, deadline.now()
        values = WorkloadValues(self._shop, self._here)
        self._energy, self._least = values.term(self._terms[0]), self._valid_terms(values)
        look_s = deadline.now() - began
        heat, cooling = self._energy * FIRST_PERMILLE / 1000, (LAST_PERMILLE / FIRST_PERMILLE) ** (1 / STEPS)
        while self.steps < STEPS and not deadline.within(2 * look_s):
            if self.steps % SHOWN_EVERY == 0 and self.best is not shown:
                shown = self.best
                yield shown
            began = deadline.now()
            self._step(heat)
            look_s = max(_FADING * look_s, deadline.now() - began)
            heat *= cooling
            self.steps += 1
        yield self.best

    def _step(self, heat: float) -> None:
        schedule = self._neighbour()
        if schedule is None:
            return
        values = WorkloadValues(self._shop, schedule)
        energy = values.term(self._terms[0])
        worse = energy - self._energy
        if worse > 0 and (heat == 0 or self._random.random() >= math.exp(-worse / heat)):
            return
        self._here, self._energy = schedule, energy
        if self._least is None or values.values(self._terms) < self._least:
            least = self._valid_terms(values)
            if least is not None:
                self.best, self._least = schedule, least

    def _valid_terms(self, values: WorkloadValues) -> tuple[int, ...] | None:
        """Return the objective of a schedule, or None if it breaks something."""
        return None if any(violations(self._problem, values.schedule, values)) else values.values(self._terms)

    def _neighbour(self) -> Schedule | None:
        """Return a schedule with one request somewhere else or cut otherwise; None if no unit can run it."""
        count = self._shop.request_count
        if self._shop.order_is_free and count > 1 and self._random.random() < ORDER_SHARE:
            order = list(self._here.order)
            order.insert(self._random.randrange(count), order.pop(self._random.randrange(count)))
            return replace(self._here, order=tuple(order))
        request = self._random.randrange(count)
        arrays = self._arrays[request]
        places = self._moved(arrays.places_of(self._here.cuts[request]), arrays.size)
        if arrays.times_us(places).max() >= FORBIDDEN:
            return None
        cuts = list(self._here.cuts)
        cuts[request] = arrays.cuts_of(places)
        return replace(self._here, cuts=tuple(cuts))

    def _moved(self, places: Ints, size: int) -> Ints:
        """Return cuts with one of them a step away or anywhere; it pushes the others along."""
        if len(places) == 2:
            return places
        cut = self._random.randrange(1, len(places) - 1)
        near = int(places[cut]) + self._random.choice((-1, 1))
        place = near if self._random.random() < NEAR_SHARE else self._random.randint(0, size)
        place = min(max(place, 0), size)
        return np.concatenate(
            (np.minimum(places[:cut], place), [place], np.maximum(places[cut + 1 :], place))
        )

"""The numbers of one schedule, in exact integers: the only definitions of what a plan is worth."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from ..deployment import Mode
from ..history import Usage, usage_of
from ..jobs.quantities import RequestValues
from ..play import Parts, Run, play, play_columns
from ..workload import Execution, LoadPolicy
from .quantities import QUANTITIES, TERMS
from .tables import FlowShop, Schedule


def memory_usage(shop: FlowShop, parts: Parts, runs: Sequence[Run]) -> Usage:
    """Return the bytes in use over time; `parts`: the chunks of each request, `runs`: when they ran, once.

    A chunk that runs needs the most live tensors of its layers, and its weights unless all weights are
    resident; a request between two chunks holds the tensors alive at the cut. Resident weights count
    once for each network, layer and unit, however many requests use them.
    """
    resident = shop.workload.load_policy is LoadPolicy.RESIDENT
    return usage_of(
        _changes(shop, runs),
        ((run.request, run.start_us, run.end_us) for run in runs),
        base=_resident_bytes(shop, parts) if resident else 0,
        requests=shop.request_count,
    )


def _changes(shop: FlowShop, runs: Sequence[Run]) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back)."""
    by_request = defaultdict(list)
    for run in runs:
        by_request[run.request].append(run)
    for request, own in by_request.items():
        own.sort(key=lambda run: run.start_us)
        for run in own:
            needs = chunk_bytes(shop, request, *run.part[:2])
            yield from ((run.start_us, needs), (run.end_us, -needs))
        for run, following in pairwise(own):
            waiting = shop.boundary_bytes[shop.chain_of[request]][run.part[1]]
            yield from ((run.end_us, waiting), (following.start_us, -waiting))


def chunk_bytes(shop: FlowShop, request: int, start: int, stop: int) -> int:
    """Return what a chunk needs while it runs, on top of resident weights."""
    chain = shop.chain(request)
    needs = chain.memory_bytes(start, stop)
    if shop.workload.load_policy is LoadPolicy.RESIDENT:
        needs -= chain.weights.between(start, stop)
    return needs


def _resident_bytes(shop: FlowShop, parts: Parts) -> int:
    """Return the weights of every layer on every unit that runs it."""
    held: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for request, own in enumerate(parts):
        for start, stop, unit in own:
            held[shop.chain_of[request], unit].update(range(start, stop))
    return sum(shop.chains[chain].weights.of(layers) for (chain, _), layers in held.items())


_WARM_ROUNDS, ROUNDS = 8, 16
"""Rounds of a stream that are played; the period is taken over those after the first ones, which fill it."""


class WorkloadValues(RequestValues):
    """Every quantity of one schedule, in exact integers, computed when it is asked for."""

    terms = TERMS
    quantities = QUANTITIES
    tables: FlowShop

    def __init__(self, shop: FlowShop, schedule: Schedule) -> None:
        super().__init__(shop, shop.chunked(schedule))
        self.schedule = schedule

    @cached_property
    def times_us(self) -> tuple[tuple[int, ...], ...]:
        """Time of each request on each unit, without slowdown."""
        return tuple(self.tables.times_us(request, cuts) for request, cuts in enumerate(self.schedule.cuts))

    @property
    def makespan_us(self) -> int:
        """End of the last request: nothing leaves later than it ends, so searches need not ask who it is."""
        return max(run.end_us for run in self.runs)

    @cached_property
    def position(self) -> tuple[int, ...]:
        """Place of each request in the order."""
        places = {request: place for place, request in enumerate(self.schedule.order)}
        return tuple(places[request] for request in range(len(places)))

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """What ran when, one round of the workload."""
        workload = self.tables.workload
        plain = workload.execution is Execution.ASYNCHRONOUS and workload.task_slots is None
        played = self.tables.played(self.code.order, self.code.parts) if plain else self.play(1)
        return tuple(played)

    @cached_property
    def stream(self) -> tuple[Run, ...]:
        """What runs when in the first rounds of an endless stream, in order of the ends."""
        return tuple(self.play(ROUNDS, endless=True))

    def play(self, rounds: int, *, endless: bool = False) -> list[Run]:
        """Return what runs when in rounds that follow each other without waiting, in order of the ends.

        `endless`: whether more rounds follow: their chunks run beside those of the last of these rounds.
        """
        shop, workload = self.tables, self.tables.workload
        jobs, units = shop.jobs_of(self.code.parts), shop.unit_count
        loss = shop.losses.loss if shop.losses.contended else None
        if workload.execution is Execution.ASYNCHRONOUS:
            order, slots = self.code.order, workload.task_slots
            return play(jobs, order, units, loss, slots, rounds=rounds, endless=endless)
        # A chunk has company in its own column only: of as many jobs more as there are units.
        following = endless * -(-units // len(jobs))
        return play_columns(jobs, self.schedule.order, units, loss, rounds=rounds + following)

    @cached_property
    def busy_us(self) -> dict[int, int]:
        """Load of each unit in use, without slowdown."""
        columns = zip(*self.times_us, strict=True)
        return {unit: load for unit, load in enumerate(map(sum, columns)) if load}

    @cached_property
    def unit_bubble_us(self) -> dict[int, int]:
        """Idle time of each unit in use between its first start and its last end.

        In columns: the rest of each column beside the chunk, over all cells of the columns (Eq. 3).
        """
        if self.tables.workload.execution is Execution.COLUMNS:
            return self._column_bubbles_us()
        found = {}
        for unit in self.busy_us:
            runs = [run for run in self.runs if run.unit == unit]
            span = max(run.end_us for run in runs) - min(run.start_us for run in runs)
            found[unit] = span - sum(run.end_us - run.start_us for run in runs)
        return found

    def _column_bubbles_us(self) -> dict[int, int]:
        lengths: dict[int, int] = {}
        spent = dict.fromkeys(range(self.tables.unit_count), 0)
        for run in self.runs:
            column, took = self.position[run.request] + run.unit, run.end_us - run.start_us
            lengths[column] = max(lengths.get(column, 0), took)
            spent[run.unit] += took
        last = self.tables.request_count - 1
        return {
            unit: sum(length for column, length in lengths.items() if 0 <= column - unit <= last) - took
            for unit, took in spent.items()
        }

    @cached_property
    def usage(self) -> Usage:
        """Memory over time."""
        return memory_usage(self.tables, self.code.parts, self.runs)

    @cached_property
    def period_us(self) -> int:
        """Largest load; for a stream with slowdown or task slots, the time of a round if that is more."""
        workload = self.tables.workload
        free = workload.execution is Execution.ASYNCHRONOUS and workload.task_slots is None
        if workload.mode is Mode.BATCH or (free and not self.tables.losses.contended):
            return max(self.busy_us.values())
        ends = [0] * ROUNDS
        for run in self.stream:
            if run.round < ROUNDS:
                ends[run.round] = max(ends[run.round], run.end_us)
        played = -(-(ends[-1] - ends[_WARM_ROUNDS - 1]) // (ROUNDS - _WARM_ROUNDS))
        # No stream is faster than its busiest unit; a few rounds can look as if.
        return max(played, *self.busy_us.values())

    @property
    def gapness_us(self) -> int:
        """Largest minus smallest load of the units in use; the largest when only one of several is used."""
        loads = self.busy_us.values()
        alone = len(loads) == 1 and self.tables.unit_count > 1
        return max(loads) if alone else max(loads) - min(loads)

    @property
    def latency_us(self) -> int:
        """Sum over the requests of arrival to exit."""
        return sum(self.request_latency_us)

    @property
    def bubbles_us(self) -> int:
        """Bubbles of all units."""
        return sum(self.unit_bubble_us.values())

    @property
    def peak_bytes(self) -> int:
        """Most bytes in use at any instant."""
        return self.usage.peak_bytes

    @property
    def bottleneck_us(self) -> int:
        """Sum over the requests of their longest chunk."""
        return sum(map(max, self.times_us))

    @property
    def work_us(self) -> int:
        """Time of all chunks without slowdown."""
        return sum(map(sum, self.times_us))

    @property
    def contention(self) -> int:
        """Pairs of high slices in the same column (Property 3).

        Two requests that are high on all units, at a distance of d < K, have K - d of them (erratum 18).
        """
        shop, columns = self.tables, Counter[int]()
        for place, request in enumerate(self.schedule.order):
            high = shop.high_slices(request, self.schedule.cuts[request])
            columns.update(place + unit for unit, own in enumerate(high) if own)
        return sum(count * (count - 1) // 2 for count in columns.values())

    @property
    def displacement(self) -> int:
        """Sum over the requests of the distance from the position of arrival."""
        return sum(abs(place - request) for request, place in enumerate(self.position))

    @property
    def idle_permille(self) -> int:
        """Unused share of all units over the makespan, permille, rounded up."""
        whole = self.tables.unit_count * self.makespan_us
        return -(-1000 * (whole - self.work_us) // whole)

    @property
    def energy_nj(self) -> int:
        """Energy until the last request is done; of a stream that of a round, the mean of some, rounded up.

        Busy are units for as long as chunks run, with slowdown; 0 where powers are not known.
        """
        powers, stream = self.tables.powers, self.tables.workload.mode is Mode.STREAM
        if powers is None:
            return 0
        if not self.tables.losses.contended:
            return powers.energy_nj(self.busy_us, self.period_us if stream else self.makespan_us)
        if not stream:
            return powers.energy_nj(_busy_us(self.runs), self.makespan_us)
        busy_us = _busy_us(run for run in self.stream if _WARM_ROUNDS <= run.round < ROUNDS)
        return -(-powers.energy_nj(busy_us, 0) // (ROUNDS - _WARM_ROUNDS)) + powers.idle_mw * self.period_us

    def before(self, first: int, second: int) -> int:
        """Return whether the first request is served before the second."""
        return int(self.position[first] < self.position[second])

    def beside(self, first: int, second: int) -> int:
        """Return whether chunks of both requests run at the same time."""
        one, other = ([run for run in self.runs if run.request == each] for each in (first, second))
        return int(any(a.start_us < b.end_us and b.start_us < a.end_us for a in one for b in other))


def _busy_us(runs: Iterable[Run]) -> dict[int, int]:
    """Return for how long units run, by unit in use."""
    found: dict[int, int] = {}
    for run in runs:
        found[run.unit] = found.get(run.unit, 0) + run.end_us - run.start_us
    return found

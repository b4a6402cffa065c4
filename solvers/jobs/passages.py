"""The passages of a network over the units, requests as search and bound see them, and fines.

Borders are counted: 0, ..., m; a chunk [i, j) on unit u takes `until[u][j] - since[u][i]`, copies included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from ...formulations.chain import Chain
from ...formulations.hardware import free_sets
from ...formulations.jobs.tables import JobTables, ScheduleTables, Visits
from ...formulations.losses import Losses, Mark
from ...formulations.problem import Feature, Problem
from ..contention import Company, Runnable
from ..repairing import breach, missed_by
from ..weights import reaches

Part = tuple[int, int, int]
"""A chunk: first border, last border, unit."""

Passage = tuple[Part, ...]
"""The chunks of a request, in order."""

Step = tuple[int, int, int]
"""What counts of the units before a chunk (`Visits`), its unit, and what counts behind it."""


@dataclass(frozen=True, slots=True)
class Passages:
    """Times of the chunks of one network, and the cheapest passage at some prices."""

    until: tuple[tuple[int, ...], ...]  # by [unit][border]
    since: tuple[tuple[int, ...], ...]  # by [unit][border]
    reach: tuple[tuple[int, ...], ...]
    """The last border that a chunk can reach from a border on a unit, by [unit][border]; the border itself:
    it cannot start there."""
    steps: tuple[Step, ...]  # the chunks that may follow each other

    @staticmethod
    def of(
        chain: Chain, borders: Sequence[int], units: Collection[int], visits: Visits | None = None
    ) -> Passages:
        """Return the passages of a network over some units; it may be cut at some of its layers: 0, ..., n.

        `visits`: which units may follow each other; None: any.
        """
        until, since, reach, at = [], [], [], np.array(borders, dtype=np.int64)
        for unit, prefix in enumerate(chain.prefix_us):
            until.append(tuple(prefix[b] + chain.transfer_out_us[b][unit] for b in borders))
            since.append(tuple(prefix[b] - chain.transfer_in_us[b][unit] for b in borders))
            far = reaches(chain, unit, at).tolist() if unit in units else range(len(borders))
            reach.append(tuple(far))
        steps = tuple(_steps(units, visits or Visits(once=False, rank=None)))
        return Passages(tuple(until), tuple(since), tuple(reach), steps)

    @property
    def size(self) -> int:
        """Number of sections between borders."""
        return len(self.until[0]) - 1

    @property
    def states(self) -> int:
        """One more than the largest number that says which units a request has visited."""
        return 1 + max(max(state, after) for state, _, after in self.steps)

    @property
    def unit_count(self) -> int:
        """Number of units."""
        return len(self.until)

    def time_us(self, part: Part) -> int:
        """Return how long a chunk takes without company."""
        start, stop, unit = part
        return self.until[unit][stop] - self.since[unit][start]

    def times_us(self, passage: Sequence[Part]) -> list[int]:
        """Return the time of a passage on each unit."""
        times = [0] * self.unit_count
        for part in passage:
            times[part[2]] += self.time_us(part)
        return times

    @property
    def alone(self) -> tuple[int, Passage] | None:
        """The least time of a passage, and it; None: there is none."""
        found = self.cheapest([1] * self.unit_count)
        return None if found is None else (int(found[0]), found[1])

    def allows(self, passage: Sequence[Part]) -> bool:
        """Return whether each unit can run its chunks."""
        return all(stop <= self.reach[unit][start] for start, stop, unit in passage)

    def without(self, section: int, units: Collection[int]) -> Passages:
        """Return the passages that do not pass a section on some units."""
        reach = list(self.reach)
        for unit in units:
            before = (min(last, section) for last in reach[unit][: section + 1])
            reach[unit] = (*before, *reach[unit][section + 1 :])
        return replace(self, reach=tuple(reach))

    def cheapest(
        self, prices: Sequence[float], discounts: Sequence[float] | None = None
    ) -> tuple[float, Passage] | None:
        """Return the least sum of time x price less the discount of each chunk, and its passage.

        None: no passage is possible. With whole numbers the sum is exact. Chunks are as long as they like
        to be: what the memory of a unit forbids counts only for single sections, so the sum may be too
        small, never too large.
        """
        units: list[tuple[list[float], list[float], tuple[int, ...]]] = []
        for unit, price in enumerate(prices):
            less = 0 if discounts is None else discounts[unit]
            begin = [-price * time - less for time in self.since[unit]]
            units.append((begin, [price * time for time in self.until[unit]], self.reach[unit]))
        steps = [(state, *units[on], after) for state, on, after in self.steps]
        states = self.states
        least: list[list[float]] = [[inf] * states for _ in range(self.size + 1)]
        least[0][0] = 0
        last = [[(0, 0)] * states for _ in range(self.size + 1)]
        runs: list[float] = [inf] * len(steps)
        starts = [0] * len(steps)
        for border, before in enumerate(least[:-1]):
            stop, now, ways = border + 1, least[border + 1], last[border + 1]
            for number, (state, begin, end, reach, after) in enumerate(steps):
                if reach[border] == border:
                    runs[number] = inf
                    continue
                started = before[state] + begin[border]
                if started < runs[number]:
                    runs[number], starts[number] = started, border
                total = runs[number] + end[stop]
                if total < now[after]:
                    now[after], ways[after] = total, (starts[number], number)
        best = min(least[-1])
        if best == inf:
            return None
        found: list[Part] = []
        border, after = self.size, least[-1].index(best)
        while border:
            start, number = last[border][after]
            after, unit, _ = self.steps[number]
            found.append((start, border, unit))
            border = start
        return best, tuple(reversed(found))


def _steps(units: Collection[int], visits: Visits) -> Iterator[Step]:
    """Yield the chunks that may follow each other, from a request that has none."""
    seen, open_ = {0}, [0]
    for state in open_:
        for unit in sorted(units):
            after = visits.after(state, unit)
            if after is not None:
                yield state, unit, after
                if after not in seen:
                    seen.add(after)
                    open_.append(after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Requests of several networks on some units."""

    networks: tuple[Passages, ...]
    network_of: tuple[int, ...]  # by request
    release_us: tuple[int, ...]  # by request
    after: tuple[tuple[int, ...], ...]  # by request, those that it waits for
    losses: Losses | None  # None: nothing slows anything down
    borders: tuple[tuple[int, ...], ...]  # by network, the layers at which it may be cut: 0, ..., n
    exclusive: tuple[frozenset[int], ...]  # for each unit those that never run at the same time
    visits: Visits  # which units a request may pass in which order

    @property
    def unit_count(self) -> int:
        """Number of units K."""
        return len(self.exclusive)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many requests of each network there are."""
        return tuple(map(self.network_of.count, range(len(self.networks))))

    @property
    def longest_us(self) -> int:
        """A lower bound on the makespan: the longest that a request, and those before it, take alone."""
        alone = [network.alone for network in self.networks]
        ends: list[int] = []
        for number, release_us, before in zip(self.network_of, self.release_us, self.after, strict=True):
            own = alone[number]
            begin_us = max([release_us, *(ends[other] for other in before)])
            ends.append(begin_us + (0 if own is None else own[0]))
        return max(ends)

    @property
    def able(self) -> NDArray[np.bool_]:
        """Whether a unit can run some section of a network, shape (N, K)."""
        return np.array(
            [
                [any(last > border for border, last in enumerate(row)) for row in network.reach]
                for network in self.networks
            ]
        )

    def company(self) -> Company:
        """Return the sets of requests that can run at the same time."""
        size, units = len(self.networks), self.unit_count
        least = most = np.zeros((size, units, size, units), dtype=np.int64)
        if self.losses is not None:
            least = np.array(self.losses.least_permille, dtype=np.int64)
            most = np.array(self.losses.most_permille, dtype=np.int64)
        return Company(
            Runnable(
                counts=self.counts, able=self.able, losses=least, most_losses=most, exclusive=self.exclusive
            )
        )

    def mark(self, network: int, part: Part) -> Mark:
        """Return how sensitive and how intense a chunk of a network is."""
        assert self.losses is not None
        start, stop, unit = part
        borders = self.borders[network]
        return self.losses.mark(network, borders[start], borders[stop], unit)


def instance_of(tables: JobTables, units: Collection[int]) -> Instance:
    """Return the requests of a problem on some of its units."""
    borders = tuple((0, *(section.stop for section in own)) for own in tables.sections)
    return Instance(
        networks=tuple(
            Passages.of(chain, own, units, tables.visits)
            for chain, own in zip(tables.chains, borders, strict=True)
        ),
        network_of=tables.chain_of,
        release_us=tuple(request.release_us for request in tables.jobs.requests),
        after=tables.after,
        losses=tables.losses if tables.losses.contended else None,
        borders=borders,
        exclusive=tables.chains[0].exclusive,
        visits=tables.visits,
    )


MOST_SETS = 12
"""Most sets of units that are searched one by one, where units exclude each other or few may be used."""

CHECKED = frozenset(map(str, (Feature.LIMITS, Feature.RULES, Feature.OPAQUE_RULES, Feature.DEVICE_MEMORY)))
"""What only the judge says of a plan."""

_BROKEN, _PER_PERMILLE = 100.0, 0.002
"""What a schedule that breaks something is fined, and for each permille of it, as shares of all work."""

Fine = Callable[[tuple[int, ...], Sequence[Sequence[Part]]], float]
"""From a request for each chunk, in the order in which units serve them, and the chunks of each request to
a time; 0.0: nothing is broken."""


def is_checked(problem: Problem) -> bool:
    """Return whether plans that fit their units can break something."""
    return bool(problem.features & CHECKED)


def unit_sets(problem: Problem, tables: ScheduleTables) -> Iterator[frozenset[int]]:
    """Return the sets of units that plans may use: largest ones first, none in another one."""
    return free_sets(tables.excluded, problem.limits.max_units)


def fine_of(problem: Problem, tables: JobTables, work_us: int) -> Fine | None:
    """Return how schedules are fined; None: those whose chunks fit their units break nothing.

    `work_us`: of all requests, the scale of the fines. Memory alone is looked up; else the judge is asked.
    """
    if not is_checked(problem):
        return None

    def scaled(missed: int) -> float:
        return work_us * (_BROKEN + _PER_PERMILLE * missed) if missed else 0.0

    room = tables.chains[0].device_memory
    if room is not None and problem.features & CHECKED == {str(Feature.DEVICE_MEMORY)}:
        need = _Memory(tables)
        return lambda order, parts: scaled(missed_by(loaded, room) if (loaded := need(parts)) > room else 0)
    return lambda order, parts: scaled(breach(problem, tables.ordered(order, tuple(map(tuple, parts))))[0])


class _Memory:
    """The bytes of all different chunks, which stay loaded."""

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables
        self._known: dict[tuple[int, Part], int] = {}

    def __call__(self, parts: Sequence[Sequence[Part]]) -> int:
        known, chain_of = self._known, self._tables.chain_of
        used = {(chain_of[request], part) for request, own in enumerate(parts) for part in own}
        for key in used - known.keys():
            known[key] = self._tables.memory_bytes(chain_of.index(key[0]), key[1])
        return sum(map(known.__getitem__, used))

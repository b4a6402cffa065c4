"""The dynamic program over sets of devices: the least cost of a single pipeline on every set.

Let G[v][i][S] be the least cost of the layers from place i on by a pipeline over exactly the devices of S,
the first of which is of kind v. The cost of a pipeline is its longest stage, or a sum over chunks and
messages; with k[u][i][j] the cost of a chunk and l[u][v][j] that of a message,

    T[u][j][S]    = min over v of l[u][v][j] + G[v][j][S]         (+ is the maximum for longest stages)
    G[u][i][S + u] = min over j of k[u][i][j] + T[u][j][S]

(EPipe, Eq. 5, with errata E1 to E5; clusters, section 2, read from the end, so that the tables also say what
a pipeline that has been begun takes at least). A message does not depend on i, so it is taken out of the
inner minimum; without overlap it is part of a stage, and there is one inner minimum for all receivers with
equal links. All sets of one size are computed at once. Steps: sets x kinds x places^2 / 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from ...formulations.terms import Term
from ..protocol import NEVER as NO_DEADLINE
from ..protocol import Deadline, TimeIsUpError
from .arrays import LONGEST, NEVER, Ints, KindArrays


class States:
    """All sets of devices, counted by kind."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = tuple(counts)
        sizes = [count + 1 for count in counts]
        self.strides = tuple(accumulate(reversed(sizes[1:]), int.__mul__, initial=1))[::-1]
        self.shape = tuple(sizes)
        self.number = self.strides[0] * sizes[0]

    @cached_property
    def digits(self) -> Ints:
        """How many devices of each kind a set has, by [kind][set]."""
        found: Ints = np.indices(self.shape, np.int16).reshape(len(self.shape), self.number)
        return found

    @cached_property
    def sizes(self) -> Ints:
        """Number of devices of each set."""
        found: Ints = self.digits.sum(axis=0)
        return found

    def of(self, kinds: Iterable[int]) -> int:
        """Return the set of one device of each of the kinds that are listed."""
        return sum(self.strides[kind] for kind in kinds)

    def counted(self, state: int) -> tuple[int, ...]:
        """Return how many devices of each kind a set has."""
        return tuple(int(row[state]) for row in self.digits)

    def least_below(self, table: Ints) -> Ints:
        """Return the least entry over all subsets of each set, by the last axis of a table."""
        found = table.reshape(-1, self.number).copy()
        for size, stride in zip(self.shape, self.strides, strict=True):
            runs = found.reshape(len(found), -1, size, stride)
            for count in range(1, size):
                np.minimum(runs[:, :, count], runs[:, :, count - 1], out=runs[:, :, count])
        return found.reshape(table.shape)


_BLOCK_BYTES = 400_000
"""Sets are computed in blocks whose temporary table stays in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What chunks and messages of a single pipeline cost."""

    chunk: Ints  # by [kind][start place][stop place], for chunks with a message behind them
    last: Ints  # by [kind][start place]: of the last chunk, with the result that leaves
    link: Ints  # by [kind][kind][place]
    additive: bool = True  # whether a pipeline costs the sum of it all; otherwise the most of it
    in_stage: bool = False  # whether a message is added to the chunk before it (a stage without overlap)


ADDITIVE = frozenset(
    {
        Term.LATENCY,
        Term.ENERGY,
        Term.TRAFFIC,
        Term.PEAK_MEMORY,
        Term.DEVICES,
    }
)
"""Terms that are sums over the chunks and messages of a pipeline."""


def costs_of(term: str, arrays: KindArrays) -> Costs:
    """Return what chunks and messages add to a term of one pipeline: the period, or one of `ADDITIVE`."""
    times, possible = arrays.compute_us, arrays.compute_us < NEVER
    there = np.where(arrays.link_us < NEVER, 0, NEVER)
    link, enter, leave = (
        np.where(row < NEVER, 0, NEVER) for row in (there, arrays.enter_us, arrays.leave_us)
    )
    if term in (Term.PERIOD, Term.LATENCY):
        chunk, link, enter, leave = times, arrays.link_us, arrays.enter_us, arrays.leave_us
    elif term == Term.ENERGY:
        power = arrays.power_mw[:, None, None]
        long = times > LONGEST // np.maximum(power, 1)
        chunk = np.where(long, LONGEST, np.where(long, 0, times) * power)
    elif term == Term.TRAFFIC:
        chunk, link = np.zeros_like(times), there + arrays.sent_bytes
    elif term == Term.PEAK_MEMORY:
        chunk = np.broadcast_to(arrays.memory_bytes, times.shape)
    else:
        chunk = np.ones_like(times)
    longest = term == Term.PERIOD
    both = np.maximum if longest and arrays.overlap else np.add
    chunk = np.where(possible, chunk, NEVER)
    chunk[:, 0] = both(chunk[:, 0], enter[:, None])
    last = both(chunk[:, :, -1], leave[:, None])
    return Costs(
        chunk=np.minimum(chunk, NEVER),
        last=np.minimum(last, NEVER),
        link=np.minimum(link, NEVER),
        additive=not longest,
        in_stage=longest and not arrays.overlap,
    )


class Program:
    """The least cost of a single pipeline on every set of devices.

    Raises TimeIsUpError: the deadline has passed before it was done.
    """

    def __init__(
        self, arrays: KindArrays, states: States, costs: Costs, deadline: Deadline = NO_DEADLINE
    ) -> None:
        self.states, self._costs, self._last = states, costs, arrays.last
        self._kinds, self._excluded = range(len(arrays.counts)), arrays.excluded
        finite = [table[table < NEVER] for table in (costs.chunk, costs.last, costs.link)]
        most = max((int(values.max()) for values in finite if values.size), default=0)
        small = not costs.additive and 2 * most < np.iinfo(np.int32).max
        self._type = np.dtype(np.int32 if small else np.int64)
        self._never = int(np.iinfo(np.int32).max) if small else NEVER
        self._chunk, self._end, self._link = map(self._fitted, (costs.chunk, costs.last, costs.link))
        self._order = np.argsort(states.sizes, kind="stable")
        self._at = np.empty_like(self._order)
        self._at[self._order] = np.arange(states.number)
        self._ways = [self._groups(kind) for kind in self._kinds]
        self._fill(deadline)

    def _fitted(self, table: Ints) -> Ints:
        """Return a table in the type of the program."""
        return np.where(table >= NEVER, self._never, table).astype(self._type)

    def _groups(self, kind: int) -> list[tuple[Ints, list[int]]]:
        """Return (costs of chunks by [start][stop], receivers): one for all, or by links within stages."""
        if not self._costs.in_stage:
            return [(self._chunk[kind], list(self._kinds))]
        rows: dict[bytes, list[int]] = {}
        for other in self._kinds:
            rows.setdefault(self._costs.link[kind, other].tobytes(), []).append(other)
        found = []
        for receivers in rows.values():
            stage = self._costs.chunk[kind] + self._costs.link[kind, receivers[0]]
            if (stage < NEVER).any():
                found.append((self._fitted(stage), receivers))
        return found

    def _fill(self, deadline: Deadline) -> None:
        states, places = self.states, self._last + 1
        self._table = np.full((len(self._kinds), places, states.number), self._never, self._type)
        for kind in (kind for kind in self._kinds if states.counts[kind]):
            self._table[kind, :, self._at[states.strides[kind]]] = self._end[kind]
        starts = np.searchsorted(states.sizes[self._order], np.arange(sum(states.counts) + 2))
        for size in range(1, sum(states.counts)):
            begin, end = starts[size], starts[size + 1]
            own = self._order[begin:end]
            for kind in self._kinds:
                if deadline.passed:
                    raise TimeIsUpError
                free = states.digits[kind, own] < states.counts[kind]
                for other in self._excluded[kind]:
                    free &= states.digits[other, own] == 0
                columns = np.flatnonzero(free)
                if columns.size:
                    target = self._at[own[columns] + states.strides[kind]]
                    self._table[kind][:, target] = self._extended(kind, begin, end, columns)

    def _extended(self, kind: int, begin: int, end: int, columns: Ints) -> Ints:
        """Return the costs from each place on, when a device of a kind is put before some sets."""
        found = np.full((self._last + 1, columns.size), self._never, self._type)
        for chunk, receivers in self._ways[kind]:
            behind = np.take(self._behind(kind, receivers, begin, end), columns, axis=1)
            if (behind < self._never).any():
                self._minimise(chunk, behind, found)
        return found

    def _behind(self, kind: int, receivers: list[int], begin: int, end: int) -> Ints:
        """Return T of the text for a run of sets; within stages without the message."""
        best: Ints | None = None
        for other in receivers:
            own = self._table[other, :, begin:end]
            if not self._costs.in_stage:
                both = np.add if self._costs.additive else np.maximum
                own = both(self._link[kind, other][:, None], own)
            best = own.copy() if best is None else np.minimum(best, own, out=best)
        assert best is not None
        return best

    def _minimise(self, chunk: Ints, behind: Ints, found: Ints) -> None:
        """Lower the costs that were found, by a chunk to every place and what is behind it."""
        last, both = self._last, np.add if self._costs.additive else np.maximum
        reach = last - np.argmax(chunk[:, ::-1] < self._never, axis=1)
        width = max(64, _BLOCK_BYTES // (self._type.itemsize * (last + 1)))
        room = np.empty((last + 1, min(width, behind.shape[1])), self._type)
        for left in range(0, behind.shape[1], width):
            part, out = behind[:, left : left + width], found[:, left : left + width]
            for place in range(last - 1):
                stop = int(min(reach[place], last - 1)) + 1
                if chunk[place, place + 1] >= self._never and (chunk[place] >= self._never).all():
                    continue
                table = room[: stop - place - 1, : part.shape[1]]
                both(chunk[place, place + 1 : stop, None], part[place + 1 : stop], out=table)
                if len(table):
                    np.minimum(out[place], table.min(axis=0), out=out[place])

    # What it says

    @cached_property
    def least(self) -> Ints:
        """Least cost on exactly the devices of each set; NEVER where there is no pipeline."""
        found = self._table[:, 0].min(axis=0)[self._at].astype(np.int64)
        return np.where(found >= self._never, NEVER, found)

    def rest(self) -> Ints:
        """Return the least cost from a place on, by [kind][place][set], the first device of the kind.

        The devices are at most those of the set. What is impossible is at least NEVER.
        """
        table = self._table[:, :, self._at].astype(np.int64)
        return self.states.least_below(np.where(table >= self._never, NEVER, table))

    def pipeline(self, state: int) -> list[tuple[int, int, int]]:
        """Return (kind, start place, stop place) of the chunks of a best pipeline on exactly a set."""
        at, table = self._at, self._table
        kind = int(np.argmin(table[:, 0, at[state]]))
        place, found = 0, list[tuple[int, int, int]]()
        while True:
            state -= self.states.strides[kind]
            if state == 0:
                return [*found, (kind, place, self._last)]
            stop, following = self._next(kind, place, table[:, :, at[state]])
            found.append((kind, place, stop))
            place, kind = stop, following

    def _next(self, kind: int, place: int, behind: Ints) -> tuple[int, int]:
        """Return (place, kind) to go on with: the best, given the costs of what is behind."""
        chunk = self._costs.chunk[kind, place][None, :]
        link, rest = self._costs.link[kind], np.where(behind >= self._never, NEVER, behind.astype(np.int64))
        if self._costs.additive:
            total = chunk + np.minimum(link + rest, NEVER)
        elif self._costs.in_stage:
            total = np.maximum(chunk + link, rest)
        else:
            total = np.maximum(np.maximum(chunk, link), rest)
        other, stop = np.unravel_index(int(np.argmin(total)), total.shape)
        return int(stop), int(other)

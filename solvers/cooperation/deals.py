"""The split of rows (`formulations/cooperation/splitting.py`) for all chunks and all groups at once.

A *map* is a chunk, for groups of two or for larger ones: its deadlines, how many rows each kind of device can
do within each of them, and what messages of r rows take. For a deadline t the time of a group is t + M(t) (or
the longer of both), where the messages M(t) only shrink when t grows. So between two deadlines p < q that
were tried no time is less than D[p + 1] + M(q): most deadlines are left out. M may grow where messages are
unlike, or where what r rows read does not grow ever more slowly with r; then a lower one is taken there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ...formulations.cooperation.tables import Groups
from ..pipelines.arrays import LONGEST, NEVER, Ints
from ..protocol import Deadline, TimeIsUpError
from .kinds import Bools, Kinds

_PLACES = 1 << 20
"""More than the deadlines of a map."""

MOST_US = NEVER // _PLACES
"""Times of groups have to be shorter."""


class Asked(NamedTuple):
    """Chunks with groups, each with its leader or -1 for the best, by entry.

    `map`, `group`, `leader`: index of the map, the set of devices, the kind of the leader.
    """

    map: Ints
    group: Ints
    leader: Ints

    def at(self, index: Ints) -> Asked:
        """Return some of them."""
        return Asked(self.map[index], self.group[index], self.leader[index])


class Deal(NamedTuple):
    """Rows of each device of groups, by entry, and by kind in the order in which they are filled.

    `leader`, `lead`: kind of the leader, and its rows. `kind`, `number`, `able`: the kind, how many of them
    are there beside the leader, how many rows each can do. `full`, `part`: how many of them do that many
    rows, and how many beyond the first one does the next of them; all others do one.
    """

    leader: Ints
    lead: Ints
    kind: Ints
    number: Ints
    able: Ints
    full: Ints
    part: Ints


@dataclass(frozen=True)
class Deals:
    """Maps of some chunks.

    `groups`, `kinds`: the problem.
    """

    groups: Groups
    kinds: Kinds
    chunks: tuple[tuple[int, int, bool], ...]  # (start, stop, whether groups are of two) of each map
    deadline: Deadline  # when to give up, with `TimeIsUpError`

    @cached_property
    def rows(self) -> Ints:
        """Rows of each map."""
        return np.asarray([self.groups.segments.of(i, j).rows for i, j, _ in self.chunks], np.int32)

    @cached_property
    def _counts(self) -> Ints:
        """How many devices of each kind a set has, in few bytes: memory limits the speed."""
        return self.kinds.counts.astype(np.int32)

    @cached_property
    def _group_sizes(self) -> Ints:
        found: Ints = self._counts.sum(axis=1, dtype=np.int32)
        return found

    @cached_property
    def row_at(self) -> Ints:
        """Where the numbers by row begin, by map."""
        return np.asarray([0, *accumulate((self.rows + 1).tolist())], np.int64)

    @cached_property
    def times_us(self) -> Ints:
        """How long a device computes so many rows, by [kind][row_at + rows]; LONGEST if it cannot."""
        groups, firsts = self.groups, self.kinds.firsts
        found = np.full((len(firsts), self.row_at[-1]), LONGEST, np.int64)
        for number, (start, stop, two) in enumerate(self.chunks):
            if self.deadline.passed:
                raise TimeIsUpError
            for kind, device in enumerate(firsts):
                if groups.chain.runs(start, stop, device):
                    times = groups.tile_us(start, stop, device, 2 if two else 3)
                    own = found[kind, self.row_at[number] : self.row_at[number + 1]]
                    own[:] = times if times[-1] < LONGEST else [min(time, LONGEST) for time in times]
        return found

    @cached_property
    def _deadlines(self) -> tuple[Ints, Ints, Ints]:
        """Deadlines of all maps, where those of each begin, and rows by [deadline][kind] within them."""
        at, times, able = [0], [], []
        for number in range(len(self.chunks)):
            own = self.times_us[:, self.row_at[number] : self.row_at[number + 1]]
            found = np.unique(own[:, 1:])
            times.append(found)
            columns = [np.searchsorted(row, found, "right") - 1 for row in own]
            able.append(np.where(own[:, -1] < LONGEST, np.stack(columns, 1), 0).astype(np.int32))
            at.append(at[-1] + len(found))
        return np.concatenate(times), np.asarray(at, np.int64), np.concatenate(able)

    @cached_property
    def sizes(self) -> Ints:
        """Bytes that r rows read and send, by [row_at + r]."""
        found = np.zeros(self.row_at[-1], np.int64)
        for number, (start, stop, two) in enumerate(self.chunks):
            segment = self.groups.segments.of(start, stop)
            both = (amount.by_rows(2 if two else 3) for amount in (segment.received, segment.sent))
            found[self.row_at[number] : self.row_at[number + 1]] = np.add(*map(np.asarray, both))
        return found

    @cached_property
    def _exchanges(self) -> tuple[Ints, Ints, Ints, bool]:
        """What messages take (`_message_ns`).

        Returns by [kind][kind] the row of `time_ns`, and whether there are links; by [row][row_at + rows] the
        time, the last row being below all others; and whether the last one is the only one in use.
        """
        kinds = range(len(self.kinds.firsts))
        found: dict[object, int] = {}
        index = np.zeros((len(kinds), len(kinds)), np.int64)
        linked = np.ones((len(kinds), len(kinds)), bool)
        rows = []
        for one in kinds:
            for other in kinds:
                pair = self.kinds.pair(one, other)
                exchange = self.groups.exchange(*pair) if pair else None
                linked[one, other] = exchange is not None
                if exchange is None:
                    continue
                if exchange not in found:
                    found[exchange] = len(found)
                    rows.append(_exchange_ns(exchange.latency_ns, exchange.bytes_per_second, self.sizes))
                index[one, other] = found[exchange]
        times = np.stack(rows or [np.zeros_like(self.sizes)])
        low, single = times.min(axis=0), len(times) == 1
        for begin, end in zip(self.row_at[:-1], self.row_at[1:], strict=True):
            if (np.diff(self.sizes[begin + 1 : end], 2) > 0).any():
                low[begin:end], single = low[begin + 1], False
        return index, linked, times if single else np.vstack([times, low]), single

    def linked(self, asked: Asked) -> Bools:
        """Return whether a leader has links with all others; if none is given, whether all have."""
        counts, linked = self._counts[asked.group], self._exchanges[1]
        if self.groups.links_alike:
            return np.full(len(counts), bool(linked.any()))
        others = counts.copy()
        others[np.arange(len(counts)), asked.leader] -= 1
        found: Bools = np.all(linked[asked.leader] | (others <= 0), axis=1)
        return found

    def deal(self, asked: Asked, at: Ints) -> Deal:
        """Deal rows out within a deadline of each entry (`splitting._dealt`)."""
        counts, able, most = self._able(asked, at)
        entries, left = np.arange(len(counts)), most - 1
        leader = asked.leader
        if self.groups.links_alike:
            leader = np.argmax(np.where(counts > 0, able, -1), axis=1)
        lead = np.minimum(left, able[entries, leader] - 1)
        left = left - lead
        counts[entries, leader] -= 1
        kinds = counts.shape[1]
        ranked = np.sort((most[:, None] - able) * np.int32(kinds) + np.arange(kinds, dtype=np.int32), axis=1)
        kind, able = ranked % kinds, most[:, None] - ranked // kinds
        count, step = np.take_along_axis(counts, kind, axis=1), np.maximum(able - 1, 0)
        taken = count * step
        before = np.maximum(left[:, None] - np.cumsum(taken, axis=1, dtype=np.int32) + taken, 0)
        full = np.where(step > 0, np.minimum(count, before // np.maximum(step, 1)), 0)
        part = np.where((full < count) & (step > 0), before - full * step, 0)
        return Deal(leader, lead + 1, kind, count, able, full, part)

    def _able(self, asked: Asked, at: Ints) -> tuple[Ints, Ints, Ints]:
        """Return counts by kind, rows that each can do within a deadline, and the most that one can have."""
        most = self.rows[asked.map] - self._group_sizes[asked.group] + 1
        return self._counts[asked.group], np.minimum(self._deadlines[2][at], most[:, None]), most

    def _enough(self, asked: Asked, at: Ints) -> Bools:
        counts, able, _ = self._able(asked, at)
        all_work = ((able >= 1) | (counts == 0)).all(axis=1)
        found: Bools = all_work & ((counts * able).sum(axis=1) >= self.rows[asked.map])
        return found

    def _message_ns(self, asked: Asked, deal: Deal, *, low: bool = False) -> Ints:
        """Return how long messages take; `low`: by the last row."""
        index, _, times, _ = self._exchanges
        base = self.row_at[asked.map][:, None]
        row = len(times) - 1 if low else index[deal.leader[:, None], deal.kind]
        part = deal.part > 0
        found: Ints = (
            deal.full * times[row, base + np.maximum(deal.able, 0)]
            + part * times[row, base + 1 + deal.part]
            + (deal.number - deal.full - part) * times[row, base + 1]
        ).sum(axis=1)
        return found

    def _joined(self, compute_us: Ints, message_us: Ints) -> Ints:
        if self.groups.data.devices.overlap:
            return np.maximum(compute_us, message_us)
        return compute_us + message_us

    def best(self, asked: Asked) -> tuple[Ints, Ints]:
        """Return the place of the best deadline of each entry, and the time; NEVER where there is none."""
        deadlines, starts, _ = self._deadlines
        deadlines = np.minimum(deadlines, MOST_US // 2)
        first, last = starts[asked.map], starts[asked.map + 1] - 1
        possible = self._enough(asked, last) & self.linked(asked)
        low, high = first.copy(), last.copy()
        while (low < high).any():
            middle = (low + high) // 2
            enough = self._enough(asked, middle)
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
        low = np.minimum(low, last)
        entries = np.flatnonzero(possible)
        best = np.full(len(first), NEVER, np.int64)
        single = self._exchanges[3]

        def tried(entry: Ints, at: Ints) -> Ints:
            """Note the times at deadlines; return bounds on messages there."""
            own = asked.at(entry)
            deal = self.deal(own, at)
            total = self._message_ns(own, deal)
            key = self._joined(deadlines[at], _in_us(total)) * _PLACES + at - first[entry]
            np.minimum.at(best, entry, key)
            lower = total if single else self._message_ns(own, deal, low=True)
            return _in_us(lower - 2 * self.kinds.sizes[own.group])  # each is rounded up by less than that

        # Behind the last deadline all others do one row.
        begin, end = low[entries], last[entries] + 1
        tried(entries, begin)
        own = asked.at(entries)
        others = self.kinds.sizes[own.group] - 1
        behind = _in_us(others * (self._exchanges[2][-1, self.row_at[own.map] + 1] - 2))
        while len(entries):
            bound = self._joined(deadlines[np.minimum(begin + 1, end - 1)], behind) * _PLACES
            keep = (end - begin > 1) & (bound + begin + 1 - first[entries] < best[entries])
            entries, begin, end, behind = entries[keep], begin[keep], end[keep], behind[keep]
            middle = (begin + end) // 2
            there = tried(entries, middle)
            entries = np.concatenate([entries, entries])
            begin, end = np.concatenate([begin, middle]), np.concatenate([middle, end])
            behind = np.concatenate([there, behind])
        return first + best % _PLACES, np.where(best < NEVER, best // _PLACES, NEVER)

    def message_us(self, asked: Asked, deal: Deal) -> Ints:
        """Return how long all messages of each entry take."""
        return _in_us(self._message_ns(asked, deal))

    def by_device(self, asked: Asked, deal: Deal) -> Ints:
        """Return the rows of each device, by [entry][device], the first devices of each kind."""
        place = np.argsort(deal.kind, axis=1)
        counts = self.kinds.counts[asked.group]
        able, full, part = (np.take_along_axis(r, place, axis=1) for r in (deal.able, deal.full, deal.part))
        found = np.zeros((len(counts), len(self.kinds.of)), np.int64)
        for device, kind in enumerate(self.kinds.of):
            number = device - self.kinds.firsts[kind]
            leads = deal.leader == kind
            other = number - leads
            rows = np.where(other < full[:, kind], able[:, kind], 1)
            rows = np.where(other == full[:, kind], 1 + part[:, kind], rows)
            rows = np.where(leads & (number == 0), deal.lead, rows)
            found[:, device] = np.where(number < counts[:, kind], rows, 0)
        return found


def _in_us(total_ns: Ints) -> Ints:
    return np.minimum(-(-total_ns // 1000), MOST_US // 2)


def _exchange_ns(latency_ns: int, bytes_per_second: int, sizes: Ints) -> Ints:
    """Return the time of messages of some sizes (`Exchange.time_ns`)."""
    if not bytes_per_second:
        return np.zeros_like(sizes)
    most = 9 * 10**9
    if len(sizes) and int(sizes.max()) > most:  # products of more than 64 bits
        exact = [latency_ns - (-int(size) * 10**9 // bytes_per_second) for size in sizes]
        return np.asarray([min(time, LONGEST) for time in exact], np.int64)
    return latency_ns - (-sizes * 10**9 // bytes_per_second)

"""What a request takes of every chunk with every group, as arrays: equal to `Groups.service`.

Rows are intervals of places (indices into the legal cuts), columns sets of devices by kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...formulations.cooperation.tables import Groups
from ...formulations.terms import Term as T
from ..pipelines.arrays import LONGEST, NEVER, Ints
from ..protocol import NEVER as NO_DEADLINE
from ..protocol import Deadline, TimeIsUpError
from .deals import Asked, Deals
from .kinds import Kinds


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupArrays:
    """Chunks with groups.

    `groups`, `kinds`: the problem, and its kinds of devices. `compute_us`, `message_us`, `leader`: by
    [row][set]: the slowest device, all messages, the kind of the leader; compute_us is NEVER where the group
    cannot serve the chunk.
    """

    groups: Groups
    kinds: Kinds
    number: Ints  # by [start place][stop place] the row of the tables below; -1 where there is none
    compute_us: Ints
    message_us: Ints
    leader: Ints
    amounts: Mapping[str, Ints]
    """By name of a term what a chunk with its group adds to it, by [row][set]; where it was asked for."""

    @property
    def last(self) -> int:
        """The last place."""
        return len(self.number) - 1

    @cached_property
    def sends_us(self) -> Ints:
        """What a result takes from a leader of a kind to one of another, by [kind][kind][place]."""
        cuts, kinds = self.groups.chain.cuts, range(len(self.kinds.firsts))
        found = np.full((len(kinds), len(kinds), len(cuts)), NEVER, np.int64)
        for one in kinds:
            for other in kinds:
                pair = self.kinds.pair(one, other)
                times = [self.groups.between_us(*pair, cut) for cut in cuts] if pair else []
                found[one, other, : len(times)] = [_bounded(time) for time in times]
        return found

    @cached_property
    def ends_us(self) -> tuple[Ints, Ints]:
        """What the input and the result take between the host and a leader, by kind."""
        rows = (self.groups.enter_us, self.groups.leave_us)
        enter, leave = ([_bounded(row[device]) for device in self.kinds.firsts] for row in rows)
        return np.asarray(enter, np.int64), np.asarray(leave, np.int64)


def _bounded(time: int | None) -> int:
    return NEVER if time is None else min(time, LONGEST)


_DETAILED = {T.ENERGY, T.REDUNDANCY, T.PEAK_MEMORY}
"""Terms that depend on the rows of each device."""

_BLOCK = 1 << 15
"""Entries that are computed at once: their arrays stay in the cache."""


class _Entries(NamedTuple):
    """Chunks with groups that can serve them, by entry.

    `row`, `group`, `leader`: row and column of the tables, and the kind of the leader; `rows`, `compute_us`:
    by [entry][device] rows of each device, and how long it computes them.
    """

    row: Ints
    group: Ints
    leader: Ints
    message_us: Ints
    rows: Ints
    compute_us: Ints


def build_arrays(
    groups: Groups, kinds: Kinds, terms: set[str], deadline: Deadline = NO_DEADLINE
) -> GroupArrays:
    """Return the tables of a problem.

    Raises TimeIsUpError: the deadline has passed before they were finished.
    """
    cuts, capacities = groups.chain.cuts, groups.chain.unit_memory
    spans, place = list(groups.spans), {cut: at for at, cut in enumerate(cuts)}
    number = np.full((len(cuts), len(cuts)), -1, np.int64)
    for row, (start, stop) in enumerate(spans):
        number[place[start], place[stop]] = row
    shape = len(spans), kinds.states.number
    tables: list[Ints] = [np.full(shape, fill, np.int64) for fill in (NEVER, 0, 0)]
    amounts: dict[str, Ints] = {name: np.zeros(shape, np.int64) for name in sorted(terms & _DETAILED)}
    limited = any(capacity is not None for capacity in capacities)
    for entries in chain((_alone(groups, kinds, spans),), _together(groups, kinds, spans, deadline)):
        at = entries.row, entries.group
        if (limited or terms & _DETAILED) and not groups.data.steps:
            details = _Details(groups, spans, entries)
            fits = details.fits()
            for name, table in amounts.items():
                table[at] = details.amount(name)
        else:
            fits = np.ones(len(entries.row), bool)
        tables[0][at] = np.where(fits, entries.compute_us.max(axis=1), NEVER)
        tables[1][at], tables[2][at] = entries.message_us, entries.leader
    amounts[T.DEVICES] = np.broadcast_to(kinds.sizes, shape)
    compute_us, message_us, leader = tables
    several = kinds.sizes > 1
    if groups.data.steps:
        compute_us = _in_steps(groups, kinds, number, spans, compute_us)
        leader[:, several] = (kinds.counts[several] > 0).argmax(axis=1).astype(np.int64)
        if limited or terms & _DETAILED:
            _detail(groups, kinds, spans, (compute_us, amounts), deadline)
    return GroupArrays(
        groups=groups,
        kinds=kinds,
        number=number,
        compute_us=compute_us,
        message_us=message_us,
        leader=leader,
        amounts=amounts,
    )


def _alone(groups: Groups, kinds: Kinds, spans: list[tuple[int, int]]) -> _Entries:
    """Return every chunk with every single device."""
    found = [
        (row, kind, device, groups.segments.of(*span).rows, min(groups.chain.busy_us(*span, device), LONGEST))
        for row, span in enumerate(spans)
        for kind, device in enumerate(kinds.firsts)
        if groups.chain.runs(*span, device)
    ]
    row, kind, device, rows, compute = np.asarray(found, np.int64).reshape(-1, 5).T
    by_device = np.zeros((2, len(found), len(kinds.of)), np.int64)
    by_device[:, np.arange(len(found)), device] = rows, compute
    group = np.asarray(kinds.states.strides, np.int64)[kind]
    return _Entries(row, group, kind, np.zeros_like(row), *by_device)


def _together(
    groups: Groups, kinds: Kinds, spans: list[tuple[int, int]], deadline: Deadline
) -> Iterator[_Entries]:
    """Yield every chunk with every group of two or more, some at a time."""
    sizes = kinds.sizes
    splitting = [row for row, span in enumerate(spans) if groups.segments.of(*span).rows > 1]
    deals = Deals(
        groups, kinds, tuple((*spans[row], two) for row in splitting for two in (True, False)), deadline
    )
    row, map_, group = ([np.zeros(0, np.int64)] for _ in range(3))
    for place, number in enumerate(splitting):
        most = min(groups.most_group, groups.segments.of(*spans[number]).rows)
        able = np.asarray([groups.chain.runs(*spans[number], device) for device in kinds.firsts])
        runs = ~(kinds.counts[:, ~able] > 0).any(axis=1)
        own = np.flatnonzero((sizes > 1) & (sizes <= most) & runs)
        row.append(np.full(len(own), number))
        map_.append(2 * place + (sizes[own] > 2))
        group.append(own)
    rows, maps, sets = map(np.concatenate, (row, map_, group))
    for begin in range(0, len(rows), _BLOCK):
        if deadline.passed:
            raise TimeIsUpError
        block = slice(begin, begin + _BLOCK)
        some, asked, at = _led(deals, rows[block], Asked(maps[block], sets[block], sets[:0]))
        deal = deals.deal(asked, at)
        by_device = deals.by_device(asked, deal)
        compute = deals.times_us[np.asarray(kinds.of), deals.row_at[asked.map][:, None] + by_device]
        compute = np.where(by_device > 0, compute, 0)
        yield _Entries(some, asked.group, deal.leader, deals.message_us(asked, deal), by_device, compute)


def _led(deals: Deals, rows: Ints, asked: Asked) -> tuple[Ints, Asked, Ints]:
    """Return the entries that can be served, each with its best leader and deadline (`best_split`)."""
    kinds = range(len(deals.kinds.firsts))
    best = np.full(len(rows), NEVER, np.int64)
    at, leader = np.zeros(len(rows), np.int64), np.full(len(rows), -1)
    for kind in (-1,) if deals.groups.links_alike else kinds:
        own = np.arange(len(rows)) if kind < 0 else np.flatnonzero(deals.kinds.counts[asked.group, kind])
        place, time = deals.best(Asked(asked.map[own], asked.group[own], np.full(len(own), kind)))
        better = time < best[own]
        chosen = own[better]
        best[chosen], at[chosen], leader[chosen] = time[better], place[better], kind
    there = np.flatnonzero(best < NEVER)
    return rows[there], Asked(asked.map[there], asked.group[there], leader[there]), at[there]


def _in_steps(
    groups: Groups, kinds: Kinds, number: Ints, spans: list[tuple[int, int]], at_once: Ints
) -> Ints:
    """Return the least times of groups that may take steps (`Groups._fastest_ways`), from those at once."""
    strides, several = kinds.states.strides, kinds.sizes > 1
    alone = np.full_like(at_once, NEVER)
    able = np.ones_like(at_once, bool)
    for kind, stride in enumerate(strides):
        own = kinds.counts[:, kind] > 0
        alone[:, own] = np.minimum(alone[:, own], at_once[:, [stride]])
        able[:, own] &= at_once[:, [stride]] < NEVER
    step = np.minimum(at_once, alone)
    found = at_once.copy()
    for start in range(len(number) - 1):
        free = {start: np.zeros(len(kinds.sizes), np.int64)}
        tiled: dict[int, Ints] = {}
        for stop in range(start + 1, len(number)):
            free[stop], tiled[stop] = (np.full(len(kinds.sizes), NEVER, np.int64) for _ in range(2))
            for begin in range(start, stop):
                row = number[begin, stop]
                free[stop] = np.minimum(free[stop], free[begin] + step[row])
                tiled[stop] = np.minimum(tiled[stop], free[begin] + at_once[row])
                if begin > start:
                    tiled[stop] = np.minimum(tiled[stop], tiled[begin] + alone[row])
            row = number[start, stop]
            best = np.where(able[row] & (kinds.sizes <= groups.most_group), tiled[stop], NEVER)
            found[row] = np.where(several, np.minimum(best, NEVER), at_once[row])
    return found


def _detail(
    groups: Groups,
    kinds: Kinds,
    spans: list[tuple[int, int]],
    tables: tuple[Ints, Mapping[str, Ints]],
    deadline: Deadline,
) -> None:
    """Work out what groups that may take steps add to each term, and leave out those without memory."""
    fields = {T.ENERGY: "energy_nj", T.REDUNDANCY: "extra_flops"}
    compute_us, amounts = tables
    there = (compute_us < NEVER) & kinds.valid(groups)
    for row, group in np.argwhere(there).tolist():
        if deadline.passed:
            raise TimeIsUpError
        devices = kinds.devices(group)
        service = groups.service((*spans[row], devices))
        assert service is not None
        for name, table in amounts.items():
            if name == T.PEAK_MEMORY:
                table[row, group] = min(sum(service.memory_bytes), LONGEST)
            elif name in fields:
                table[row, group] = getattr(service, fields[T(name)])
        capacities = (groups.chain.unit_memory[device] for device in devices)
        if any(c is not None and size > c for c, size in zip(capacities, service.memory_bytes, strict=True)):
            compute_us[row, group] = NEVER


class _Details:
    """What depends on where the tiles of groups lie, as in `Groups.service`."""

    def __init__(self, groups: Groups, spans: list[tuple[int, int]], entries: _Entries) -> None:
        self._groups, self._entries = groups, entries
        segments = [groups.segments.of(*span) for span in spans]
        at = np.asarray([0, *accumulate(segment.rows + 1 for segment in segments)], np.int64)
        starts, ends = (
            np.concatenate([np.sum([getattr(work, side) for work in s.work], axis=0) for s in segments])
            for side in ("starts", "ends")
        )
        base = at[entries.row][:, None]
        stop = np.cumsum(entries.rows, axis=1)
        self._used = entries.rows > 0
        self._done = np.where(self._used, ends[base + stop] - starts[base + stop - entries.rows], 0)
        self._whole = (ends[at[1:] - 1] - starts[at[:-1]])[entries.row][:, None]
        self._of = np.asarray([segment.rows for segment in segments])[entries.row][:, None]
        self._spans = spans

    def amount(self, name: str) -> Ints:
        """Return what each entry adds to a term."""
        if name == T.REDUNDANCY:
            each = np.maximum(0, self._done - self._whole * self._entries.rows // self._of)
        elif name == T.PEAK_MEMORY:
            each = np.minimum(self._memory, LONGEST // self._groups.device_count).astype(np.int64)
        else:
            power = np.asarray(self._groups.power_mw) - np.asarray(self._groups.idle_mw)
            each = self._entries.compute_us * power
        found: Ints = each.sum(axis=1)
        return found

    @cached_property
    def _memory(self) -> npt.NDArray[Any]:
        """Bytes of each device; 0 where it is not in the group."""
        groups, chain, data = self._groups, self._groups.chain, self._groups.data.devices
        sent = groups.boundary_bytes
        live, always = [], []
        for start, stop in self._spans:
            weights = chain.weights.between(start, stop)
            slots = data.in_slots * sent[start] + data.out_slots * sent[stop]
            live.append(chain.memory_bytes(start, stop) - weights)
            always.append(weights + data.resident_bytes + slots)
        whole, row = int(self._whole.max(initial=1)), self._entries.row
        exact = max(live) * whole * 4 < 1 << 62  # otherwise numbers of any length: slower
        live_bytes = np.asarray(live, np.int64 if exact else object)[row][:, None]
        return np.where(
            self._used, np.asarray(always)[row][:, None] - (-live_bytes * self._done // self._whole), 0
        )

    def fits(self) -> npt.NDArray[np.bool_]:
        """Return whether each device of each entry has the memory for it."""
        found = np.ones(len(self._entries.row), bool)
        for device, capacity in enumerate(self._groups.chain.unit_memory):
            if capacity is not None:
                found &= self._memory[:, device] <= capacity
        return found

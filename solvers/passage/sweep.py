"""Labels: plans that have begun, from boundary to boundary, pruned by what they can still reach.

A label is a plan of the pieces before a boundary. At each boundary all labels grow by one piece on each unit.
Those go that

- cannot become one of the plans wanted any more, by their bounds (`outlook`), or cannot keep a rule,
- have enough others before them that are no worse in anything that counts (`dominance`),
- are too many: the least promising ones, and the best bound among them is kept. It bounds all that was lost.

With no limit to their number what is left in the end are the best plans, in canonical order.

The canonical order compares (stop, unit) of the first chunks of two plans that differ. Of two labels at one
boundary it is known already: the chunk that is not finished counts as if it went on to the end. `order` holds
that, as a rank of the finished chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...formulations.terms import Quantity, Term
from ..chunking.facts import Facts
from ..chunking.propagation import ArrayInterval, Placed, keeping
from ..chunking.ranking import Flags, Ints, Pool, Ranking, less, smallest
from .dominance import Dominance, undominated
from .outlook import Bounds, Outlook, State
from .table import Floats, Table, Units

Prune = Callable[[int, "Labels", Bounds], Flags | None]
"""Which labels at a boundary may still keep all rules; None when all may."""


_CELLS = 12
"""Ranges of the shares of loads."""

_SLACK = 2
"""How many times more labels than are kept are compared with each other before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Labels at one boundary, a column each.

    Attributes
    ----------
    unit
        Which unit runs up to the boundary.
    state
        Loads and what else is placed; the copy out of the last chunk is not in it.
    open
        The most bytes of tensors of a piece of the last chunk.
    held
        By [shared weights][label]: bits of the units that hold them.
    order
        Rank of the finished chunks in canonical order.
    parent
        The label before, by its column.
    path
        By [piece][label]: units so far; no rows where no rule asks.
    """

    unit: Ints
    state: State
    open: Ints
    held: Ints
    order: Ints
    parent: Ints
    path: Units

    def __len__(self) -> int:
        return len(self.unit)

    def __getitem__(self, columns: Flags | Ints | NDArray[np.intp]) -> Labels:
        state = self.state
        return Labels(
            unit=self.unit[columns],
            state=State(
                loads=state.loads[:, columns],
                hops=state.hops[columns],
                mask=state.mask[columns],
                bytes=state.bytes[:, columns],
            ),
            open=self.open[columns],
            held=self.held[:, columns],
            order=self.order[columns],
            parent=self.parent[columns],
            path=self.path[:, columns],
        )


class Growth:
    """How labels grow by one piece.

    Parameters
    ----------
    table
        The arrays.
    memory, paths
        Whether bytes matter, and whether rules ask for units of pieces.
    """

    def __init__(self, table: Table, *, memory: bool, paths: bool) -> None:
        self.table, self.memory, self.paths = table, memory, paths
        self._units = np.arange(table.units, dtype=np.int64)
        shared = table.weights.shared if memory else ()
        self._shared = [(size, frozenset(places)) for size, places in shared]
        self._own = np.array(table.weights.own, dtype=np.int64)

    def start(self) -> Labels:
        """Return the labels of the first piece."""
        table = self.table
        unit = self._units[table.able[0]]
        count = len(unit)
        columns = np.arange(count)
        loads = np.zeros((table.units, count), dtype=np.int64)
        loads[unit, columns] = (table.enter[0] + table.time[0])[unit]
        size = np.zeros((table.units, count), dtype=np.int64)
        bits = table.bits[unit]
        held = np.zeros((len(self._shared), count), dtype=np.int64)
        if self.memory:
            size[unit, columns] = self._own[0] + table.working[0]
            self._hold(0, unit, columns, size, held)
        return Labels(
            unit=unit,
            state=State(loads=loads, hops=np.zeros(count, dtype=np.int64), mask=bits.copy(), bytes=size),
            open=np.full(count, table.working[0] if self.memory else 0),
            held=held,
            order=np.zeros(count, dtype=np.int64),
            parent=np.zeros(count, dtype=np.int64),
            path=unit[None].astype(np.int8) if self.paths else np.empty((0, count), dtype=np.int8),
        )

    def grow(self, at: int, labels: Labels) -> Labels:
        """Return all labels with the piece that follows a boundary, ordered by its unit."""
        table, state = self.table, labels.state
        able = self._units[table.able[at]]
        count = len(labels)
        parent = np.tile(np.arange(count), len(able))
        unit = np.repeat(able, count)
        last = labels.unit[parent]
        moved = unit != last
        keep = moved.copy() if table.must[at] else np.ones(len(unit), dtype=np.bool_)
        if table.conflicts.any():
            keep &= (state.mask[parent] & table.conflicts[unit]) == 0
        if not keep.all():
            parent, unit, last, moved = parent[keep], unit[keep], last[keep], moved[keep]
        columns = np.arange(len(unit))
        loads = state.loads[:, parent]
        loads[unit, columns] += table.time[at][unit] + np.where(moved, table.enter[at][unit], 0)
        loads[last, columns] += np.where(moved, table.leave[at][last], 0)
        size, held, opened = state.bytes[:, parent], labels.held[:, parent], labels.open
        if self.memory:
            opened = np.where(moved, 0, labels.open[parent])
            most = np.maximum(opened, table.working[at])
            size[unit, columns] += self._own[at] + most - opened
            opened = most
            self._hold(at, unit, columns, size, held)
        else:
            opened = labels.open[parent]
        path = labels.path[:, parent]
        if self.paths:
            path = np.concatenate([path, unit[None].astype(np.int8)])
        return Labels(
            unit=unit,
            state=State(
                loads=loads,
                hops=state.hops[parent] + moved,
                mask=state.mask[parent] | table.bits[unit],
                bytes=size,
            ),
            open=opened,
            held=held,
            order=self._ranked(labels.order[parent] * (table.units + 1) + np.where(moved, last, table.units)),
            parent=parent,
            path=path,
        )

    def finish(self, labels: Labels) -> State:
        """Return whole plans with the copies out of their last chunks."""
        loads = labels.state.loads.copy()
        loads[labels.unit, np.arange(len(labels))] += self.table.leave[-1][labels.unit]
        state = labels.state
        return State(loads=loads, hops=state.hops, mask=state.mask, bytes=state.bytes)

    def _hold(self, at: int, unit: Ints, columns: Ints, size: Ints, held: Ints) -> None:
        """Count shared weights that a piece reads and its unit does not hold yet."""
        for row, (weight, places) in enumerate(self._shared):
            if at in places:
                bit = self.table.bits[unit]
                size[unit, columns] += np.where(held[row] & bit, 0, weight)
                held[row] |= bit

    @staticmethod
    def _ranked(codes: Ints) -> Ints:
        """Return dense ranks: equal ones for equal codes."""
        order = np.argsort(codes, kind="stable")
        steps = np.ones(len(codes), dtype=np.int64)
        sorted_codes = codes[order]
        steps[1:] = sorted_codes[1:] != sorted_codes[:-1]
        ranks = np.empty_like(codes)
        ranks[order] = np.cumsum(steps) - 1
        return ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all sweeps of one solve share.

    Attributes
    ----------
    table, growth, outlook, ranking, pool
        The arrays, how labels grow, what they can reach, what orders plans, and the best plans.
    dominance
        What makes labels no worse than others.
    prune
        The rules.
    pause
        Called at each boundary; raises `StopSearch` at the deadline.
    floor
        What no plan has less of, of the first term.
    better
        Whether plans have to be better than the worst of a full pool in their terms, not in canonical order.
    spread
        Whether labels are kept whose loads are balanced differently; otherwise the most promising ones.
    """

    table: Table
    growth: Growth
    outlook: Outlook
    ranking: Ranking
    pool: Pool
    dominance: Dominance
    prune: Prune | None
    pause: Callable[[], None]
    floor: int = 0
    better: bool = False
    spread: bool = False


class Sweep:
    """One sweep over all boundaries.

    Parameters
    ----------
    setting
        What is shared.
    width
        Most labels per boundary.

    Attributes
    ----------
    lost
        What no plan is before that was lost on the way, by its key; None: no plan was lost.
    """

    def __init__(self, setting: Setting, width: int) -> None:
        self.setting, self.width = setting, width
        self.lost: tuple[int, ...] | None = None
        self._units: list[Units] = []
        self._parents: list[NDArray[np.int32]] = []

    def run(self, until: int | None = None) -> Labels | None:
        """Offer the best plans to the pool, or return the labels at a boundary, if there are any."""
        growth, count = self.setting.growth, self.setting.table.count
        labels = growth.start()
        for at in range(1, count + 1):
            self.setting.pause()
            labels = self._pruned(at, labels)
            if not len(labels):
                return None
            self._units.append(labels.unit.astype(np.int8))
            self._parents.append(labels.parent.astype(np.int32))
            if at == until:
                return labels
            if at < count:
                labels = growth.grow(at, labels)
        self._offer(labels)
        return None

    def _pruned(self, at: int, labels: Labels) -> Labels:
        setting, table = self.setting, self.setting.table
        outlook = setting.outlook
        keep = outlook.reachable(at, labels.unit)
        keep &= (labels.state.loads <= table.most_load[:, None]).all(axis=0)
        keep &= (labels.state.bytes <= table.most_bytes[:, None]).all(axis=0)
        if not keep.all():
            labels = labels[keep]
        if not len(labels):
            return labels
        priced = outlook.priced(at, labels.unit, labels.state.loads)
        period = np.maximum(np.ceil(priced).astype(np.int64), table.pooled(labels.state.loads).max(axis=0))
        if setting.ranking.terms[0] == Term.PERIOD:
            period = np.maximum(period, setting.floor)
        bounds = outlook.bounds(at, labels.unit, labels.state, period)
        keys = setting.ranking.keys(bounds)
        wanted = self._wanted(keys)
        for test in (setting.ranking.passing(bounds), setting.prune and setting.prune(at, labels, bounds)):
            if test is not None:
                wanted = wanted & test
        labels, keys, priced = self._narrowed(
            labels, keys, priced, np.flatnonzero(wanted), _SLACK * self.width
        )
        kept = undominated(setting.dominance, at, labels, table.pooled)
        kept = np.arange(len(labels)) if kept is None else kept
        return self._narrowed(labels, keys, priced, kept, self.width)[0]

    def _wanted(self, keys: Ints) -> Flags:
        """Return which keys can be those of plans that are wanted."""
        worst = self.setting.pool.worst
        if worst is None:
            return np.ones(keys.shape[1], dtype=np.bool_)
        last = worst[: len(keys)]
        before = less(keys, last)
        return before if self.setting.better else before | (keys == last[:, None]).all(axis=0)

    def _narrowed(
        self, labels: Labels, keys: Ints, priced: Floats, columns: NDArray[np.intp], width: int
    ) -> tuple[Labels, Ints, Floats]:
        """Return the most promising ones of the labels in some columns, and note what is lost."""
        if len(columns) > width:
            keys_left, priced_left = keys[:, columns], priced[columns]
            by_period = self.setting.ranking.terms[0] == Term.PERIOD
            if self.setting.spread:
                order = _spread(self.setting.table.pooled(labels.state.loads[:, columns]), priced_left)
            elif by_period:
                order = np.argpartition(priced_left, width)
            else:
                order = np.lexsort((priced_left, keys_left[0]))
            lost = keys_left[:, order[width:]]
            least = tuple(lost[:, smallest(lost, 1)[0]].tolist())
            self.lost = least if self.lost is None else min(self.lost, least)
            columns = columns[np.sort(order[:width])]
        return labels[columns], keys[:, columns], priced[columns]

    def _offer(self, labels: Labels) -> None:
        setting = self.setting
        bounds = setting.outlook.exact(setting.growth.finish(labels))
        keys = setting.ranking.keys(bounds)
        keep = self._wanted(keys)
        for test in (
            setting.ranking.passing(bounds),
            setting.prune and setting.prune(setting.table.count, labels, bounds),
        ):
            if test is not None:
                keep &= test
        keep &= (setting.growth.finish(labels).loads <= setting.table.most_load[:, None]).all(axis=0)
        columns = np.flatnonzero(keep)
        if len(columns) > setting.pool.size:
            found = keys[:, columns]
            last = found[:, smallest(found, setting.pool.size)[-1]]
            columns = columns[less(found, last) | (found == last[:, None]).all(axis=0)]
        if len(columns):
            setting.pool.add(
                np.concatenate([keys[:, columns], path_rows(self.paths(columns), setting.table.units)])
            )

    def paths(self, columns: NDArray[np.intp]) -> Ints:
        """Return the units of the pieces of some of the latest labels, by [piece][label]."""
        found = np.empty((len(self._units), len(columns)), dtype=np.int64)
        at: NDArray[np.intp] | NDArray[np.int32] = columns
        for piece in range(len(self._units) - 1, -1, -1):
            found[piece] = self._units[piece][at]
            at = self._parents[piece][at]
        return found


def _spread(loads: Ints, priced: Floats) -> NDArray[np.intp]:
    """Return an order with the most promising label of each cell first, then the second of each, and so on.

    Cells are ranges of the shares that the resources have of all loads.
    """
    cell = np.zeros(len(priced), dtype=np.int64)
    for share in loads / np.maximum(loads.sum(axis=0), 1):
        low, high = share.min(), share.max()
        step = (share - low) * (_CELLS / max(high - low, 1e-12))
        cell = cell * _CELLS + np.minimum(step.astype(np.int64), _CELLS - 1)
    order = np.lexsort((priced, cell))
    starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return order[np.lexsort((priced[order], place))]


def path_rows(paths: Ints, units: int) -> Ints:
    """Return rows that order plans canonically: by piece, where its chunk stops and its unit."""
    count = len(paths)
    stops = np.empty_like(paths)
    stops[-1] = count
    for piece in range(count - 2, -1, -1):
        stops[piece] = np.where(paths[piece] == paths[piece + 1], stops[piece + 1], piece + 1)
    rows: Ints = stops * units + paths
    return rows


class RulePruner:
    """Which labels may still keep all rules."""

    def __init__(self, table: Table, facts: Facts) -> None:
        self.table, self.facts = table, facts

    def __call__(self, at: int, labels: Labels, bounds: Bounds) -> Flags | None:
        """Return the verdicts, one per label."""
        return keeping(self.facts, _Labelled(self, at, labels, bounds), len(labels))

    @cached_property
    def piece(self) -> Ints:
        """The piece of each layer."""
        cuts = self.table.cuts
        return np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))

    @cached_property
    def boundary(self) -> dict[int, int]:
        """The boundary at each layer where there is one."""
        return {cut: place for place, cut in enumerate(self.table.cuts.tolist())}


class _Labelled(Placed):
    """Intervals of the variables on labels."""

    def __init__(self, rules: RulePruner, at: int, labels: Labels, bounds: Bounds) -> None:
        self._ended = bounds.lonely is not None
        super().__init__(rules.facts, bounds, np.full(len(labels), self._ended), len(labels))
        self._rules, self._at, self._labels = rules, at, labels

    def _cut(self, layer: int) -> ArrayInterval:
        place, path = self._rules.boundary.get(layer), self._labels.path
        if place is None:
            return self._constant(0), self._constant(0)
        if place >= self._at:
            return self._constant(0), self._constant(1)
        there = (path[place - 1] != path[place]).astype(np.int64)
        return there, there

    def _on(self, layer: int, unit: int) -> ArrayInterval:
        piece = int(self._rules.piece[layer])
        if piece >= self._at:
            return self._constant(0), self._constant(int(self._rules.table.able[piece, unit]))
        there = (self._labels.path[piece] == unit).astype(np.int64)
        return there, there

    def _of_unit(self, name: str, unit: int, high: int) -> ArrayInterval:
        state, path = self._labels.state, self._labels.path
        found: Ints
        match name:
            case Quantity.USES:
                found = (state.mask >> unit) & 1
            case Quantity.BUSY:
                leave = self._rules.table.leave[-1][unit] if self._ended else 0
                found = state.loads[unit] + np.where(self._labels.unit == unit, leave, 0)
            case Quantity.MEMORY:
                found = state.bytes[unit]
            case _:
                own = path == unit
                found = own[0] + (own[1:] & ~own[:-1]).sum(axis=0)
        return found, found if self._ended else self._constant(high)

    def _constant(self, value: int) -> Ints:
        return np.full(self._count, value, dtype=np.int64)

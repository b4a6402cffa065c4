"""The tables of a problem of pipelines as arrays over kinds of devices and places of cuts.

Devices of one kind are interchangeable (`Cluster.kinds`). Where there are too many sets of devices for the
program over them, kinds are merged: each of a group is taken for what is best of all of them. That is a
relaxation, so its optimum bounds that of the problem.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from ...formulations.pipelines.tables import Cluster
from ..weights import bytes_between

Ints = npt.NDArray[np.integer]

NEVER = 1 << 60
"""Stands for what is impossible; the sum of two is still a number of 64 bits."""

LONGEST = 1 << 54
"""What takes longer (500 years) is taken for this, so that sums stay below `NEVER`; the judge sees all."""


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: the computed property below is kept
class KindArrays:
    """What chunks and messages take by kind of device; places are indices into the legal cuts."""

    kind_of: tuple[int, ...]  # kind of each device; -1 for devices that are left out
    cuts: tuple[int, ...]  # boundary of each place 0..m
    compute_us: Ints
    """By [kind][start place][stop place]; NEVER where a device of the kind cannot run the chunk."""
    link_us: Ints  # by [kind][kind][place]: the message from a device of one kind to one of another
    enter_us: Ints
    leave_us: Ints
    power_mw: Ints  # by kind; 0 where it is not known
    memory_bytes: Ints  # of a chunk, by [start place][stop place]
    sent_bytes: Ints  # of a message over a link, by place
    excluded: tuple[frozenset[int], ...]
    """For each kind the kinds that cannot be used beside it. Devices that exclude others are kinds of their
    own."""
    overlap: bool  # whether devices send while they compute

    @property
    def last(self) -> int:
        """The place of the end of the network."""
        return len(self.cuts) - 1

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Number of devices of each kind."""
        return tuple(self.kind_of.count(kind) for kind in range(len(self.excluded)))

    @property
    def state_count(self) -> int:
        """Number of sets of devices, up to which of a kind they are."""
        return prod(count + 1 for count in self.counts)

    @property
    def cells(self) -> int:
        """Number of entries of a table by set, kind and place."""
        return self.state_count * len(self.counts) * len(self.cuts)

    @property
    def work(self) -> int:
        """About how many steps the program over sets takes."""
        return self.cells * len(self.cuts) // 2

    def capped(self, most_us: int) -> KindArrays:
        """Return the arrays without chunks and messages that take longer than a largest period."""
        return replace(
            self,
            compute_us=_cap(self.compute_us, most_us),
            link_us=_cap(self.link_us, most_us),
            enter_us=_cap(self.enter_us, most_us),
            leave_us=_cap(self.leave_us, most_us),
        )

    def only(self, devices: Collection[int]) -> KindArrays:
        """Return the arrays without all but some devices."""
        return replace(self, kind_of=tuple(k if d in devices else -1 for d, k in enumerate(self.kind_of)))


def _cap(times: Ints, most_us: int) -> Ints:
    return np.where(times > most_us, NEVER, times)


def build_arrays(cluster: Cluster, kinds: tuple[int, ...] | None = None) -> KindArrays:
    """Return the tables of a problem by kind of device; the kinds are those of the cluster, or narrower."""
    kinds, cuts = cluster.kinds if kinds is None else kinds, np.asarray(cluster.chain.cuts)
    firsts = [kinds.index(kind) for kind in range(max(kinds) + 1)]
    memory = _memory_bytes(cluster, cuts)
    power = cluster.data.power_mw or (0,) * cluster.device_count
    sizes = np.asarray(cluster.boundary_bytes if cluster.data.links else (0,) * len(cluster.boundary_bytes))
    return KindArrays(
        kind_of=kinds,
        cuts=cluster.chain.cuts,
        compute_us=np.stack([_compute_us(cluster, device, memory, cuts) for device in firsts]),
        link_us=np.stack(
            [[_link_us(cluster, kinds, u, v)[cuts] for v in range(len(firsts))] for u in firsts]
        ),
        enter_us=_times([cluster.enter_us[device] for device in firsts]),
        leave_us=_times([cluster.leave_us[device] for device in firsts]),
        power_mw=np.asarray([power[device] for device in firsts]),
        memory_bytes=memory,
        sent_bytes=sizes[cuts],
        excluded=tuple(frozenset(kinds[other] for other in cluster.chain.exclusive[d]) for d in firsts),
        overlap=cluster.data.overlap,
    )


def _times(times: Sequence[int | None]) -> Ints:
    return np.asarray([NEVER if time is None else min(time, LONGEST) for time in times], np.int64)


def _link_us(cluster: Cluster, kinds: tuple[int, ...], device: int, kind: int) -> Ints:
    """Return what a device takes to send to another one of a kind, by boundary."""
    others = (d for d, own in enumerate(kinds) if own == kind and d != device)
    other = next(others, None)
    if other is None:
        return np.full(len(cluster.boundary_bytes), NEVER)
    return _times(cluster.link_us[device][other])


def _compute_us(cluster: Cluster, device: int, memory: Ints, cuts: Ints) -> Ints:
    chain, inner = cluster.chain, cluster.inner_us[device]
    if inner is not None:
        times = np.asarray(inner, np.int64)[np.ix_(cuts, cuts)]
        possible = times >= 0
    else:
        prefix, blocked = (
            np.asarray(rows[device], np.int64)[cuts] for rows in (chain.prefix_us, chain.blocked)
        )
        copy_in, copy_out = (
            np.asarray([rows[cut][device] for cut in cuts], np.int64)
            for rows in (chain.transfer_in_us, chain.transfer_out_us)
        )
        times = prefix[None, :] - prefix[:, None] + copy_in[:, None] + copy_out[None, :]
        possible = blocked[None, :] == blocked[:, None]
    capacity = chain.unit_memory[device]
    if capacity is not None:
        possible &= memory <= capacity
    return np.where(np.triu(possible, 1), times, NEVER)


def _memory_bytes(cluster: Cluster, cuts: npt.NDArray[np.int64]) -> Ints:
    """Return the bytes of each chunk by [start][stop] place (`Cluster.memory_bytes`), start before stop."""
    data, sizes = cluster.data, np.asarray(cluster.boundary_bytes, np.int64)[cuts]
    waiting = data.in_slots * sizes[:, None] + data.out_slots * sizes[None, :]
    return bytes_between(cluster.chain, cuts) + waiting + data.resident_bytes


def merged(arrays: KindArrays, most_states: int, most_cells: int, most_work: int) -> KindArrays:
    """Return arrays with few enough sets of devices: a relaxation, unless these are few enough.

    The kinds that take most alike for the whole network are merged first.
    """
    usual = np.where(arrays.compute_us >= NEVER, 0, arrays.compute_us).sum(axis=(1, 2))
    groups = [[int(kind)] for kind in np.argsort(usual, kind="stable")]
    found = arrays
    while len(groups) > 1 and (
        found.state_count > most_states or found.cells > most_cells or found.work > most_work
    ):
        speeds = [float(np.mean(usual[group])) + 1 for group in groups]
        place = min(range(len(groups) - 1), key=lambda at: _apart(*list(pairwise(speeds))[at]))
        groups[place : place + 2] = [groups[place] + groups[place + 1]]
        found = _grouped(arrays, groups)
    return found


def _apart(one: float, other: float) -> float:
    return max(one, other) / min(one, other)


def _grouped(arrays: KindArrays, groups: Sequence[Sequence[int]]) -> KindArrays:
    """Return the arrays of groups of kinds, each as good as the best of its kinds in every respect."""
    group_of = {kind: number for number, group in enumerate(groups) for kind in group}
    best = [np.asarray(group) for group in groups]
    return KindArrays(
        kind_of=tuple(group_of[kind] for kind in arrays.kind_of),
        cuts=arrays.cuts,
        compute_us=np.stack([arrays.compute_us[group].min(axis=0) for group in best]),
        link_us=np.stack(
            [[arrays.link_us[np.ix_(one, other)].min(axis=(0, 1)) for other in best] for one in best]
        ),
        enter_us=np.stack([arrays.enter_us[group].min() for group in best]),
        leave_us=np.stack([arrays.leave_us[group].min() for group in best]),
        power_mw=np.stack([arrays.power_mw[group].min() for group in best]),
        memory_bytes=arrays.memory_bytes,
        sent_bytes=arrays.sent_bytes,
        excluded=(frozenset(),) * len(groups),
        overlap=arrays.overlap,
    )

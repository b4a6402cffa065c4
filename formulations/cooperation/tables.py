"""The integer tables of groups of devices: what a chunk takes of each group that may serve it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from operator import add
from typing import Protocol

from ..chain import Chain, build_chain
from ..cluster import Link
from ..groups import Cooperation
from ..problem import Problem
from .segments import Amount, Segment, Segments
from .splitting import Group, Rows, best_split

Devices = tuple[int, ...]
"""The devices of a group by index, ascending."""

Part = tuple[int, int, Devices]
"""A chunk: first layer, one past the last, and the group that serves it."""

PER_US = 10**6
"""Times of single rows are counted in picoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What a message to a device and its answer take together.

    Attributes
    ----------
    latency_ns
        Of both when they are empty.
    bytes_per_second
        The slower of both rates; 0: messages take no time.
    """

    latency_ns: int
    bytes_per_second: int

    def time_ns(self, size: int) -> int:
        """Return the time of so many bytes there and back together."""
        rate = self.bytes_per_second
        return self.latency_ns - (-size * 10**9 // rate) if rate else 0


class SegmentTable(Protocol):
    """What tiles of each chunk compute and read."""

    def of(self, start: int, stop: int) -> Segment:
        """Return the chunk [start, stop)."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """A chunk and the group that serves it: what a request takes of them.

    Attributes
    ----------
    part
        The chunk.
    leader
        Index of the device that takes the inputs, sends them to the others and gathers results.
    rows
        Rows of the result that each device of the group computes, from the first row on.
    compute_us
        By device of the group.
    message_us
        All messages between the leader and the others.
    extra_permille
        By device of the group, what of its operations others do, too: halos.
    extra_flops
        What all devices together compute twice.
    weight_bytes
        What each device of the group holds of weights: those of the chunk.
    memory_bytes
        By device of the group, weights included.
    energy_nj
        Of computing, beyond what waiting takes.
    """

    part: Part
    leader: int
    rows: Rows
    compute_us: tuple[int, ...]
    message_us: int
    extra_permille: tuple[int, ...]
    extra_flops: int
    weight_bytes: int
    memory_bytes: tuple[int, ...]
    energy_nj: int


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: the computed properties below are kept
class Groups:
    """Integer tables of one network on some devices that serve chunks in groups.

    Attributes
    ----------
    chain
        The network on each device: times, copies, weights, tensors, cuts, who excludes whom.
    data
        What was asked.
    boundary_bytes
        Bytes that a cut at each boundary 0..n sends on.
    links
        By [source][target]; None: there is none. Without any links messages take no time.
    segments
        Tiles of chunks.
    """

    chain: Chain
    data: Cooperation
    boundary_bytes: tuple[int, ...]
    links: tuple[tuple[Link | None, ...], ...]
    segments: SegmentTable

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices."""
        return self.chain.units

    @property
    def device_count(self) -> int:
        """Number of devices."""
        return len(self.chain.units)

    @property
    def most_group(self) -> int:
        """Most devices in a group."""
        most = self.data.most_group
        return self.device_count if most is None else min(most, self.device_count)

    @property
    def idle_mw(self) -> Sequence[int]:
        """Power of each device while it waits."""
        return self.data.idle_mw or (0,) * self.device_count

    @property
    def power_mw(self) -> Sequence[int]:
        """Power of each device while it computes."""
        return self.data.devices.power_mw or (0,) * self.device_count

    def send_us(self, source: int, target: int, size: int) -> int | None:
        """Return how long a message takes; None: there is no link."""
        if not self.data.devices.links or source == target:
            return 0
        link = self.links[source][target]
        return None if link is None else link.time_us(size)

    @cached_property
    def enter_us(self) -> tuple[int | None, ...]:
        """By device how long the input takes from the host."""
        return self._at_host(0)

    @cached_property
    def leave_us(self) -> tuple[int | None, ...]:
        """By device how long the result takes to the host."""
        return self._at_host(-1)

    def _at_host(self, boundary: int) -> tuple[int | None, ...]:
        host, devices = self.data.devices.host, range(self.device_count)
        if not host:
            return (0,) * self.device_count
        at, size = self.devices.index(host), self.boundary_bytes[boundary]
        ends = [(at, device) if boundary == 0 else (device, at) for device in devices]
        return tuple(self.send_us(source, target, size) for source, target in ends)

    def between_us(self, source: int, target: int, boundary: int) -> int | None:
        """Return how long the result of a chunk takes from one leader to the next."""
        time = self.send_us(source, target, self.boundary_bytes[boundary])
        return time if self.data.interstage or time is None else 0

    def stage_us(self, service: Service, *messages_us: int) -> int:
        """Return what a request takes of a group, with what its leader sends to others (Eq. 11)."""
        compute_us = max(service.compute_us)
        if self.data.devices.overlap:
            return max(compute_us, service.message_us, *messages_us)
        return compute_us + service.message_us + sum(messages_us)

    @cached_property
    def spans(self) -> Sequence[tuple[int, int]]:
        """The chunks [start, stop), by their first boundary."""
        return tuple(combinations(self.chain.cuts, 2))

    def possible(self) -> Iterator[Part]:
        """Yield every chunk with every group that can serve it: all devices can run all its layers."""
        for start, stop in self.spans:
            able = [d for d in range(self.device_count) if self.chain.runs(start, stop, d)]
            most = min(self.most_group, self.segments.of(start, stop).rows, len(able)) if able else 0
            for size in range(1, most + 1):
                for group in combinations(able, size):
                    if self.service((start, stop, group)) is not None:
                        yield start, stop, group

    def service(self, part: Part) -> Service | None:
        """Return what a request takes of a group whose devices can run a chunk; None: it cannot serve it.

        It cannot if the chunk does not split, or if no device of it is linked with all others.
        """
        known = self._services
        if part not in known:
            known[part] = self._service(part)
        return known[part]

    @cached_property
    def _services(self) -> dict[Part, Service | None]:
        return {}

    def _service(self, part: Part) -> Service | None:
        start, stop, group = part
        segment = self.segments.of(start, stop)
        if len(group) > min(segment.rows, self.most_group):
            return None
        if len(group) == 1:
            leader, message_us = 0, 0
            rows: Rows = (segment.rows,)
            times: tuple[tuple[int, ...], ...] = ()
        else:
            times = tuple(self.tile_us(start, stop, device, len(group)) for device in group)
            received, sent = (amount.by_rows(len(group)) for amount in (segment.received, segment.sent))

            def messages(leading: int, dealt: Rows) -> int | None:
                return self.messages_us(group, leading, [received[r] + sent[r] for r in dealt])

            split = best_split(
                Group(
                    total=segment.rows,
                    compute_us=times,
                    message_us=messages,
                    overlap=self.data.devices.overlap,
                    alike=self.links_alike,
                )
            )
            if split is None:
                return None
            leader, rows, message_us = split.leader, split.rows, split.message_us
        alone = self.chain.busy_us(start, stop, group[0])
        computes = tuple(t[r] for t, r in zip(times, rows, strict=True)) if times else (alone,)
        extra = self.extra(start, stop, rows)
        power = zip(group, computes, strict=True)
        return Service(
            part=part,
            leader=group[leader],
            rows=rows,
            compute_us=computes,
            message_us=message_us,
            extra_permille=tuple(-(-1000 * more // max(1, done)) for more, done in extra),
            extra_flops=sum(more for more, _ in extra),
            weight_bytes=self.weight_bytes(start, stop),
            memory_bytes=self.memory_bytes(start, stop, rows),
            energy_nj=sum((self.power_mw[d] - self.idle_mw[d]) * us for d, us in power),
        )

    def exchange(self, one: int, other: int) -> Exchange | None:
        """Return what messages between two devices take, there and back; None: a link is missing.

        Both ways have the slower of both rates: so the time depends on the sum of both sizes.
        """
        if not self.data.devices.links or one == other:
            return Exchange(latency_ns=0, bytes_per_second=0)
        there, back = self.links[one][other], self.links[other][one]
        if there is None or back is None:
            return None
        return Exchange(
            latency_ns=1000 * (there.latency_us + back.latency_us),
            bytes_per_second=min(there.bytes_per_second, back.bytes_per_second),
        )

    @cached_property
    def links_alike(self) -> bool:
        """Whether messages between any two devices take the same time."""
        return len({self.exchange(*pair) for pair in combinations(range(self.device_count), 2)}) <= 1

    def messages_us(self, group: Devices, leading: int, sizes: Sequence[int]) -> int | None:
        """Return how long inputs and results of all but the leader take (Eq. 9 and 10)."""
        total = 0
        for place, device in enumerate(group):
            exchange = self.exchange(group[leading], device)
            if exchange is None:
                return None
            total += exchange.time_ns(sizes[place]) if place != leading else 0
        return -(-total // 1000)

    def tile_us(self, start: int, stop: int, device: int, group: int) -> tuple[int, ...]:
        """Return how long a device computes r rows of a chunk in a group of so many, by r."""
        key = (start, stop, device, min(group, 3))
        if key not in self._tiles:
            always = sum(self._fixed_us(layer, device) for layer in range(start, stop))
            always += self.chain.transfer_in_us[start][device] + self.chain.transfer_out_us[stop][device]
            self._tiles[key] = tuple(-(-total // PER_US) + always for total in self._tile_ps(*key))
        return self._tiles[key]

    def _tile_ps(self, start: int, stop: int, device: int, group: int) -> list[int]:
        """Return the same without what does not depend on rows, in picoseconds: the sum over layers."""
        key = (start, stop, device, group)
        if key not in self._sums:
            work = self.segments.of(start, stop).work
            # Of most chunks the later layers do the same as in the chunk of those alone.
            known = start + 1 < stop and self.segments.of(start + 1, stop).work[0] is work[1]
            sums = self._tile_ps(start + 1, stop, device, group) if known else [0] * len(work[0].ends)
            for layer in [start] if known else range(start, stop):
                own = work[layer - start]
                varying = (self.chain.layer_us[layer][device] or 0) - self._fixed_us(layer, device)
                sums = list(map(add, sums, scaled_ps(varying, own, group)))
            self._sums[key] = sums
        return self._sums[key]

    @cached_property
    def _tiles(self) -> dict[tuple[int, ...], tuple[int, ...]]:
        return {}

    @cached_property
    def _sums(self) -> dict[tuple[int, ...], list[int]]:
        return {}

    def _fixed_us(self, layer: int, device: int) -> int:
        rows = self.data.fixed_us
        return min(rows[layer][device], self.chain.layer_us[layer][device] or 0) if rows else 0

    def tiles(self, rows: Rows) -> list[tuple[int, int]]:
        """Return the rows [start, stop) of each device of a group."""
        borders = [sum(rows[:place]) for place in range(len(rows) + 1)]
        return list(pairwise(borders))

    def extra(self, start: int, stop: int, rows: Rows) -> list[tuple[int, int]]:
        """Return by device what it computes beyond its share, and all that it computes."""
        segment = self.segments.of(start, stop)
        whole = sum(work.of(0, segment.rows) for work in segment.work)
        found = []
        for first, last in self.tiles(rows):
            done = sum(work.of(first, last) for work in segment.work)
            found.append((max(0, done - whole * (last - first) // segment.rows), done))
        return found

    def weight_bytes(self, start: int, stop: int) -> int:
        """Return the weights of a chunk."""
        return self.chain.weight_prefix[stop] - self.chain.weight_prefix[start]

    def memory_bytes(self, start: int, stop: int, rows: Rows) -> tuple[int, ...]:
        """Return the bytes of each device: all weights of the chunk, and its share of the tensors.

        Its share is that of the operations which it does; it is an estimate where halos differ by layer.
        """
        segment, weights = self.segments.of(start, stop), self.weight_bytes(start, stop)
        live = self.chain.memory_bytes(start, stop) - weights
        whole = sum(work.of(0, segment.rows) for work in segment.work)
        shares = [sum(work.of(*tile) for work in segment.work) for tile in self.tiles(rows)]
        data = self.data.devices
        slots = data.in_slots * self.boundary_bytes[start] + data.out_slots * self.boundary_bytes[stop]
        return tuple(weights + data.resident_bytes + slots - (-live * share // whole) for share in shares)


def scaled_ps(time_us: int, work: Amount, group: int) -> list[int]:
    """Return the time of a tile of r rows in a group of so many, by r: its share of that of all (Eq. 5)."""
    unit = -(-time_us * PER_US // work.of(0, work.rows))
    return [unit * done for done in work.by_rows(group)]


def groups_of(problem: Problem) -> Groups:
    """Return the tables of a problem of this formulation."""
    tables = problem.tables
    assert isinstance(tables, Groups)
    return tables


def build_tables(problem: Problem) -> Groups:
    """Return the tables of one network on the devices of a platform."""
    platform, network, data = problem.platform, problem.network, problem.data
    assert isinstance(data, Cooperation)
    chain = build_chain(platform, network, problem.costs.of(network.name))
    link_of = data.devices.linker(chain.units)
    return Groups(
        chain=chain,
        data=data,
        boundary_bytes=network.boundary_bytes,
        links=tuple(
            tuple(None if one == other else link_of(one, other) for other in chain.units)
            for one in chain.units
        ),
        segments=Segments(data),
    )

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
from .service import Devices, Part, Service, in_steps
from .splitting import Group, Rows, best_split

PER_US = 10**6
"""Times of single rows are counted in picoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What a message to a device and its answer take together."""

    latency_ns: int  # of both when they are empty
    bytes_per_second: int  # the slower of both rates; 0: messages take no time

    def time_ns(self, size: int) -> int:
        """Return the time of a given number of bytes there and back together."""
        rate = self.bytes_per_second
        return self.latency_ns - (-size * 10**9 // rate) if rate else 0


class SegmentTable(Protocol):
    """What tiles of each chunk compute and read."""

    def of(self, start: int, stop: int) -> Segment:
        """Return the chunk [start, stop)."""


@dataclass(frozen=True, kw_only=True, eq=False)  # no slots: the computed properties below are kept
class Groups:
    """Integer tables of one network on some devices that serve chunks in groups."""

    chain: Chain  # the network on each device: times, copies, weights, tensors, cuts, who excludes whom
    data: Cooperation  # what was asked
    boundary_bytes: tuple[int, ...]  # bytes that a cut at each boundary 0..n sends on
    links: tuple[tuple[Link | None, ...], ...]
    """By [source][target]; None: there is none. Without any links messages take no time."""
    segments: SegmentTable  # tiles of chunks

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
        if self.data.devices.overlap:
            return max(service.time_us, service.message_us, *messages_us)
        return service.time_us + service.message_us + sum(messages_us)

    @cached_property
    def spans(self) -> Sequence[tuple[int, int]]:
        """The chunks [start, stop), by their first boundary."""
        return tuple(combinations(self.chain.cuts, 2))

    def possible(self) -> Iterator[Part]:
        """Yield every chunk with every group that can serve it: all devices can run all its layers."""
        for start, stop in self.spans:
            able = [d for d in range(self.device_count) if self.chain.runs(start, stop, d)]
            rows = len(able) if self.data.steps else self.segments.of(start, stop).rows
            most = min(self.most_group, rows, len(able)) if able else 0
            for size in range(1, most + 1):
                for group in combinations(able, size):
                    if self.service((start, stop, group)) is not None:
                        yield start, stop, group

    def service(self, part: Part) -> Service | None:
        """Return what a request takes of a group whose devices can run a chunk; None: it cannot serve it.

        It cannot if the chunk does not split, or if no device of it is linked with all others; if it may
        take steps, if no step of it splits.
        """
        start, stop, group = part
        if len(group) == 1 or not self.data.steps:
            return self.at_once(part)
        if len(group) > self.most_group:
            return None
        if (start, group) not in self._ways:
            self._ways[start, group] = self._fastest_ways(start, group)
        way = self._ways[start, group].get(stop)
        return None if way is None else in_steps(group, way)

    @cached_property
    def _ways(self) -> dict[tuple[int, Devices], dict[int, tuple[Service, ...]]]:
        return {}

    def _fastest_ways(self, start: int, group: Devices) -> dict[int, tuple[Service, ...]]:
        """Return by its end the steps in which a group takes least time for a chunk, one at least in tiles.

        A step is served by all devices of the group, or by one of them alone; of equally fast ways it is the
        one with the fewest steps.
        """
        free: dict[int, tuple[Service, ...]] = {start: ()}
        tiled: dict[int, tuple[Service, ...]] = {}
        for stop in (cut for cut in self.chain.cuts if cut > start):
            all_ways, tiled_ways = [], []
            for begin in [*free]:
                alone = [self.at_once((begin, stop, (d,))) for d in group if self.chain.runs(begin, stop, d)]
                together = self.at_once((begin, stop, group)) if len(alone) == len(group) else None
                steps = sorted((step for step in alone if step is not None), key=_time_us)[:1]
                all_ways += [(*free[begin], step) for step in (*steps, together) if step is not None]
                tiled_ways += [(*tiled[begin], step) for step in steps if begin in tiled]
                tiled_ways += [(*free[begin], together)] if together is not None else []
            for found, ways in ((free, all_ways), (tiled, tiled_ways)):
                if ways:
                    found[stop] = min(ways, key=lambda way: (sum(map(_time_us, way)), len(way)))
        return tiled

    def at_once(self, part: Part) -> Service | None:
        """Return what a request takes of a group that computes a chunk in one step; None: it cannot."""
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
        power = zip(group, computes, strict=True)
        return Service(
            part=part,
            leader=group[leader],
            rows=rows,
            compute_us=computes,
            message_us=message_us,
            extra=tuple(self.extra(start, stop, rows)),
            weight_bytes=(self.weight_bytes(start, stop),) * len(group),
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
        return self.chain.weights.between(start, stop)

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


def _time_us(service: Service) -> int:
    return service.time_us


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

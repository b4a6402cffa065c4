"""Schemes that are no pipelines, to compare with: all devices work on one request after the other.

lw   layer by layer over all devices, results gathered by the leader each time (MoDNN)
efl  the first layers fused and split over all devices, the rest on one (DeepThings)
ofl  blocks of fused layers, each split over all devices, cut where it is best (AOFL)
ce   layer by layer with rows in proportion to speed; neighbours send each other what they lack, and each
     layer is served by as many of the fastest devices as is best (CoEdge)

All are computed on the tables of the problem: times of tiles, links, split of rows. Where a paper leaves
something open the best choice is taken: how many layers EFL fuses, on which device the rest runs, how many
devices serve each layer in CE, how rows are split. A request has left all devices before the next one comes,
so that the period is the latency. What it takes from and to the host is left out. CE knows where rows lie by
bytes from the first one on, which is exact where each layer reads one other (cooperation, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import add

from gapless.formulations.cooperation.service import Devices
from gapless.formulations.cooperation.tables import Groups

SCHEMES = ("lw", "efl", "ofl", "ce")
"""Their names."""


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """What a request takes when all devices serve it together.

    `weight_bytes`, `memory_bytes`: by device the weights of all that it computes, and with them the most that
    tensors of a block take.
    """

    name: str
    period_us: int  # from one result to the next; it is the latency, too
    busy_us: tuple[int, ...]  # by device how long it computes
    extra_permille: tuple[int, ...]
    """By device the part of its operations that others do, too; 0 when it does nothing."""
    weight_bytes: tuple[int, ...]
    memory_bytes: tuple[int, ...]
    blocks: tuple[tuple[int, int, Devices], ...]
    """(first layer, one past the last, devices) of what is computed without messages in between."""

    @property
    def utilisation(self) -> tuple[float, ...]:
        """By device the part of the time that it computes."""
        return tuple(busy / max(1, self.period_us) for busy in self.busy_us)


@dataclass(frozen=True, kw_only=True)
class _Block:
    """A block of layers on some devices: what it takes, and the rows of each device."""

    start: int
    stop: int
    devices: Devices
    rows: tuple[int, ...]
    compute_us: tuple[int, ...]
    time_us: int


def scheme(groups: Groups, name: str, *, even: bool = False) -> Scheme | None:
    """Return what a request takes under a scheme; None: no device can run all that it has to.

    `even`: whether all but CE give each device as many rows, as PICO has it (6.4.1), instead of the best
    split.
    """
    makers: dict[str, Callable[..., tuple[int, list[_Block]] | None]] = {
        "lw": _layer_wise,
        "efl": _early_fused,
        "ofl": _optimal_fused,
        "ce": _exchanging,
    }
    found = makers[name](groups, even=even)
    if found is None:
        return None
    period_us, blocks = found
    busy, more, done, weights, tensors = ([0] * groups.device_count for _ in range(5))
    for block in blocks:
        extra = groups.extra(block.start, block.stop, block.rows)
        held = groups.memory_bytes(block.start, block.stop, block.rows)
        own = groups.weight_bytes(block.start, block.stop)
        numbers = zip(block.devices, block.compute_us, extra, held, strict=True)
        for device, time, (twice, all_), size in numbers:
            busy[device] += time
            more[device] += twice
            done[device] += all_
            weights[device] += own
            tensors[device] = max(tensors[device], size - own)
    return Scheme(
        name=name,
        period_us=period_us,
        busy_us=tuple(busy),
        extra_permille=tuple(-(-1000 * a // max(1, b)) for a, b in zip(more, done, strict=True)),
        weight_bytes=tuple(weights),
        memory_bytes=tuple(map(add, weights, tensors)),
        blocks=tuple((block.start, block.stop, block.devices) for block in blocks),
    )


def _fastest(groups: Groups, start: int, stop: int) -> list[int]:
    """Return the devices that can run a block, the fastest first."""
    able = [d for d in range(groups.device_count) if groups.chain.runs(start, stop, d)]
    return sorted(able, key=lambda device: (groups.chain.busy_us(start, stop, device), device))


def _served(
    groups: Groups, start: int, stop: int, devices: int | None = None, *, even: bool
) -> _Block | None:
    """Return a block on so many of the fastest devices, or on all; on fewer where it has too few rows."""
    order = _fastest(groups, start, stop)
    most = min(len(order), groups.segments.of(start, stop).rows, groups.most_group)
    for count in range(min(most, devices or most), 0, -1):
        if even and count > 1 and (block := _even(groups, start, stop, order[:count])) is not None:
            return block
        service = groups.service((start, stop, tuple(sorted(order[:count]))))
        if service is not None:
            return _Block(
                start=start,
                stop=stop,
                devices=service.part[2],
                rows=service.rows,
                compute_us=service.compute_us,
                time_us=groups.stage_us(service),
            )
    return None


def _in_sequence(blocks: list[_Block | None]) -> tuple[int, list[_Block]] | None:
    known = [block for block in blocks if block is not None]
    return (sum(block.time_us for block in known), known) if len(known) == len(blocks) else None


def _layer_wise(groups: Groups, *, even: bool) -> tuple[int, list[_Block]] | None:
    return _in_sequence([_served(groups, *pair, even=even) for pair in pairwise(groups.chain.cuts)])


def _early_fused(groups: Groups, *, even: bool) -> tuple[int, list[_Block]] | None:
    last = groups.chain.layer_count
    cuts = groups.chain.cuts[1:-1]
    plans = [[_served(groups, 0, cut, even=even), _served(groups, cut, last, 1, even=even)] for cut in cuts]
    found = [
        plan for blocks in (*plans, [_served(groups, 0, last, even=even)]) if (plan := _in_sequence(blocks))
    ]
    return min(found, key=lambda plan: plan[0], default=None)


def _optimal_fused(groups: Groups, *, even: bool) -> tuple[int, list[_Block]] | None:
    best: dict[int, tuple[int, list[_Block]]] = {0: (0, [])}
    for stop in groups.chain.cuts[1:]:
        ways = [
            (best[start][0] + block.time_us, [*best[start][1], block])
            for start in groups.chain.cuts
            if start < stop and start in best and (block := _served(groups, start, stop, even=even))
        ]
        if ways:
            best[stop] = min(ways, key=lambda way: way[0])
    return best.get(groups.chain.layer_count)


def _exchanging(groups: Groups, *, even: bool) -> tuple[int, list[_Block]] | None:
    """Choose how many devices serve each layer, by a dynamic program over layers and numbers of devices."""
    order = _fastest(groups, 0, groups.chain.layer_count)
    if not order:
        return None
    # Where the rows are: at first with the fastest device, which also gathers the result.
    states: dict[int, tuple[int, list[_Block]]] = {0: (0, [])}
    for start, stop in pairwise(groups.chain.cuts):
        most = min(len(order), groups.segments.of(start, stop).rows)
        later: dict[int, tuple[int, list[_Block]]] = {}
        for count in range(1, most + 1):
            block = _proportional(groups, start, stop, order[:count])
            ways = [
                (time + block.time_us + _lacking_us(groups, before, block, order[0]), [*before, block])
                for time, before in states.values()
            ]
            later[count] = min(ways, key=lambda way: way[0])
        states = later
    ends = [(time + _gathered_us(groups, blocks[-1], order[0]), blocks) for time, blocks in states.values()]
    return min(ends, key=lambda end: end[0])


def _proportional(groups: Groups, start: int, stop: int, devices: list[int]) -> _Block:
    """Return a block with rows in proportion to speed, at least one each."""
    total = groups.segments.of(start, stop).rows
    speed = [1 / max(1, groups.chain.busy_us(start, stop, device)) for device in devices]
    rows = [1 + int((total - len(devices)) * each / sum(speed)) for each in speed]
    rows[0] += total - sum(rows)
    return _divided(groups, start, stop, devices, rows)


def _even(groups: Groups, start: int, stop: int, devices: list[int]) -> _Block | None:
    """Return a block with as many rows for each device; the fastest one leads. None: a link is missing."""
    segment, count = groups.segments.of(start, stop), len(devices)
    rows = [(segment.rows + place) // count for place in range(count)]
    received, sent = segment.received.by_rows(count), segment.sent.by_rows(count)
    message_us = groups.messages_us(tuple(devices), 0, [received[own] + sent[own] for own in rows])
    if message_us is None:
        return None
    block = _divided(groups, start, stop, devices, rows)
    overlap = groups.data.devices.overlap
    time_us = max(block.time_us, message_us) if overlap else block.time_us + message_us
    return replace(block, time_us=time_us)


def _divided(groups: Groups, start: int, stop: int, devices: list[int], rows: list[int]) -> _Block:
    """Return a block without its messages."""
    if len(devices) == 1:
        times: tuple[int, ...] = (groups.chain.busy_us(start, stop, devices[0]),)
    else:
        times = tuple(
            groups.tile_us(start, stop, device, len(devices))[count]
            for device, count in zip(devices, rows, strict=True)
        )
    return _Block(
        start=start, stop=stop, devices=tuple(devices), rows=tuple(rows), compute_us=times, time_us=max(times)
    )


def _owned(groups: Groups, block: _Block) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield (device, bytes from, to) of the result of a block that each device has."""
    sent = groups.segments.of(block.start, block.stop).sent
    for device, (first, last) in zip(block.devices, groups.tiles(block.rows), strict=True):
        yield device, (sent.starts[first], sent.ends[last])


def _lacking_us(groups: Groups, before: list[_Block], block: _Block, first: int) -> int:
    """Return how long it takes until each device has what it reads."""
    received = groups.segments.of(block.start, block.stop).received
    whole = received.ends[received.rows]
    owned = dict(_owned(groups, before[-1])) if before else {first: (0, whole)}
    total = 0
    for device, (start, stop) in zip(block.devices, groups.tiles(block.rows), strict=True):
        needed = received.starts[start], received.ends[stop]
        own = owned.get(device, (0, 0))
        lacks = (needed[1] - needed[0]) - max(0, min(needed[1], own[1]) - max(needed[0], own[0]))
        others = [other for other in owned if other != device]
        if lacks > 0 and others:
            near = min(others, key=lambda other: abs(owned[other][0] - needed[0]))
            total += groups.send_us(near, device, lacks) or 0
    return total


def _gathered_us(groups: Groups, block: _Block, first: int) -> int:
    """Return how long the parts of the result take to one device."""
    return sum(
        groups.send_us(device, first, stop - start) or 0
        for device, (start, stop) in _owned(groups, block)
        if device != first
    )

"""What it costs to come to a unit, besides copies: chunks in the runtime itself, against the tables.

A profile times pieces one by one, each again and again. In a pipeline a chunk follows another one: its unit
has to be told, its inputs were written by another core, what it needs is no longer in the caches, and an
engine has costs of its own at each border. So some requests are run through all layers in chunks that go to
and fro between the units. These streams have no cycle, so workers serve requests by their numbers and there
is hardly more than one on its way: a unit usually waits for the request. Of each chunk behind a border two
things are kept: the hand-over, from when its request and its unit were there until it began, and by how much
it was longer than its layers and copies are in the table.

Simplifications: a hop costs the same wherever its border is, and what was measured of nearly lone requests
is taken for streams, too, as time of the unit.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from statistics import fmean, median

from ..executor.progress import Ledger
from ..executor.workers import unit_data
from ..formulations.costs import NetworkCosts
from ..formulations.deployment import Deployment
from ..formulations.files import Schema, dump, parse
from ..formulations.hardware import Platform
from ..formulations.history import History, Interval
from ..formulations.network import Network
from ..formulations.plan import Chunk
from ..formulations.streams import Stream
from ..formulations.validation import FileContent
from .isolated import RawTimes, UnitCosts, able_units, slowest_us, span_time
from .probes import MAX_PROBES, blocks
from .slowdown.corun import companions

TRIAL_US = 500_000
"""How long the requests of a trial take together, as predicted."""

FEWEST, MOST = 8, 100
"""Requests of a trial that count."""

TURNS = 2
"""With how many units requests begin, where there are as many: layers are then measured on several units."""

Trial = Callable[[Deployment, int], History]
"""Runs a number of requests through a deployment, and tells when everything happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HopCost(FileContent):
    """What a request takes more where it goes from one unit to another than the copies that were measured."""

    source: str
    target: str
    """From which unit to which."""
    borders: int
    """At how many borders of chunks it was measured."""
    hand_over_us: float
    """From when the request and the unit were there until the chunk began; mean over the borders."""
    beyond_us: float
    """By how much the chunk behind the border was longer than the table says; mean over the borders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed(FileContent):
    """What one chunk of a trial took: usual values over the requests, microseconds."""

    stream: int
    chunk: int
    hand_over_us: float
    busy_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What all chunks of one trial took."""

    chunks: tuple[Passed, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Where trials are kept; `setting`: what decides their times besides units and chunks."""

    ledger: Ledger
    setting: tuple[str, ...]


HOPS = Schema(format="gapless.hops", version=1, content=_Run)
_KIND = "hops"
"""Kind of the entries in the ledger."""


def with_hops(columns: Sequence[UnitCosts], hops: Sequence[HopCost]) -> list[UnitCosts]:
    """Return the columns of a table with what it costs to come to each unit; 0 where that is not known."""
    return [replace(column, hop_us=hop_us(hops, column.unit)) for column in columns]


def hop_us(hops: Sequence[HopCost], unit: str) -> float:
    """Return what it costs to come to a unit from another one, besides copies.

    A chunk that was shorter than its layers does not make up for the hand-over: that the table says too much
    of some layers is no property of a border.
    """
    to = [hop for hop in hops if hop.target == unit] or hops  # where no trial came, as elsewhere
    borders = sum(hop.borders for hop in to)
    if not borders:
        return 0.0
    handed, beyond = (
        sum(hop.borders * time_us for hop, time_us in zip(to, times, strict=True)) / borders
        for times in ([hop.hand_over_us for hop in to], [hop.beyond_us for hop in to])
    )
    return handed + max(0.0, beyond)


def trials(network: Network, platform: Platform, raws: Mapping[str, RawTimes]) -> list[Deployment]:
    """Return what is run: all layers in chunks on units that can run at once, to and fro between them.

    Empty where no plan can have a border: there is one unit, or all exclude each other.
    """
    found = []
    for units in _together(platform):
        streams: list[Stream] = []
        for turn in range(min(TURNS, len(units))):
            own = {unit: raws[unit] for unit in (*units[turn:], *units[:turn])}
            chunks = tuple(_path(network, own, sum(slowest_us(raws)) / MAX_PROBES))
            if len(chunks) > 1 and all(chunks != stream.chunks for stream in streams):
                name = f"{network.name} {turn}"
                streams.append(Stream(name=name, chunks=chunks, task_slots=2 * len(units)))
        if streams:
            found.append(Deployment(streams=tuple(streams)))
    return found


def _path(network: Network, raws: Mapping[str, RawTimes], share_us: float) -> list[Chunk]:
    """Return chunks that go on to the next unit after a share of the time, or where a unit lacks a layer.

    Empty where no unit can run some layer.
    """
    chunks: list[Chunk] = []
    units, here, spent_us = list(raws), "", 0.0
    for start, stop in blocks(network):
        able = able_units(raws, (start, stop))
        if not able:
            return []
        if here in able and (spent_us < share_us or len(able) == 1):
            chunks[-1] = replace(chunks[-1], stop=stop)
        else:
            after = units.index(here) + 1 if here else 0
            here = next(unit for unit in (*units[after:], *units[:after]) if unit in able)
            chunks.append(Chunk(network=network.name, start=start, stop=stop, unit=here))
            spent_us = 0.0
        spent_us += max(span_time(raws[unit].layer_us, (start, stop)) or 0.0 for unit in able)
    return chunks


def _together(platform: Platform) -> Iterator[tuple[str, ...]]:
    """Yield sets of units that can run at once, so that each unit is in one."""
    left = list(platform.unit_names)
    while left:
        first = left[0]
        beside = companions(platform, first, able=platform.unit_names)
        units = tuple(unit for unit in platform.unit_names if unit == first or unit in beside)
        left = [unit for unit in left if unit not in units]
        yield units


def passed(
    deployment: Deployment, costs: NetworkCosts, platform: Platform, trial: Trial, kept: Kept
) -> tuple[Passed, ...]:
    """Run a trial, or return what is kept of it; errors as for `Pipeline`. `costs`: what the table says."""
    units = [platform.units[platform.index_of(unit)] for unit in deployment.units]
    what = (str(deployment), [unit_data(unit) for unit in units], kept.setting)
    key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    text = kept.ledger.find(_KIND, key)
    if text:
        return parse(text.encode(), HOPS, name=f"ledger entry {key[:12]}").chunks
    requests, slots = _requests(deployment, costs, platform), deployment.streams[0].slots
    # the first requests find cold sessions, the last ones less company
    history = trial(deployment, requests + 2 * slots)
    emulated = {unit.name for unit in units if unit.emulated}
    found = _usual(history, range(slots, slots + requests), emulated)
    kept.ledger.keep(_KIND, key, dump(_Run(chunks=found), HOPS))
    return found


def hop_costs(
    runs: Sequence[tuple[Deployment, Sequence[Passed]]], costs: NetworkCosts, platform: Platform
) -> tuple[HopCost, ...]:
    """Return what hops cost, from what the chunks of some trials took and the table says of them."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for deployment, run in runs:
        for one in run:
            if one.chunk:
                before, chunk = deployment.streams[one.stream].chunks[one.chunk - 1 : one.chunk + 1]
                beyond_us = one.busy_us - predicted_us(costs, chunk, platform)
                found.setdefault((before.unit, chunk.unit), []).append((one.hand_over_us, beyond_us))
    return tuple(
        HopCost(
            source=source,
            target=target,
            borders=len(values),
            hand_over_us=fmean(handed for handed, _ in values),
            beyond_us=fmean(beyond for _, beyond in values),
        )
        for (source, target), values in sorted(found.items())
    )


def predicted_us(costs: NetworkCosts, chunk: Chunk, platform: Platform) -> int:
    """Return what a table says of a chunk: copies and layers."""
    unit = platform.index_of(chunk.unit)
    layers = sum(row[unit] or 0 for row in costs.layer_us[chunk.start : chunk.stop])
    return costs.transfer_in_us[chunk.start][unit] + layers + costs.transfer_out_us[chunk.stop][unit]


def _requests(deployment: Deployment, costs: NetworkCosts, platform: Platform) -> int:
    """Return how many requests of each stream of a trial count."""
    loads: Counter[str] = Counter()
    for stream in deployment.streams:
        for chunk in stream.chunks:
            loads[chunk.unit] += predicted_us(costs, chunk, platform)
    return max(FEWEST, min(MOST, TRIAL_US // max(1, *loads.values())))


def hand_overs(history: History) -> Iterator[tuple[Interval, int]]:
    """Yield each chunk of each request with how long it waited when its request and unit were there, ns."""
    ends_ns = {(event.stream, event.request, event.chunk): event.end_ns for event in history.events}
    free_ns: dict[str, int] = {}
    for event in history.events:  # in the order of their starts, and a unit runs one at a time
        before_ns = ends_ns.get((event.stream, event.request, event.chunk - 1), 0)
        there_ns = max(free_ns.get(event.unit, 0), before_ns)
        free_ns[event.unit] = event.end_ns
        yield event, event.start_ns - there_ns


def _usual(history: History, counted: range, emulated: Set[str]) -> tuple[Passed, ...]:
    """Return the usual hand-over and length of each chunk: medians; on emulated units means.

    A chunk on an emulated unit either misses the pause that the quota brings or gets all of it, so that only
    the mean tells what a unit takes which is busy all the time.
    """
    taken: dict[tuple[int, int, str], list[tuple[int, int]]] = {}
    for event, handed_ns in hand_overs(history):
        if event.request in counted:
            place = event.stream, event.chunk, event.unit
            taken.setdefault(place, []).append((handed_ns, event.end_ns - event.start_ns))
    found = []
    for (stream, chunk, unit), rows in sorted(taken.items()):
        middle = fmean if unit in emulated else median
        handed_us, busy_us = (float(middle(column)) / 1000 for column in zip(*rows, strict=True))
        found.append(Passed(stream=stream, chunk=chunk, hand_over_us=handed_us, busy_us=busy_us))
    return tuple(found)

"""Clusters: their devices, what joins them, and how well that was fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..formulations.cluster import Link
from ..formulations.cluster_platform import ClusterPlatform, DeviceType, Speed
from ..profiler.links.fitting import FAR, Check, LinkFit, Weight, checks_by_size, checks_in_short, fit_link
from ..profiler.links.samples import Links, Load, MeasuredLink, Purpose
from .blocks import Block, Column, Section, Sentence, Table, Tone, Unit, table


def clusters_blocks(clusters: Sequence[ClusterPlatform]) -> Iterator[Block]:
    """Yield what `gapless list problems` answers about the shipped clusters."""
    columns: list[Column[ClusterPlatform]] = [
        Column("--platform", Unit.NAME, lambda one: one.name),
        Column("devices", Unit.TEXT, lambda one: ", ".join(f"{t.count} x {t.name}" for t in one.types)),
        Column("for MODEL; times estimated", Unit.TEXT, _joined),
    ]
    yield table("Clusters", columns, clusters)
    yield Sentence("")
    yield from (Sentence(f"{cluster.name}: {cluster.source}", Tone.SOFT) for cluster in clusters)


def cluster_blocks(found: ClusterPlatform) -> Iterator[Block]:
    """Yield what `gapless show` answers about a cluster file."""
    yield Sentence(f": {len(found.devices)} devices", lead=found.name)
    yield Sentence(found.source, Tone.SOFT)
    columns: list[Column[DeviceType]] = [
        Column("device", Unit.NAME, lambda one: one.name),
        Column("count", Unit.COUNT, lambda one: one.count),
        Column("memory", Unit.BYTES, lambda one: one.memory_bytes),
        Column("power", Unit.COUNT, _power),
        Column("GFLOP/s", Unit.COUNT, lambda one: _gigaflops(one.speed)),
        Column("memory/s", Unit.BYTES, lambda one: _memory_speed(one.speed)),
        Column("port", Unit.COUNT, lambda one: _speed(one.port_bytes_per_second)),
        Column("inner units", Unit.TEXT, _inner),
    ]
    yield table("Devices", columns, found.types)
    links: list[Column[Link]] = [
        Column("from", Unit.NAME, lambda link: link.source),
        Column("to", Unit.NAME, lambda link: link.target),
        Column("speed", Unit.COUNT, lambda link: _speed(link.bytes_per_second)),
        Column("latency", Unit.COUNT, lambda link: f"{link.latency_us:,} us"),
    ]
    yield table("Links", links, found.links)
    yield Sentence("")
    yield from (Sentence(f"{one.name}: {one.source}", Tone.SOFT) for one in found.types if one.source)


def _power(one: DeviceType) -> str | None:
    idle = "" if one.idle_mw is None else f", {one.idle_mw / 1000:g} W idle"
    return None if one.power_mw is None else f"{one.power_mw / 1000:g} W{idle}"


def _inner(one: DeviceType) -> str | None:
    return ", ".join(f"{unit.name} {_gigaflops(unit.speed)} GFLOP/s" for unit in one.units) or None


def _gigaflops(speed: Speed | None) -> str:
    return "-" if speed is None else f"{speed.flops_per_second / 1e9:,.1f}"


def _speed(bytes_per_second: int | None) -> str:
    return "-" if bytes_per_second is None else f"{bytes_per_second * 8 / 1e6:,.0f} Mbit/s"


def _memory_speed(speed: Speed | None) -> int | None:
    return None if speed is None else speed.memory_bytes_per_second


def _joined(cluster: ClusterPlatform) -> str:
    ports = dict.fromkeys(_speed(one.port_bytes_per_second) for one in cluster.types)
    return f"ports of {' or '.join(ports)}" if not cluster.links else f"{len(cluster.links)} links"


_LOADS = {Load.IDLE: "alone", Load.LINK: "beside others on the link", Load.OTHERS: "while other devices send"}
_LEGEND = (
    "latency + bytes / speed is what a message takes alone; queue, own traffic, other traffic: what it takes "
    "more for each microsecond that the message before it waited, for each MB on the same link, and for "
    "each MB on all links on average. In brackets: 95 % of the fits to resampled messages"
)


_PURPOSES = {Purpose.FIT: "fitted", Purpose.CHECK: "not fitted", Purpose.SHARD: "shard outputs"}


def link_blocks(found: Links, fits: Sequence[LinkFit] = ()) -> Iterator[Block]:
    """Yield what `gapless device links` answers; links without fits are fitted here."""
    fits = fits or [fit_link(one) for one in found.links]
    yield Sentence(f": {found.source} in {found.seconds:.0f} s", lead=found.name)
    yield _fits(found, fits)
    yield Sentence(_LEGEND, Tone.SOFT)
    title = "Errors of the prediction (fit), and of bandwidth alone (median, 90 % below):"
    yield Section(title, (_checks(checks_by_size(found, fits)),))
    title = "Messages that were not fitted, all sizes together:"
    yield Section(title, (_checks(checks_in_short(found, fits)),))
    yield from (Sentence(f"{one.name}: {one.source}", Tone.SOFT) for one in found.devices)


def _fits(found: Links, fits: Sequence[LinkFit]) -> Table:
    columns: list[Column[tuple[MeasuredLink, LinkFit]]] = [
        Column("from", Unit.NAME, lambda row: row[1].source),
        Column("to", Unit.NAME, lambda row: row[1].target),
        Column("speed", Unit.COUNT, lambda row: f"{row[1].link().bytes_per_second / 1e6:,.4g} MB/s"),
        Column("latency", Unit.COUNT, lambda row: _weight(row[1].weights.e, 1, "us")),
        Column("queue", Unit.COUNT, lambda row: _weight(row[1].weights.w2, 1, "")),
        Column("own traffic", Unit.COUNT, lambda row: _weight(row[1].weights.w3, 1e3, "ms/MB")),
        Column("other traffic", Unit.COUNT, lambda row: _weight(row[1].weights.w4, 1e3, "ms/MB")),
        Column("clocks differ by", Unit.COUNT, lambda row: f"<= {row[0].clock_error_us:,.0f} us"),
    ]
    return table("Links", columns, zip(found.links, fits, strict=True))


def _weight(weight: Weight | None, factor: float, unit: str) -> str | None:
    if weight is None:
        return None
    value, low, high = (one * factor for one in (weight.value, weight.low, weight.high))
    return f"{value:,.3g} [{low:,.2g}, {high:,.2g}] {unit}".rstrip()


def _checks(checks: Sequence[Check]) -> Table:
    columns: list[Column[Check]] = [
        Column("sent", Unit.TEXT, lambda one: _LOADS[one.load]),
        Column("what", Unit.TEXT, lambda one: _PURPOSES[one.purpose]),
        Column("bytes", Unit.BYTES, lambda one: one.size),
        Column("messages", Unit.COUNT, lambda one: one.messages),
        Column("took", Unit.COUNT, lambda one: f"{one.latency_us:,.0f} us"),
        Column("fit", Unit.COUNT, lambda one: f"{one.fit.median:.1%}, {one.fit.p90:.1%}"),
        Column("bandwidth", Unit.COUNT, lambda one: f"{one.bandwidth.median:.1%}, {one.bandwidth.p90:.1%}"),
        Column(f"fit > {FAR:.0%}", Unit.SHARE, lambda one: one.fit.far, digits=0),
        Column(f"bandwidth > {FAR:.0%}", Unit.SHARE, lambda one: one.bandwidth.far, digits=0),
    ]
    return table("Errors", columns, checks)

"""Clusters: their devices, and what joins them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..formulations.cluster import Link
from ..formulations.cluster_platform import ClusterPlatform, DeviceType, Speed
from .blocks import Block, Column, Sentence, Tone, Unit, table


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

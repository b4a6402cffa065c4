"""Clusters for the terminal: their devices, and what joins them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...answers.words import size
from ...formulations.cluster_platform import ClusterPlatform, DeviceType, Speed
from ..layout import indented, plain_table


def clusters_view(clusters: Sequence[ClusterPlatform]) -> Group:
    """Return what `gapless list problems` shows of the shipped clusters."""
    table = plain_table("--platform", "devices", "for MODEL; times estimated")
    for cluster in clusters:
        devices = ", ".join(f"{one.count} x {one.name}" for one in cluster.types)
        table.add_row(Text(cluster.name, style="bold"), devices, _joined(cluster))
    sources = [Text(f"{cluster.name}: {cluster.source}", style="dim") for cluster in clusters]
    return Group(table, "", *sources)


def cluster_view(found: ClusterPlatform) -> Group:
    """Return what `gapless show` shows of a cluster file."""
    head = Text(found.name, style="bold").append(f": {len(found.devices)} devices", style="not bold")
    sources = [Text(f"{one.name}: {one.source}", style="dim") for one in found.types if one.source]
    links: list[RenderableType] = ["", indented(_links(found))] if found.links else []
    return Group(head, Text(found.source, style="dim"), "", indented(_devices(found)), *links, "", *sources)


def _devices(found: ClusterPlatform) -> Table:
    numbers = ("count", "memory", "power", "GFLOP/s", "memory/s", "port")
    table = plain_table("device", *numbers, "inner units", numbers=numbers)
    for one in found.types:
        table.add_row(
            Text(one.name, style="bold"),
            str(one.count),
            size(one.memory_bytes),
            _power(one),
            _gigaflops(one.speed),
            size(None if one.speed is None else one.speed.memory_bytes_per_second),
            _speed(one.port_bytes_per_second),
            _inner(one),
        )
    return table


def _power(one: DeviceType) -> str:
    idle = "" if one.idle_mw is None else f", {one.idle_mw / 1000:g} W idle"
    return "-" if one.power_mw is None else f"{one.power_mw / 1000:g} W{idle}"


def _inner(one: DeviceType) -> str:
    return ", ".join(f"{unit.name} {_gigaflops(unit.speed)} GFLOP/s" for unit in one.units) or "-"


def _gigaflops(speed: Speed | None) -> str:
    return "-" if speed is None else f"{speed.flops_per_second / 1e9:,.1f}"


def _links(found: ClusterPlatform) -> Table:
    table = plain_table("from", "to", "speed", "latency", numbers=("speed", "latency"))
    for link in found.links:
        table.add_row(link.source, link.target, _speed(link.bytes_per_second), f"{link.latency_us:,} us")
    return table


def _speed(bytes_per_second: int | None) -> str:
    return "-" if bytes_per_second is None else f"{bytes_per_second * 8 / 1e6:,.0f} Mbit/s"


def _joined(cluster: ClusterPlatform) -> str:
    ports = dict.fromkeys(_speed(one.port_bytes_per_second) for one in cluster.types)
    return f"ports of {' or '.join(ports)}" if not cluster.links else f"{len(cluster.links)} links"

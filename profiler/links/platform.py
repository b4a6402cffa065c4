"""From measured links to what planners take: the file of a cluster; and how much parts of networks send."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...executor.engine import Engine
from ...executor.model import Model
from ...executor.progress import Report, silent
from ...formulations.cluster import Link
from ...formulations.cluster_platform import LEAST_SPEED, ClusterPlatform, DeviceType, Speed
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import UnitKind
from ..clusters.measured import profile_devices
from ..profile import Method, ProfileOptions
from ..zoo.tables import table_of
from .fitting import LinkFit, fit_link
from .samples import FIT_SIZES, Links

if TYPE_CHECKING:
    from ...executor.cluster.cluster import Cluster

SHARD_NETWORKS = ("alexnet", "bert", "googlenet", "mobilenetv2", "resnet50", "squeezenet", "vit", "yolov2")
"""Networks whose parts say how large messages are."""

_SPEED_OPTIONS = ProfileOptions(min_repetitions=5, retries=1, checks=0, most_far=2.0)


def measure_devices(
    cluster: Cluster, model: Model, engine: Engine, *, report: Report = silent
) -> tuple[DeviceType, ...]:
    """Return the devices of a cluster with the speed at which each runs a network.

    Raises GaplessError: what a device has met.
    """
    flops = sum(layer.flops or 0 for layer in model.network.layers)
    if flops == 0:
        raise InvalidInputError(
            f"the operations of {model.network.name!r} are not known: take another network"
        )
    names = tuple(cluster.devices)
    preliminary = ClusterPlatform(
        name="devices",
        types=tuple(_device(name, LEAST_SPEED, "") for name in names),
        links=tuple(Link(source=a, target=b, bytes_per_second=1) for a in names for b in names if a < b),
    )
    taken = profile_devices(
        cluster, model, engine, platform=preliminary, options=_SPEED_OPTIONS, report=report
    )
    rows = taken.table(Method.ISOLATED).networks[0].layer_us
    devices = []
    for index, name in enumerate(names):
        us = sum(row[index] or 0 for row in rows)
        unit = cluster.member(name).unit
        share = (
            "" if unit.quota_permille is None else f", emulated by {unit.quota_permille / 10:g} % of its time"
        )
        source = (
            f"Speed measured: {model.network.name} ({flops / 1e9:.2f} GFLOP) took {us / 1000:.1f} ms with "
            f"{engine.name} on {len(unit.cores)} core{'s' * (len(unit.cores) != 1)} of "
            f"{cluster.member(name).device}{share}"
        )
        devices.append(_device(name, max(LEAST_SPEED, flops * 1_000_000 // max(1, us)), source))
    return tuple(devices)


def cluster_platform(links: Links, fits: Sequence[LinkFit] = ()) -> ClusterPlatform:
    """Return the cluster with its measured links as planners take it.

    Parameters
    ----------
    links
        What was measured.
    fits
        Of its links, one each; empty: they are fitted here.

    Raises
    ------
    InvalidInputError
        A link cannot be fitted.
    """
    return ClusterPlatform(
        name=links.name,
        types=links.devices,
        links=tuple(fit.link() for fit in fits or [fit_link(one) for one in links.links]),
        source=links.source,
    )


def shard_sizes(count: int, *, seed: int = 0) -> tuple[int, ...]:
    """Return bytes of what parts of networks of the zoo send on: at cuts drawn from all their legal ones.

    Raises InvalidModelError: the zoo is not installed.
    """
    cuts = [
        size
        for name in SHARD_NETWORKS
        for network in (table_of(name),)
        for size in (network.boundary_bytes[cut] for cut in network.legal_cuts)
        if 0 < size <= FIT_SIZES[-1]
    ]
    return tuple(random.Random(seed).choices(cuts, k=count))


def _device(name: str, flops_per_second: int, source: str) -> DeviceType:
    return DeviceType(
        name=name, kind=UnitKind.CPU, speed=Speed(flops_per_second=flops_per_second), source=source
    )

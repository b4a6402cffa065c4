"""From a network and a cluster to a problem: costs are estimated from operations and bytes, and say so."""

from __future__ import annotations

from dataclasses import replace

from ...formulations.cluster import InnerDevice
from ...formulations.cluster_platform import ClusterPlatform, DeviceType, Speed
from ...formulations.costs import CostTable, NetworkCosts, Provenance
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Network
from ...formulations.problem import Problem
from ...formulations.terms import Objective
from ...formulations.workload import MOST_BATCH
from ..analytic.costs import batched, network_costs
from ..analytic.model import METHOD, AnalyticModel, UnitModel

_NO_LIMIT = 10**9
"""Bytes a microsecond of a memory whose bandwidth is not known: moving bytes is taken to cost nothing."""

_HOW = (
    "A layer takes launch + weights / memory + items x (operations / speed + tensors / memory). What is not "
    "known of a device is an estimate; the sources of its numbers:"
)


def cluster_problem(network: Network, cluster: ClusterPlatform, *, batch: int = 1) -> Problem:
    """Return the problem of running a network over the devices of a cluster, with estimated costs.

    `batch`: inferences that pass the devices together, as one item: costs and tensors are those of the batch.
    As many pipelines as serve most stand side by side; its objective is the throughput.
    """
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= MOST_BATCH:
        raise InvalidInputError(f"the batch is {batch!r}, must be a whole number from 1 to {MOST_BATCH}")
    inner = {one.name: _inner(network, one, batch) for one in cluster.types if one.units}
    columns = {one.name: _column(network, one, inner.get(one.name), batch) for one in cluster.types}
    data = cluster.pipelines()
    item = batched(network, batch)
    return Problem(
        platform=cluster.platform,
        networks=(item,),
        costs=CostTable(
            units=cluster.devices,
            networks=(
                NetworkCosts(
                    network=item.name,
                    layer_us=tuple(zip(*(columns[name] for name in data.types), strict=True)),
                ),
            ),
            batch=batch,
            provenance=provenance_of(cluster),
        ),
        objective=Objective(terms=("throughput",)),
        data=replace(data, inner=tuple(inner.values())),
    )


def provenance_of(cluster: ClusterPlatform) -> Provenance:
    """Return what a reader of estimated costs should know."""
    by_source: dict[str, list[str]] = {}
    for one in cluster.types:
        by_source.setdefault(one.source or "not said", []).append(one.name)
    sources = ". ".join(f"{', '.join(names)}: {source}" for source, names in by_source.items())
    return Provenance(
        source=cluster.source or cluster.name, method=METHOD, estimated=True, notes=f"{_HOW} {sources}"
    )


def _column(
    network: Network, kind: DeviceType, inner: InnerDevice | None, batch: int
) -> tuple[int | None, ...]:
    """Return the time of each layer on a device alone: where it has inner units, on the best of them."""
    if inner is not None:
        rows = inner.costs.layer_us
        return tuple(min((time for time in row if time is not None), default=None) for row in rows)
    assert kind.speed is not None
    model = AnalyticModel(units=(_unit(kind.name, kind.speed),), source="", notes="")
    return tuple(row[0] for row in network_costs(network, model, batch=batch).layer_us)


def _inner(network: Network, kind: DeviceType, batch: int) -> InnerDevice:
    model = AnalyticModel(
        units=tuple(_unit(unit.name, unit.speed, copy_us=unit.copy_us) for unit in kind.units),
        source="",
        notes="",
    )
    return InnerDevice(
        device=kind.name,
        platform=Platform(
            name=kind.name,
            units=tuple(ProcessingUnit(name=unit.name, kind=unit.kind) for unit in kind.units),
        ),
        costs=network_costs(network, model, batch=batch),
    )


def _unit(name: str, speed: Speed, *, copy_us: int = 0) -> UnitModel:
    flops = max(1, speed.flops_per_second // 10**6)
    memory = speed.memory_bytes_per_second
    moved = _NO_LIMIT if memory is None else max(1, memory // 10**6)
    return UnitModel(
        unit=name,
        flops_per_us=flops,
        product_flops_per_us=flops,
        bytes_per_us=moved,
        launch_us=speed.launch_us,
        copy_us=copy_us,
        copy_bytes_per_us=moved,
    )

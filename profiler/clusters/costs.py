"""What a network costs on each device of a cluster: measured there, or estimated."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from ...executor.cluster.cluster import Cluster
from ...executor.engine import Engine
from ...executor.engines.registry import get_engine
from ...executor.graph.choices import Granularity, Simplification
from ...executor.graph.onnx_model import OnnxModel, load_onnx
from ...executor.graph.opening import Opener
from ...executor.model import Model
from ...executor.progress import Report, Step, silent
from ...executor.workers import parse_unit, unit_data
from ...formulations.cluster import InnerDevice
from ...formulations.cluster_platform import ClusterPlatform, DeviceType, Speed
from ...formulations.costs import CostTable, NetworkCosts, Provenance
from ...formulations.errors import InvalidInputError, InvalidModelError
from ...formulations.files import dump, parse
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Network
from ...formulations.problem import Problem
from ...formulations.terms import Objective
from ...formulations.workload import MOST_BATCH
from ..analytic.costs import batched, network_costs
from ..analytic.model import METHOD, AnalyticModel, UnitModel
from ..profile import PROFILE, Method, Profile, ProfileOptions, profile


def take(settings: str, read: Callable[[str], bytes]) -> str:
    """Profile a model on this device, and return the profile as JSON.

    `settings`: JSON: name and granularity of the network, digest of the whole as one piece, the names of its
    layers, for granularity "piece" the layer of each operator by name, the unit (`unit_data`), the engine,
    and what differs from the usual `ProfileOptions`.
    """
    given = json.loads(settings)
    with tempfile.TemporaryDirectory(prefix="gapless-profile-") as folder, Opener() as opener:
        path = Path(folder) / "model.onnx"
        path.write_bytes(read(given["digest"]))
        model = load_onnx(
            str(path),
            granularity=Granularity(given["granularity"]),
            simplification=Simplification(given["simplify"]),
            name=given["network"],
            opener=opener,
            pieces=lambda found: [given["pieces"].get(node.name, -1) for node in found.nodes],
        )
        if list(model.network.layer_names) != given["layers"]:
            raise InvalidModelError(
                f"this device divides {given['network']!r} into other layers: the same version of gapless "
                "must be installed on all devices"
            )
        unit = parse_unit(given["unit"])
        taken = profile(
            model,
            Platform(name=unit.name, units=(unit,)),
            get_engine(given["engine"]),
            methods=(Method.ISOLATED,),
            options=ProfileOptions(**given["options"]),
        )
    return dump(taken, PROFILE)


Entry = TypeVar("Entry")


def profile_devices(
    cluster: Cluster,
    model: Model,
    engine: Engine,
    *,
    platform: ClusterPlatform,
    options: ProfileOptions = ProfileOptions(),
    report: Report = silent,
) -> Profile:
    """Measure every layer of a model on every device of a cluster, each alone.

    Devices of one machine are measured one after the other, those of several machines side by side.

    Parameters
    ----------
    cluster
        The devices at work.
    model, engine
        What is run, and by what; an ONNX model.
    platform
        The cluster as it is planned for; it names the same devices.
    options
        How long to measure.
    report
        Told of each device.

    Returns
    -------
    Profile
        Its units are the devices.

    Raises
    ------
    InvalidInputError
        The cluster does not have the devices of the platform, or the model is not one ONNX file.
    GaplessError
        What a device has met.
    """
    missing = [name for name in platform.devices if name not in cluster.devices]
    if missing:
        raise InvalidInputError(
            f"the platform {platform.name!r} has {', '.join(missing)}, the cluster only "
            f"{', '.join(cluster.devices)}"
        )
    machines: dict[str, list[str]] = {}
    for name in platform.devices:
        machines.setdefault(cluster.member(name).address[0], []).append(name)
    settings, pieces = _settings(model, engine, options)

    def measured(names: list[str]) -> list[tuple[str, Profile]]:
        found = []
        for name in names:
            report(Step(text=f"profiling {model.network.name} on {name}"))
            given = {**settings, "unit": unit_data(cluster.member(name).unit)}
            answer = cluster.do(name, take, given, pieces)
            found.append((name, parse(json.dumps(answer).encode(), PROFILE, name=f"the profile of {name}")))
        return found

    with ThreadPoolExecutor(max_workers=len(machines)) as pool:
        by_device = dict(entry for some in pool.map(measured, machines.values()) for entry in some)
    return _joined(model, platform, [by_device[name] for name in platform.devices])


def cluster_costs(profile: Profile, platform: ClusterPlatform) -> Problem:
    """Return the problem of running a profiled network over the devices; its objective is the throughput."""
    return Problem(
        platform=platform.platform,
        networks=(profile.network,),
        costs=profile.table(Method.ISOLATED),
        objective=Objective(terms=("throughput",)),
        data=platform.pipelines(),
    )


def _settings(model: Model, engine: Engine, options: ProfileOptions) -> tuple[Mapping[str, Any], Any]:
    network = model.network
    pieces = model.pieces(0, len(network.layers))
    if len(pieces) != 1 or pieces[0].content.kind != "onnx":
        raise InvalidInputError(f"{network.name!r} is not one ONNX model: profile its parts one by one")
    return {
        "network": network.name,
        "granularity": network.models[0].granularity,
        "simplify": network.models[0].simplify,
        "pieces": _homes(model) if isinstance(model, OnnxModel) else {},
        "digest": pieces[0].digest,
        "layers": list(network.layer_names),
        "engine": engine.name,
        "options": asdict(options),
    }, pieces


def _homes(model: OnnxModel) -> dict[str, int]:
    """Return the layer of each operator, by its name among those of the spatial network."""
    layers = model.cutter.layers
    nodes = model.spatial().nodes[len(model.inputs) :]
    return {nodes[index].name: place for place, members in enumerate(layers) for index in members}


def _joined(model: Model, platform: ClusterPlatform, profiles: list[Profile]) -> Profile:
    """Return the profiles of single devices as one of the cluster."""
    tables = [profile.table(Method.ISOLATED) for profile in profiles]
    columns = [table.networks[0] for table in tables]
    first = tables[0].provenance
    machines = dict.fromkeys(table.provenance.device for table in tables)
    return replace(
        profiles[0],
        network=model.network,
        platform=platform.platform,
        tables=(
            CostTable(
                units=platform.devices,
                networks=(
                    NetworkCosts(
                        network=model.network.name,
                        layer_us=_beside(column.layer_us for column in columns),
                        transfer_in_us=_beside(column.transfer_in_us for column in columns),
                        transfer_out_us=_beside(column.transfer_out_us for column in columns),
                    ),
                ),
                provenance=replace(first, device="; ".join(machines)),
            ),
        ),
        fits=_all(profile.fits for profile in profiles),
        measured=_all(profile.measured for profile in profiles),
        checks=_all(profile.checks for profile in profiles),
        receipts=_all(profile.receipts for profile in profiles),
        warnings=_all(profile.warnings for profile in profiles),
        seconds=sum(profile.seconds for profile in profiles),
    )


def _beside(tables: Iterable[tuple[tuple[Entry, ...], ...]]) -> tuple[tuple[Entry, ...], ...]:
    """Return tables of one column each as one table."""
    return tuple(tuple(row[0] for row in rows) for rows in zip(*tables, strict=True))


def _all(parts: Iterable[tuple[Entry, ...]]) -> tuple[Entry, ...]:
    return tuple(entry for part in parts for entry in part)


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

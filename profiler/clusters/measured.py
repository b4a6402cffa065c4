"""What a network costs on each device of a cluster, measured there."""

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
from ...formulations.cluster_platform import ClusterPlatform
from ...formulations.costs import CostTable, NetworkCosts
from ...formulations.errors import InvalidInputError, InvalidModelError
from ...formulations.files import dump, parse
from ...formulations.hardware import Platform
from ...formulations.problem import Problem
from ...formulations.terms import Objective
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

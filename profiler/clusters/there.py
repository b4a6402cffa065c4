"""What a device of a cluster does when its costs are measured: it profiles a model that was brought to it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from ...executor.engines.registry import get_engine
from ...executor.graph.choices import Simplification
from ...executor.graph.grouping import Granularity
from ...executor.graph.onnx_model import load_onnx
from ...executor.graph.opening import Opener
from ...executor.workers import parse_unit
from ...formulations.errors import InvalidModelError
from ...formulations.files import dump
from ...formulations.hardware import Platform
from ..profile import PROFILE, Method, ProfileOptions, profile


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

"""Small exports, and running them without gapless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from gapless.executor.export.folder import Exported, Order, draw, write_export
from gapless.executor.export.kinds import ExportKind
from gapless.executor.export.manifest import Predicted
from gapless.executor.graph.choices import Granularity
from gapless.executor.model import Model
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.deployment import Deployment
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.formulations.plan import Chunk, Plan
from tests.executor.graph.models import load, model, node, value, weights

Arrays = Mapping[str, NDArray[Any]]

ALONE = """
import runpy, sys
for name in sys.argv.pop(1).split(","):
    sys.modules[name] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program in which some modules cannot be imported."""


def skipping() -> ModelProto:
    """Return four convolutions; what the first one makes is used by the last one, and is an output."""
    names = ("a", "b", "c", "d")
    nodes = [
        node("Conv", f"{before} {after}_w", after, pads=[1, 1, 1, 1])
        for before, after in zip(("x", *names), names, strict=False)
    ]
    nodes[3] = node("Add", "c a", "d")
    shapes = {f"{name}_w": (4, 3 if name == "a" else 4, 3, 3) for name in names[:3]}
    outputs = [value("d", [1, 4, 8, 8]), value("a", [1, 4, 8, 8])]
    return model(nodes, [value("x", [1, 3, 8, 8])], outputs, weights(**shapes))


def opened(proto: ModelProto, folder: Path, name: str) -> Model:
    """Return a model, each operator of which is a layer."""
    place = folder / f"{name}-model"
    place.mkdir()
    return load(proto, place, name=name, granularity=Granularity.OPERATOR)


def units(*names: str, **options: Any) -> Platform:
    """Return units that take turns on the usable cores."""
    usable = sorted(os.sched_getaffinity(0))
    settings = {"kind": UnitKind.CPU, "threads": 1, **options}
    return Platform(
        name="here",
        units=tuple(
            ProcessingUnit(name=name, cores=(usable[index % len(usable)],), **settings)
            for index, name in enumerate(names)
        ),
    )


def chunks(network: str, *parts: tuple[int, str]) -> tuple[Chunk, ...]:
    """Return the chunks of a network from (stop, unit)."""
    starts = [0, *(stop for stop, _ in parts)]
    return tuple(
        Chunk(network=network, start=start, stop=stop, unit=unit)
        for start, (stop, unit) in zip(starts, parts, strict=False)
    )


def write(
    folder: Path,
    deployment: Deployment | Sequence[Chunk],
    *models: Model,
    kind: ExportKind = ExportKind.ONNXRUNTIME,
    engine: str = "onnxruntime",
    platform: Platform | None = None,
) -> Exported:
    """Export some chunks, or a deployment, for the units a, b, c."""
    runs = deployment if isinstance(deployment, Deployment) else deploy(Plan(chunks=tuple(deployment)))
    order = Order(
        kind=kind,
        engine=engine,
        deployment=runs,
        models={model.network.name: model for model in models},
        platform=platform or units("a", "b", "c"),
        gapless="0",
        plan_id=None,
        problem="",
        predicted=Predicted(period_us=1000, latency_us=None, makespan_us=None, engine="", device=""),
        chunk_us=tuple((None,) * len(stream.chunks) for stream in runs.streams),
    )
    return write_export(draw(order), folder)


def run(
    folder: Path, *words: str | Path, without: Sequence[str] = ("gapless",)
) -> subprocess.CompletedProcess[str]:
    """Run the runner of an export elsewhere, where some modules cannot be imported."""
    argv = [sys.executable, "-I", "-c", ALONE, ",".join(without), folder / "run.py", *words]
    return subprocess.run(
        [str(word) for word in argv], capture_output=True, text=True, check=False, cwd="/", timeout=120
    )


def ran(folder: Path, *words: str | Path) -> dict[str, Any]:
    """Run it, and return the document that it prints."""
    done = run(folder, "--json", *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def save_frames(path: Path, frames: Sequence[Arrays]) -> Path:
    """Write inputs of several requests."""
    with path.open("wb") as file:
        np.savez(file, **{name: np.stack([frame[name] for frame in frames]) for name in frames[0]})  # type: ignore[arg-type]
    return path

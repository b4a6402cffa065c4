"""What cutting costs a quantised network: the uncut file and two chunks, in turns on one core."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import onnx
from rich.table import Table

import gapless
from benchmarks.printing import titled
from gapless.executor.engine import Session, artifact_of
from gapless.executor.engines.ort_engine import OrtEngine
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.formulations.hardware import ProcessingUnit, UnitKind

from . import quantised

if TYPE_CHECKING:
    from gapless.executor.model import Arrays

BLOCKS, CHANNELS, SIZE = 8, 64, 128
TRIED = 4
"""Cuts that are tried, besides the uncut file."""


def costs_of_cutting(folder: Path, *, rounds: int) -> Table:
    """Return the times of a quantised network, uncut and cut in two."""
    path = folder / "int8.onnx"
    onnx.save(quantised.static_with_pairs(BLOCKS, CHANNELS, SIZE), path)
    model = gapless.open_model(path)
    assert isinstance(model, OnnxModel)
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    unit = ProcessingUnit(name=f"core{core}", kind=UnitKind.CPU, threads=1)
    end = len(model.network.layers)
    cuts = [round(end * (place + 1) / (TRIED + 1)) for place in range(TRIED)]
    with ExitStack() as stack:
        ways = {"uncut file": [_uncut(model, path, unit)]}
        ways |= {f"cut before layer {cut}": _chunks(model, [0, cut, end], unit) for cut in cuts}
        for sessions in ways.values():
            for session in sessions:
                stack.callback(session.close)
        samples = _in_turns(ways, model.sample_inputs(0), rounds)
    table = titled(
        f"int8, {len(model.graph.operators)} operators in {end} layers, {rounds} rounds in turns on one core",
        "way",
        "ms",
        "over the uncut file (median of the rounds)",
    )
    base = samples["uncut file"]
    for way, found in samples.items():
        ratio = median(own / other for own, other in zip(found, base, strict=True))
        table.add_row(way, f"{median(found):.2f}", f"{ratio:.3f}")
    return table


def _uncut(model: OnnxModel, path: Path, unit: ProcessingUnit) -> Session:
    engine = OrtEngine()
    (whole,) = model.pieces(0, len(model.network.layers))
    return engine.open(artifact_of(whole, engine=engine.name, path=path), unit)


def _chunks(model: OnnxModel, cuts: Sequence[int], unit: ProcessingUnit) -> list[Session]:
    engine = OrtEngine()
    pieces = [model.pieces(start, stop)[0] for start, stop in pairwise(cuts)]
    return [engine.open(artifact, unit) for artifact in engine.prepare(pieces)]


def _in_turns(ways: Mapping[str, Sequence[Session]], inputs: Arrays, rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of each way in each round, after one round that does not count."""
    kept = {spec.name: spec.empty() for way in ways.values() for s in way for spec in s.artifact.outputs}
    samples: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds + 1):
        for way, sessions in ways.items():
            samples[way].append(_run(sessions, {**kept, **inputs}))
    return {way: found[1:] for way, found in samples.items()}


def _run(sessions: Sequence[Session], tensors: Arrays) -> float:
    started = time.perf_counter()
    for session in sessions:
        session.copy_in([tensors[spec.name] for spec in session.artifact.inputs])
        session.run()
        session.copy_out([tensors[spec.name] for spec in session.artifact.outputs])
    return 1000 * (time.perf_counter() - started)

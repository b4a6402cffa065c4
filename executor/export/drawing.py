"""What goes into an exported folder: the manifest and all other files, before anything is written."""

from __future__ import annotations

import ast
import hashlib
import io
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform
from ...formulations.plan import Chunk
from ..engines.mnn_engine import MnnEngine
from ..engines.ort_engine import OrtEngine
from ..model import Model, Piece, TensorSpec, allowed_error, is_quantised
from ..names import distinct
from .frames import write_npz
from .kinds import ExportKind
from .manifest import (
    RUNNER_NAME,
    SCRIPT_NAME,
    ExportedChunk,
    ExportedNetwork,
    ExportedRounds,
    ExportedStep,
    ExportedStream,
    ExportedTensor,
    ExportedTurn,
    ExportedUnit,
    Manifest,
    Predicted,
    TakenTensor,
)
from .settings import exported_unit

if TYPE_CHECKING:
    from ..model import Arrays


_RUN = f'"$PYTHON" {RUNNER_NAME}'


def script_for(manifest: Manifest) -> str:
    """Return the script."""
    users = [{chunk.unit for chunk in stream.chunks} for stream in manifest.streams]
    shared = [unit.name for unit in manifest.units if sum(unit.name in units for units in users) > 1]
    if shared:
        raise InvalidInputError(
            f"{', '.join(shared)} serve several requests in the order of the plan, which processes that are "
            f"pinned by taskset do not keep: export --to {manifest.engine}, whose {RUNNER_NAME} keeps it"
        )
    what = ", ".join(network.name for network in manifest.networks)
    head = [
        "#!/bin/sh",
        f"# {_comment(what)} on {_comment(manifest.platform)}, deployment {manifest.deployment_id}:",
        "# a process for each chunk, connected by pipes. REQUESTS and PYTHON can be set from outside.",
        "# Exit code: that of the last process, 6 where numbers are wrong.",
        'cd "$(dirname "$0")" || exit 2',
        "PYTHON=${PYTHON:-python3} REQUESTS=${REQUESTS:-100}",
    ]
    units = {unit.name: unit for unit in manifest.units}
    emulated = [unit for unit in manifest.units if unit.quota_permille is not None]
    several = len(manifest.streams) > 1
    blocks = [
        _pipeline(stream, units, f" --stream {shlex.quote(stream.name)}" if several else "")
        for stream in manifest.streams
    ]
    if not several:
        return "\n".join([*head, *map(_quota, emulated), *blocks[0]]) + "\n"
    # Every stream runs by itself; what fails last is told.
    tail = ["CODE=0", 'for JOB in $JOBS; do wait "$JOB" || CODE=$?; done', 'exit "$CODE"']
    sides = [line for block in blocks for line in ("{", *block, '} & JOBS="$JOBS $!"')]
    return "\n".join([*head, "JOBS=", *map(_quota, emulated), *sides, *tail]) + "\n"


def _pipeline(stream: ExportedStream, units: dict[str, ExportedUnit], which: str) -> list[str]:
    lines = [f'{_RUN}{which} --feed --requests "$REQUESTS" |']
    for chunk in stream.chunks:
        cores = ",".join(map(str, units[chunk.unit].cores))
        pinned = f"taskset -c {cores} " if cores else ""
        lines.append(f"{pinned}{_RUN}{which} --chunk {chunk.number} --no-pin |")
    return [*lines, f"{_RUN}{which} --collect"]


def _quota(unit: ExportedUnit) -> str:
    share = (unit.quota_permille or 0) * max(1, len(unit.cores)) / 10
    return (
        f"# {_comment(unit.name)} was emulated by a quota, which nothing sets here; put this before its "
        f"taskset, as root: systemd-run --scope --quiet -p CPUQuota={share:g}%"
    )


def _comment(text: str) -> str:
    """Return a name that cannot end a comment."""
    return " ".join(text.split())


PARTS = ("sessions", "crews", "../comparing", "frames", "runner")
"""Modules, seen from this folder, lowest first; `run.py --help` shows the docstring of the last one."""


def runner_source() -> str:
    """Return the source of `run.py`."""
    modules = [_Part((Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")) for name in PARTS]
    guarded = dict.fromkeys(block for part in modules for block in part.guarded)
    head = [modules[-1].docstring, *_imports([node for part in modules for node in part.imports]), *guarded]
    bodies = [part.body.strip("\n") for part in modules]
    return "#!/usr/bin/env python3\n" + "\n\n".join(head) + "".join(f"\n\n\n{body}" for body in bodies) + "\n"


class _Part:
    """One module, taken apart."""

    def __init__(self, source: str) -> None:
        lines = source.splitlines()
        docstring, *nodes = ast.parse(source).body
        self.docstring = _text(lines, docstring)
        self.imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        guards = [node for node in nodes if _is_guard(node)]
        self.guarded = [_text(lines, node) for node in guards]
        last = max(node.end_lineno or 0 for node in (*self.imports, *guards))
        self.body = "\n".join(lines[last:])


def _imports(nodes: Sequence[ast.Import | ast.ImportFrom]) -> list[str]:
    """Return blocks of imports: the future, the standard library, numpy; each module once."""
    plain = {ast.unparse(node) for node in nodes if isinstance(node, ast.Import)}
    names: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.setdefault(node.module, set()).update(alias.name for alias in node.names)
    future = f"from __future__ import {', '.join(names.pop('__future__'))}"
    numpy = {line for line in plain if "numpy" in line}
    found = [f"from {module} import {', '.join(sorted(own))}" for module, own in sorted(names.items())]
    return [future, "\n".join([*sorted(plain - numpy), *found]), *numpy]


def _is_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _text(lines: list[str], node: ast.stmt) -> str:
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])


SAMPLES = 3
"""Different inputs of each network that an export holds."""

_LONGEST_STEM = 80
_SUFFIXES = {"onnxruntime": ".onnx", "mnn": ".mnn"}

Content = Callable[[], bytes]
"""Gives the content of a file when it is written: models are large."""

Contents = dict[str, Content]
"""By the name of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be exported.

    `kind`, `engine`: to what, and for which engine ("onnxruntime" or "mnn"). `deployment`, `models`,
    `platform`: what runs, the networks by name, and the units. `gapless`, `plan_id`, `problem`, `predicted`,
    `chunk_us`: for the manifest, as there; the time of each chunk by stream.
    """

    kind: ExportKind
    engine: str
    deployment: Deployment
    models: Mapping[str, Model]
    platform: Platform
    gapless: str
    plan_id: str | None
    problem: str
    predicted: Predicted
    chunk_us: Sequence[Sequence[int | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """An export that can be written."""

    manifest: Manifest  # its `files` are still empty: digests are known when the files are
    contents: Contents  # all other files by name
    notes: tuple[str, ...]  # what the user should know


def draw(order: Order) -> Drawing:
    """Return what an export holds.

    Raises ConversionError, EngineUnavailableError: MNN cannot convert a chunk, or is not there.
    """
    if order.deployment.is_divided:
        raise InvalidInputError(
            f"[{order.deployment}] cannot be exported: several units compute tiles of one chunk, which only "
            "gapless itself runs; export a plan in which each chunk has one unit"
        )
    if any(stream.order or stream.dataflow for stream in order.deployment.streams):
        raise InvalidInputError(
            f"[{order.deployment}] cannot be exported: its layers run in another order than its network's, "
            "which only gapless itself does; export a plan that was made with --layer-order fixed"
        )
    if any(stream.states for stream in order.deployment.streams):
        raise InvalidInputError(
            f"[{order.deployment}] cannot be exported: its requests leave states behind (--state), which "
            "only gapless itself hands on; export a plan without"
        )
    platform = {unit.name: unit for unit in order.platform.units}
    units = tuple(exported_unit(platform[name], order.engine, order.kind) for name in order.deployment.units)
    pieces = _pieces(order)
    files = _file_names(pieces, _SUFFIXES[order.engine])
    networks, samples, notes = _networks(order)
    manifest = Manifest(
        kind=order.kind,
        engine=order.engine,
        gapless=order.gapless,
        plan_id=order.plan_id,
        deployment_id=order.deployment.deployment_id,
        problem=order.problem,
        platform=order.platform.name,
        predicted=order.predicted,
        tolerance=max(
            allowed_error(order.models[name].network, [unit.precision for unit in units])
            for name in order.deployment.networks
        ),
        quantised=any(is_quantised(order.models[name].network) for name in order.deployment.networks),
        units=units,
        networks=networks,
        streams=tuple(_stream(order, index, pieces, files) for index in range(len(order.deployment.streams))),
        rounds=_rounds(order.deployment),
        files={},
    )
    contents = {**_model_contents(order, pieces, files), **samples, RUNNER_NAME: _runner}
    if order.kind is ExportKind.TASKSET:
        script = script_for(manifest)
        contents[SCRIPT_NAME] = script.encode
    return Drawing(manifest=manifest, contents=contents, notes=tuple(notes))


def _rounds(deployment: Deployment) -> ExportedRounds | None:
    rounds, names = deployment.rounds, [stream.name for stream in deployment.streams]
    if rounds is None:
        return None
    turns = deployment.turns if rounds.order else ()
    return ExportedRounds(
        mode=str(rounds.mode),
        task_slots=rounds.task_slots,
        turns=tuple(ExportedTurn(stream=names[stream], chunk=chunk) for stream, chunk in turns),
    )


def _runner() -> bytes:
    return runner_source().encode()


def _pieces(order: Order) -> dict[Chunk, tuple[Piece, ...]]:
    found = {}
    for chunk in (chunk for stream in order.deployment.streams for chunk in stream.chunks):
        found[chunk] = order.models[chunk.network].pieces(chunk.start, chunk.stop)
        if any(piece.content.kind != "onnx" for piece in found[chunk]):
            raise InvalidInputError(
                f"network {chunk.network!r} holds Python functions, which have no ONNX form: it cannot be "
                f"exported; run it with `gapless run`, or with gapless.open_pipeline"
            )
    return found


def _file_names(pieces: Mapping[Chunk, Sequence[Piece]], suffix: str) -> dict[str, str]:
    """Return a file name for each piece, by digest: its network, its layers, and the units that run it."""
    stems: dict[str, str] = {}
    units: dict[str, dict[str, None]] = {}
    for chunk, some in pieces.items():
        for number, piece in enumerate(some):
            part = f".{number}" if len(some) > 1 else ""
            stems.setdefault(piece.digest, f"{chunk.network}.{chunk.start}-{chunk.stop - 1}{part}")
            units.setdefault(piece.digest, {})[chunk.unit] = None
    named = (_file_stem(f"{stem}.{'+'.join(units[digest])}") for digest, stem in stems.items())
    return {digest: name + suffix for digest, name in zip(stems, distinct(named), strict=True)}


def _file_stem(text: str) -> str:
    """Return a text as a name that every file system and shell takes; names in models may hold anything."""
    plain = re.sub(r"[^A-Za-z0-9._+-]+", "_", text).strip("._-+")[:_LONGEST_STEM]
    return plain if plain == text else f"{plain or 'network'}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _model_contents(
    order: Order, pieces: Mapping[Chunk, Sequence[Piece]], files: Mapping[str, str]
) -> Contents:
    unique = {piece.digest: piece for some in pieces.values() for piece in some}
    if order.engine != "mnn":
        return {files[digest]: piece.content.read for digest, piece in unique.items()}
    artifacts = MnnEngine().prepare(tuple(unique.values()))
    return {files[made.digest]: Path(made.path).read_bytes for made in artifacts}


def _networks(order: Order) -> tuple[tuple[ExportedNetwork, ...], Contents, list[str]]:
    """Return the networks, the files of their samples, and what is missing among them."""
    known: list[ExportedNetwork] = []
    contents: Contents = {}
    checked = OrtEngine().availability()
    for name in order.deployment.networks:
        model, stem = order.models[name], _file_stem(name)
        frames = [model.sample_inputs(1 + seed) for seed in range(SAMPLES)]
        sample, expected = f"{stem}.sample.npz", f"{stem}.expected.npz" if checked.ok else None
        contents[sample] = partial(_npz, frames)
        if expected is not None:
            contents[expected] = partial(_npz, [model.reference(frame) for frame in frames])
        known.append(
            ExportedNetwork(
                name=name,
                inputs=tuple(map(_tensor, model.inputs)),
                outputs=tuple(map(_tensor, model.outputs)),
                sample=sample,
                expected=expected,
            )
        )
    notes = [] if checked.ok else [f"run.py cannot check its numbers: {checked.reason}"]
    return tuple(known), contents, notes


def _npz(frames: Sequence[Arrays]) -> bytes:
    import numpy as np

    buffer = io.BytesIO()
    write_npz(buffer, {name: np.stack([frame[name] for frame in frames]) for name in frames[0]})
    return buffer.getvalue()


def _stream(
    order: Order, index: int, pieces: Mapping[Chunk, tuple[Piece, ...]], files: Mapping[str, str]
) -> ExportedStream:
    stream, rounds = order.deployment.streams[index], order.deployment.rounds
    model = order.models[stream.network]
    flow = _Flow(model, [pieces[chunk] for chunk in stream.chunks])
    return ExportedStream(
        name=stream.name,
        network=stream.network,
        slots=stream.slots,
        arrival_us=0 if rounds is None else rounds.arrivals_us[index],
        chunks=tuple(
            ExportedChunk(
                number=number,
                start=chunk.start,
                stop=chunk.stop,
                unit=chunk.unit,
                predicted_us=order.chunk_us[index][number],
                steps=tuple(_step(piece, files[piece.digest]) for piece in pieces[chunk]),
                takes=flow.takes(number),
                gives=flow.gives(number),
                alive=flow.alive(number),
            )
            for number, chunk in enumerate(stream.chunks)
        ),
    )


def _step(piece: Piece, file: str) -> ExportedStep:
    return ExportedStep(
        file=file,
        prefix=piece.prefix,
        inputs=tuple(spec.name for spec in piece.inputs),
        outputs=tuple(spec.name for spec in piece.outputs),
    )


def _tensor(spec: TensorSpec) -> ExportedTensor:
    return ExportedTensor(name=spec.name, shape=spec.shape, dtype=spec.dtype)


class _Flow:
    """Which tensors go from where to where in a stream."""

    def __init__(self, model: Model, chunks: Sequence[Sequence[Piece]]) -> None:
        self._outputs = [spec.name for spec in model.outputs]
        self._specs = {spec.name: spec for spec in model.inputs}
        self._source: dict[str, int | None] = dict.fromkeys(self._specs)
        self._takes: list[list[str]] = []
        for number, pieces in enumerate(chunks):
            taken: dict[str, None] = {}
            for piece in pieces:
                own = (piece.prefix + spec.name for spec in piece.inputs)
                taken |= dict.fromkeys(name for name in own if self._source[name] != number)
                made = {piece.prefix + spec.name: spec for spec in piece.outputs}
                self._specs |= {name: replace(spec, name=name) for name, spec in made.items()}
                self._source |= dict.fromkeys(made, number)
            self._takes.append(list(taken))

    def takes(self, chunk: int) -> tuple[TakenTensor, ...]:
        specs = (self._specs[name] for name in self._takes[chunk])
        return tuple(
            TakenTensor(name=spec.name, shape=spec.shape, dtype=spec.dtype, source=self._source[spec.name])
            for spec in specs
        )

    def gives(self, chunk: int) -> tuple[ExportedTensor, ...]:
        return tuple(_tensor(self._specs[name]) for name, source in self._source.items() if source == chunk)

    def alive(self, chunk: int) -> tuple[str, ...]:
        """Return what is made before a chunk, and used there or later."""
        used = {*self._outputs, *(name for taken in self._takes[chunk:] for name in taken)}
        return tuple(
            n for n, source in self._source.items() if n in used and (source is None or source < chunk)
        )

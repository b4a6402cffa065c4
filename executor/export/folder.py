"""Exported folders: the manifest and all other files, written at once, and never over somebody else's."""

from __future__ import annotations

import ast
import hashlib
import io
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidInputError
from ...formulations.files import dump, load, save
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.plan import Chunk
from ..comparing import RANDOM
from ..engines.mnn_engine import WORDS, MnnEngine, backend_name
from ..engines.ort_engine import PROVIDERS, OrtEngine
from ..model import Model, Piece, TensorSpec, allowed_error, decision_of, is_quantised
from ..names import distinct
from ..runner import UNCHECKED, Verification
from .frames import write_npz
from .kinds import ExportKind
from .manifest import (
    EXPORT,
    MANIFEST_NAME,
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
    MnnSettings,
    OrtSettings,
    Predicted,
    TakenTensor,
)

if TYPE_CHECKING:
    from ..model import Arrays

_MOST_BACKENDS = 64
"""Above every number by which MNN reports a backend."""

Settings = OrtSettings | MnnSettings


def ort_settings(unit: ProcessingUnit) -> OrtSettings | None:
    """Return what the engine "onnxruntime" asks for on a unit; None: it has no such backend."""
    provider = PROVIDERS.get(unit.engine.backend)
    if provider is None:
        return None
    return OrtSettings(
        providers=(provider,),
        intra_op_num_threads=unit.threads or 1,
        inter_op_num_threads=1,
        execution_mode="ORT_SEQUENTIAL",
        config={"session.intra_op.allow_spinning": "0"},
    )


def mnn_settings(unit: ProcessingUnit) -> MnnSettings | None:
    """Return what the engine "mnn" asks for on a unit; None: it has no such backend."""
    asked = unit.engine
    if asked.backend not in WORDS:
        return None
    config: dict[str, str | int] = {
        "backend": WORDS[asked.backend],
        "precision": asked.precision.value,
        "memory": asked.memory.value,
    }
    if asked.backend == "cpu":
        config["numThread"] = unit.threads or 1
    granted = (number for number in range(_MOST_BACKENDS) if backend_name(number) == asked.backend)
    return MnnSettings(config=config, granted=tuple(granted))


_SETTINGS: dict[str, Callable[[ProcessingUnit], Settings | None]] = {
    "onnxruntime": ort_settings,
    "mnn": mnn_settings,
}
ENGINES = tuple(_SETTINGS)
"""Engines whose files can be exported."""


def exported_unit(unit: ProcessingUnit, engine: str, kind: ExportKind) -> ExportedUnit:
    """Return a unit with the settings of its sessions.

    `kind`: plain ONNX files are for any runtime, so there a unit may be one that the engine cannot drive.
    """
    session = _SETTINGS[engine](unit)
    if session is None and kind is not ExportKind.ONNX:
        raise InvalidInputError(
            f"unit {unit.name!r} asks for the backend {unit.engine.backend!r}, which {engine} does not have: "
            "export to another engine, or --to onnx for the models alone"
        )
    return ExportedUnit(
        name=unit.name,
        kind=str(unit.kind),
        cores=unit.cores,
        threads=unit.threads,
        quota_permille=unit.quota_permille,
        backend=unit.engine.backend,
        precision=unit.engine.precision.value,
        memory=unit.engine.memory.value,
        session=session,
    )


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
                random=tuple(spec.name for spec in model.outputs if _is_random(model, spec.name)),
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


def _is_random(model: Model, output: str) -> bool:
    decision = decision_of(model, output)
    return decision is not None and decision.kind == RANDOM


def _step(piece: Piece, file: str) -> ExportedStep:
    return ExportedStep(
        file=file,
        prefix=piece.prefix,
        inputs=tuple(spec.name for spec in piece.inputs),
        outputs=tuple(spec.name for spec in piece.outputs),
        most=piece.most,
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


_EXECUTABLE = (RUNNER_NAME, SCRIPT_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """An export that was written."""

    folder: Path
    manifest: Manifest  # its content, digests included
    bytes: dict[str, int]  # size of each file by name, the manifest among them
    notes: tuple[str, ...] = ()  # what the user should know


def load_manifest(folder: str | Path) -> Manifest:
    """Read the manifest of an exported folder; errors as for `formulations.files.load`."""
    return load(Path(folder) / MANIFEST_NAME, EXPORT)


def changed_files(folder: str | Path) -> tuple[str, ...]:
    """Return the files of an export that are missing, or not as its manifest says."""
    place = Path(folder)
    files = load_manifest(place).files
    return tuple(name for name, digest in files.items() if _digest_of(place / name) != digest)


def require_free(folder: Path) -> None:
    """Refuse a folder that an export may not be written to: one that holds something else."""
    if not os.path.lexists(folder):
        if not folder.absolute().parent.is_dir():
            raise InvalidInputError(f"cannot write {folder}: the folder {folder.parent} does not exist")
        return
    if not folder.is_dir():
        raise InvalidInputError(f"cannot write {folder}: it is a file, and a folder is needed")
    if not any(folder.iterdir()):
        return
    if not (folder / MANIFEST_NAME).exists():
        raise InvalidInputError(
            f"{folder} holds files, but no {MANIFEST_NAME} of an older export: name a new or empty folder"
        )
    edited = [name for name in changed_files(folder) if os.path.lexists(folder / name)]
    if edited:
        raise InvalidInputError(
            f"{', '.join(edited)} in {folder} changed since the last export, and would be overwritten: "
            "name another folder, or move them away"
        )


Check = Callable[[Path, Manifest], Verification]
"""Compares the numbers of an export that lies in a folder."""


def write_export(drawing: Drawing, folder: Path, check: Check | None = None) -> Exported:
    """Write an export; one that is there already is replaced, and what else lies beside it stays.

    Before it is put there, it is checked; None: it is not, and the manifest says so.
    """
    require_free(folder)
    try:
        with _workshop(folder) as place:
            files = {}
            for name, content in drawing.contents.items():
                (place / name).write_bytes(content())
                (place / name).chmod(0o755 if name in _EXECUTABLE else 0o644)
                files[name] = _digest_of(place / name) or ""
            manifest = replace(drawing.manifest, files=files, numbers=UNCHECKED)
            save(dump(manifest, EXPORT), place / MANIFEST_NAME)
            if check is not None:
                manifest = replace(manifest, numbers=check(place, manifest).words)
                save(dump(manifest, EXPORT), place / MANIFEST_NAME)
            sizes = {name: (place / name).stat().st_size for name in (*files, MANIFEST_NAME)}
            _put(place, folder, [*files, MANIFEST_NAME])
    except OSError as error:
        raise InvalidInputError(f"cannot write {folder}: {error.strerror or error}") from error
    return Exported(folder=folder, manifest=manifest, bytes=sizes, notes=drawing.notes)


@contextmanager
def _workshop(folder: Path) -> Iterator[Path]:
    """Yield a new folder on the same disk, which is gone afterwards unless it was renamed."""
    beside = folder if folder.is_dir() else folder.absolute().parent
    place = Path(tempfile.mkdtemp(dir=beside, prefix=".gapless-export-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _put(place: Path, folder: Path, names: list[str]) -> None:
    """Move an export to where it belongs: at once where nothing is there, else file by file.

    The manifest comes last: until then the runner refuses files that are not those of the older one.
    """
    if not folder.is_dir():
        place.chmod(0o755)
        os.replace(place, folder)
        return
    old = set(load_manifest(folder).files) - set(names) if (folder / MANIFEST_NAME).exists() else set()
    for name in names:
        os.replace(place / name, folder / name)
    for name in old:
        (folder / name).unlink(missing_ok=True)


def _digest_of(path: Path) -> str | None:
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return None

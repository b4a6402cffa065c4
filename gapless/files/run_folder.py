"""Run folders: what `gapless tune` and `gapless profile` leave in one place, and what to do with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..executor.tuning.result import TuningResult
from ..formulations.errors import InvalidInputError
from ..formulations.json_files import format_of
from .formats import file_format
from .run_document import RUN_FILE, SWEEP_STORE_FILE, RunDocument, RunState, read_run, run_file
from .runs import tuning_of

MAX_ENTRIES = 60

_OTHERS = {".html": "a page for a browser, e.g. of `gapless report`", ".svg": "a picture"}
"""Files that no run writes and that are no JSON, by their ending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderEntry:
    """One file."""

    name: str
    size_bytes: int
    what: str  # what it is, in words
    kind: str | None = None  # the format that it says; None: it is no JSON document of gapless
    broken: bool = False  # whether it cannot be read; `what` says why


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A run folder."""

    path: str
    entries: tuple[FolderEntry, ...]  # its files, by name
    run: RunDocument | None  # what run it holds; None: it does not say
    tuning: TuningResult | None
    notes: tuple[str, ...]  # what is remarkable
    following: tuple[tuple[str, str], ...]  # commands that make sense now, and what for


def refuse_sweep(folder: Path) -> None:
    """Refuse a folder of many plans, with what can be looked at in it."""
    if (folder / SWEEP_STORE_FILE).exists():
        shown = [str(path) for ending in ("html", "csv") for path in sorted(folder.glob(f"*.{ending}"))]
        raise InvalidInputError(
            f"{folder} is a folder of `gapless sweep` or `gapless compare --instances`, whose page and table "
            f"are there already: {' and '.join(shown) or 'go on with it by --resume, which writes them'}"
        )


def read_folder(path: Path) -> Folder:
    """Return what is in a folder."""
    try:
        files = sorted(item for item in path.iterdir() if item.is_file() and not item.name.startswith("."))
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from error
    entries = [_entry(item) for item in files[:MAX_ENTRIES]]
    known = {entry.name: entry for entry in entries if entry.kind is not None and not entry.broken}
    if not known and "store.sqlite" not in {entry.name for entry in entries}:
        refuse_sweep(path)
        raise InvalidInputError(
            f"{path} holds no file of gapless; `gapless tune` and `gapless profile` write run folders"
        )
    tuning, notes = _tuning(path, known)
    run, more = _run(path, known)
    notes += more
    if "store.sqlite" in {entry.name for entry in entries} and not known:
        notes.append("nothing was finished here; the same command with --resume goes on")
    if len(files) > MAX_ENTRIES:
        notes.append(f"{len(files) - MAX_ENTRIES} more files are not shown")
    return Folder(
        path=str(path),
        entries=tuple(entries),
        run=run,
        tuning=tuning,
        notes=tuple(notes),
        following=tuple(_following(path, {name: entry.kind for name, entry in known.items()}, run)),
    )


def _entry(path: Path) -> FolderEntry:
    name, length = path.name, path.stat().st_size
    if path.suffix != ".json":
        written = run_file(name)
        return FolderEntry(
            name=name, size_bytes=length, what=written.what if written else _OTHERS.get(path.suffix, "")
        )
    try:
        kind = format_of(path)
    except InvalidInputError as error:
        return FolderEntry(name=name, size_bytes=length, what=error.message, broken=True)
    return FolderEntry(name=name, size_bytes=length, what=what_is(kind), kind=kind)


def what_is(kind: str | None) -> str:
    """Return what a file of some format holds, in words; empty if that is not known."""
    if kind is None or not kind.startswith("gapless."):
        return ""
    try:
        return file_format(kind).what
    except InvalidInputError:
        return ""


def _tuning(path: Path, known: dict[str, FolderEntry]) -> tuple[TuningResult | None, list[str]]:
    if "tuning.json" not in known:
        return None, []
    try:
        return tuning_of(path), []
    except InvalidInputError as error:
        return None, [str(error)]


_UNFINISHED = {
    RunState.RUNNING: "somebody works on it: what it finds is written when it ends",
    RunState.INTERRUPTED: "it was interrupted: the same command with --resume goes on",
    RunState.FAILED: "an error ended it: the same command with --resume goes on from what was measured",
}


def _run(path: Path, known: dict[str, FolderEntry]) -> tuple[RunDocument | None, list[str]]:
    if RUN_FILE not in known:
        return None, []
    try:
        found = read_run(path)
    except InvalidInputError as error:
        return None, [str(error)]
    if found is None or found.standing not in _UNFINISHED:
        return found, []
    notes = [_UNFINISHED[found.standing]]
    if found.written_at and found.written_at < found.started_at:
        notes.append(f"the results that are here are those of {found.written_at}, of an earlier session")
    return found, notes


def _following(
    path: Path, kinds: dict[str, str | None], run: RunDocument | None
) -> Iterator[tuple[str, str]]:
    """Yield commands for what is there."""
    place, whole = {name: shlex.quote(str(path / name)) for name in kinds}, shlex.quote(str(path))
    if "problem.json" in kinds and not kinds.keys() & {"deployment.json", "plan.json"}:
        yield f"gapless plan {whole} --top 5", "the best plans for what was measured"
        yield f"gapless compare {whole}", "every backend on it"
    elif "problem.json" in kinds and run is not None and run.simulated:
        yield f"gapless run {whole} --engine simulated", "play the winner again"
    elif "problem.json" in kinds:
        yield f"gapless run {whole}", "run the winner and measure it"
    if "plan.json" in kinds:
        yield f"gapless explain {whole}", "why the plan is as it is"
    if "trace.json" in kinds:
        yield f"gapless show {place['trace.json']}", "the winner at work"
    if "executions.json" in kinds:
        yield f"gapless costs judge {place['executions.json']}", "how well the cost models predicted it"
    if "profile.json" in kinds:
        yield f"gapless show {place['profile.json']}", "layer times, noise, receipts"
    if kinds.keys() & {"plan.json", "deployment.json", "tuning.json"}:
        yield f"gapless report {whole} -o report.html", "all of it as one page"

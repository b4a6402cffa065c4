"""A run: what `gapless tune` or `gapless profile` works on in a folder, and what may be there before it.

A run folder holds one run. Who begins one says what it is about (`run.json`), before anything is measured,
and is alone in the folder until it ends. Files of another run are never left beside those of a new one.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ..executor.tuning.store import is_blank, this_process
from ..formulations.errors import InvalidInputError
from ..formulations.files import dump, load_problem, save
from ..formulations.network import Network
from ..formulations.problem import Problem
from ..version import __version__
from .run_document import (
    RUN,
    RUN_FILE,
    STORE_FILE,
    SWEEP_STORE_FILE,
    RunDocument,
    RunState,
    read_run,
    run_files,
    strangers,
    subject_of,
    subject_of_problem,
)

SAVE = "save_run"
"""The command of runs that a Python program saves."""
TUNE, PROFILE = "tune", "profile"
"""The commands of all others; a program saves what one of them returns."""

_TRIED_NAMES = 1000
_SHOWN_NAMES = 4
_OF_RESULTS = ("written_at", "files", "engine", "units", "device")
"""What a resumed run knows of the results that are there until new ones are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How a run may enter a folder that holds a run already; neither: it may not."""

    resume: bool = False  # go on with it, if it is about the same
    overwrite: bool = False  # remove its files first

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise InvalidInputError(
                "--resume goes on with a run and --overwrite removes it: give one of them"
            )


@dataclass(slots=True)
class Run:
    """A run that this process works on."""

    place: Path  # its folder
    document: RunDocument
    resumed: bool = False  # whether what was measured before counts
    _ended: bool = field(default=False, init=False)

    @property
    def store(self) -> Path:
        """Where its measurements are kept."""
        return self.place / STORE_FILE

    def write(self, texts: Mapping[str, str], *, interrupted: bool = False, **known: Any) -> list[str]:
        """Write the results, by name, in the place of all that were there; return notes that say so.

        `known`: what is known now: fields of `RunDocument`.
        """
        keep = {*texts, RUN_FILE, STORE_FILE}
        stale = [path for path in run_files(self.place, self.document.files) if path.name not in keep]
        remove(stale)
        for name, text in texts.items():
            save(text, self.place / name)
        self.document = replace(self.document, written_at=now(), files=tuple(texts), **known)
        self._end(RunState.INTERRUPTED if interrupted else RunState.FINISHED)
        wrote = f"wrote {', '.join(str(self.place / name) for name in texts)}"
        gone = f"removed {', '.join(map(str, stale))}: of the session before"
        return [wrote, gone] if stale else [wrote]

    def _end(self, state: RunState) -> None:
        if not self._ended:
            self._ended = True
            self._save(state=state, ended_at=now(), process=None)

    def _save(self, **changes: Any) -> None:
        self.document = replace(self.document, **changes)
        save(dump(self.document, RUN), self.place / RUN_FILE)


@contextmanager
def begin(
    place: str | Path,
    command: str,
    subject: Problem | Sequence[Network],
    *,
    entry: Entry = Entry(),
    simulated: bool = False,
    line: Sequence[str] = (),
    saves: str = "",
) -> Iterator[Run]:
    """Begin a run in a folder, which is made if it is not there: a context manager.

    A run that fails before it has measured anything leaves nothing behind. `line`: the command line as words;
    `subject`: what is measured; `saves`: of `save_run`, the command that finds the same, TUNE or PROFILE.
    Raises InvalidInputError: the folder cannot be written, somebody works in it, it holds another run, or
    files of the names that a run writes that are not of gapless.
    """
    folder, made = Path(place), not os.path.exists(place)
    networks = subject.networks if isinstance(subject, Problem) else subject
    about = RunDocument(
        command=command,
        networks=tuple(network.name for network in networks),
        subject=subject_of_problem(subject) if isinstance(subject, Problem) else subject_of(networks),
        gapless=__version__,
        started_at=now(),
        state=RunState.RUNNING,
        simulated=simulated,
        line=shlex.join(line),
        process=this_process(),
    )
    with alone(folder):
        before, found = admit(folder, entry, about, saves or command)
        remove(found)
        kept = {} if before is None else {name: getattr(before, name) for name in _OF_RESULTS}
        run = Run(folder, replace(about, **kept), resumed=entry.resume)
        run._save()
        try:
            yield run
            run._end(RunState.FINISHED)
        except BaseException as error:
            state = RunState.INTERRUPTED if isinstance(error, KeyboardInterrupt) else RunState.FAILED
            with suppress(InvalidInputError):  # on a full disk, what happened matters more
                run._end(state)
            raise
        finally:
            leave(folder, made=made)


def refuse_occupied(place: str | Path, entry: Entry) -> None:
    """Refuse a folder that a run may not enter, before it is known what the run is about.

    Models take long to open, and nobody should wait for that to learn it.
    """
    if os.path.isdir(place):
        with alone(Path(place)):
            admit(Path(place), entry)


def admit(
    folder: Path, entry: Entry, about: RunDocument | None = None, command: str = ""
) -> tuple[RunDocument | None, Sequence[Path]]:
    """Let a run into a folder, or refuse it; return the run that it goes on with, and the files to remove.

    `about`: the new run; None: what it is about is not known yet, or known to a board alone. `command`: what
    finds the results of the new run, TUNE or PROFILE.
    """
    if odd := strangers(folder):
        raise InvalidInputError(
            f"{folder} holds files of the names that gapless writes, but they are not of gapless:",
            [
                *(f"{path.name}: {why}" for path, why in odd),
                "move them away, or name another folder with --out",
            ],
        )
    before = _before(folder)
    found = run_files(folder, () if before is None else before.files)
    if entry.overwrite:
        return None, found
    if _is_void(found, before):
        if entry.resume and (folder / SWEEP_STORE_FILE).exists():
            raise InvalidInputError(
                f"{folder} holds a sweep, or a comparison, which is no run that can be resumed here. Nothing "
                "was changed; name another folder with --out"
            )
        return None, found
    why = "" if about is None else _difference(folder, about, before, command)
    if entry.resume and not why:
        return before, ()
    raise _occupied(folder, about, before, found, why=why)


def _occupied(
    folder: Path,
    about: RunDocument | None,
    before: RunDocument | None,
    found: Sequence[Path],
    *,
    why: str,
) -> InvalidInputError:
    """Return the error for a folder that holds a run, with what can be done."""
    what = "files of a run" if before is None else f"a run ({before.standing}): {before}"
    other = f" {why}, so it cannot be resumed." if why else ""
    if before is not None and before.board is not None and about is not None:
        other = f" It ran on a board: --on {shlex.quote(before.board.destination)} --resume goes on with it."
    option = "{}=True" if about is not None and about.command == SAVE else "--{}"
    alike = ", if it is about the same" if about is None else ""
    again = [f"go on with it{alike}, nothing is measured twice: {option.format('resume')}"] if not why else []
    names = [path.name for path in found]
    listed = ", ".join(names[:_SHOWN_NAMES]) + (f", {len(names)} in all" if names[_SHOWN_NAMES:] else "")
    return InvalidInputError(
        f"{folder} holds {what}.{other} Nothing was changed. What you can do:",
        [
            f"keep it, and write to another folder, e.g. {shlex.quote(str(_free_name(folder)))}",
            *again,
            f"remove its files first ({listed}): {option.format('overwrite')}",
        ],
    )


def _before(folder: Path) -> RunDocument | None:
    try:
        return read_run(folder)
    except InvalidInputError:  # it was edited, or is of a later gapless: files of a run all the same
        return None


def _difference(folder: Path, about: RunDocument, before: RunDocument | None, command: str) -> str:
    """Return why a run cannot go on with the one of a folder; empty: it can.

    A run without run.json goes by its problem. What another command has found is never removed by going on.
    """
    found = _finds(folder, before)
    if found not in (command, ""):
        return f"It is of `gapless {found}`, not of `gapless {command}`"
    other = "It is about another model or problem"
    if before is not None:
        known = (before.subject, before.simulated, before.board is None)
        return "" if known == (about.subject, about.simulated, True) else other
    path = folder / "problem.json"
    try:
        same = not path.is_file() or subject_of_problem(load_problem(path)) == about.subject
    except InvalidInputError:
        return other
    return "" if same else other


def _finds(folder: Path, about: RunDocument | None) -> str:
    """Return the command that finds what the run of a folder has; empty: that cannot be told."""
    if about is not None and about.command != SAVE:
        return about.command
    names = {path.name for path in run_files(folder, () if about is None else about.files)}
    if "tuning.json" in names:
        return TUNE
    return PROFILE if any(name.startswith("profile") for name in names) else ""


def _is_void(found: Sequence[Path], about: RunDocument | None) -> bool:
    """Return whether nothing was measured or written, but at most a blank store; a board may have more."""
    kept = {path.name: path for path in found}
    kept.pop(RUN_FILE, None)
    store = kept.pop(STORE_FILE, None)
    elsewhere = about is not None and about.board is not None
    return not kept and not elsewhere and (store is None or is_blank(store))


def leave(folder: Path, *, made: bool) -> None:
    """Remove a run of which nothing is left to keep, with its folder if the run has made it."""
    found = run_files(folder)
    if _is_void(found, _before(folder)):
        remove(found)
        if made and not any(folder.iterdir()):
            folder.rmdir()


def remove(paths: Iterable[Path]) -> None:
    """Remove files of a run; errors as for `begin`."""
    for path in paths:
        # A transaction of an old store that was cut off would be rolled back into the next one.
        journal = [path.with_name(f"{STORE_FILE}-journal")] if path.name == STORE_FILE else []
        for each in (path, *journal):
            try:
                each.unlink(missing_ok=True)
            except OSError as error:
                raise InvalidInputError(f"cannot remove {each}: {error.strerror or error}") from error


def _free_name(folder: Path) -> Path:
    names = (folder.with_name(f"{folder.resolve().name}-{number}") for number in range(2, _TRIED_NAMES))
    return next((path for path in names if not path.exists()), folder.with_name("another-folder"))


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder, which is made if it is not there; the system gives it back if this process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".gapless-probe"
        probe.write_bytes(b"")
        probe.unlink()
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InvalidInputError(f"cannot write to the folder {folder}: {error.strerror}") from error
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InvalidInputError(
            f"{folder} is in use: {_worker(folder)}; wait for it, or name another folder with --out"
        ) from None
    except OSError:  # a file system without locks
        pass


def _worker(folder: Path) -> str:
    found = _before(folder)
    if found is None or found.process is None:
        return "another process works in it"
    return f"process {found.process.pid} works on {found}"


def now() -> str:
    """Return the time as it stands in run.json."""
    return datetime.now().astimezone().isoformat(timespec="seconds")

"""The run folder of a command that runs on a board: what it holds, and what is brought back into it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from ..executor.tuning.leases import this_process
from ..files.run import Entry, admit, alone, leave, remove
from ..files.run_document import RUN, BoardRef, RunDocument
from ..files.run_names import RUN_FILE, STORE_FILE, run_file, run_files
from ..formulations.errors import InvalidInputError
from ..formulations.files import dump, load, load_problem, save
from .shelf import Listed
from .translation import Translation

_TEXTS = (".json", ".csv", ".md")


@dataclass(slots=True)
class Results:
    """Where the files go that a command on a board writes: those of certain names, to their places."""

    run: str = field(default_factory=lambda: secrets.token_hex(8))
    """Its name on the board, which no other run has."""
    places: dict[str, Path] = field(default_factory=dict)
    """By the names of files in the folder of the run."""
    fresh: bool = True  # whether what the board may still have of this run is to be removed

    def seed(self, scratch: Path) -> list[tuple[Listed, Path]]:
        """Return what the run goes on with where the board has nothing of it."""
        return []

    def accepts(self, name: str) -> bool:
        """Return whether a file of this name is a result."""
        return name in self.places

    def told(self, about: RunDocument) -> None:
        """Note what the board says of its run."""

    def take(self, received: Mapping[str, Path], translation: Translation) -> None:
        """Put files where they belong."""
        for name, path in received.items():
            _put(path, self.places[name], translation)


@dataclass(slots=True, kw_only=True)
class RunFolder(Results):
    """The folder of a run that takes place on a board, while this process works on it."""

    place: Path
    board: str  # where the run takes place
    line: str  # the command line
    before: RunDocument | None  # the run that it goes on with; None: it is a new one
    stale: Sequence[Path] = ()  # files of another run, which are removed as soon as this one has begun
    _about: RunDocument | None = field(default=None, init=False)

    @property
    def begun(self) -> bool:
        """Whether the board has said that the run began."""
        return self._about is not None

    @classmethod
    @contextmanager
    def entered(cls, place: Path, entry: Entry, destination: str, *, line: str) -> Iterator[Self]:
        """Enter a folder, alone; errors as for `files.run.begin`."""
        made = not os.path.exists(place)
        with alone(place):
            try:
                before, stale = admit(place, entry)
                known = None if before is None or before.board is None else before.board.run
                folder = cls(
                    place=place,
                    board=destination,
                    line=line,
                    before=before,
                    fresh=not entry.resume,
                    stale=stale,
                )
                folder.run = known or folder.run
                yield folder
            finally:
                leave(place, made=made)

    def seed(self, scratch: Path) -> list[tuple[Listed, Path]]:
        """Return what a board needs that has nothing of a resumed run: what was measured, and of what."""
        if self.before is None:
            return []
        about = scratch / RUN_FILE
        save(dump(replace(self.before, board=None, process=None), RUN), about)
        found = [path for path in (about, self.place / STORE_FILE) if path.is_file()]
        return [(Listed.of(path.name, path), path) for path in found]

    def accepts(self, name: str) -> bool:
        """Return whether a file of this name is a result."""
        return run_file(name) is not None and "/" not in name

    def told(self, about: RunDocument) -> None:
        """Note what the board says of its run; the run has begun there."""
        remove(self.stale)
        self.stale = ()
        self._save(replace(about, process=this_process()))

    def take(self, received: Mapping[str, Path], translation: Translation) -> None:
        """Put the files of the run into the folder; results that were written there replace all old ones."""
        if RUN_FILE not in received:  # it has failed before it measured anything, and left nothing
            if self._about is not None:
                remove([self.place / RUN_FILE])
            return
        about = load(received[RUN_FILE], RUN)
        if about.files and set(about.files) <= set(received):
            gone = run_files(self.place, () if self.before is None else self.before.files)
            remove(path for path in gone if path.name not in received)
        changed = _fingerprints(received, translation)
        for name, path in received.items():
            if name != RUN_FILE:
                _put(path, self.place / name, translation, changed)
        self._save(replace(about, process=None))

    def _save(self, about: RunDocument) -> None:
        board = BoardRef(destination=self.board, run=self.run)
        self._about = replace(about, board=board, line=self.line)
        save(dump(self._about, RUN), self.place / RUN_FILE)


def _fingerprints(received: Mapping[str, Path], translation: Translation) -> dict[str, str]:
    """Return what becomes of the fingerprints of problems, of which the places of models are a part."""
    changed = {}
    for name, path in received.items():
        if name.startswith("problem") and name.endswith(".json"):
            with suppress(InvalidInputError):  # who reads it says what is wrong with it
                before = load_problem(path).fingerprint
                path.write_text(translation.file(path.read_text(encoding="utf-8")), encoding="utf-8")
                changed[json.dumps(before)] = json.dumps(load_problem(path).fingerprint)
    return changed


def _put(
    source: Path, target: Path, translation: Translation, changed: Mapping[str, str] | None = None
) -> None:
    """Have a file appear at its place at once, with the paths of this machine in it."""
    if target.suffix in _TEXTS:
        text = translation.file(source.read_text(encoding="utf-8", errors="replace"))
        for before, after in (changed or {}).items():
            text = text.replace(before, after)
        save(text, target)
        return
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        shutil.copyfile(source, part)
        os.replace(part, target)
    except OSError as error:
        raise InvalidInputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)

"""The run folder of a command that runs on a board: what it holds, and what is brought back."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from ..executor.tuning.store import this_process
from ..files.run import Entry, admit, alone, leave, remove
from ..files.run_document import RUN, RUN_FILE, STORE_FILE, BoardRef, RunDocument, run_file, run_files
from ..formulations.errors import InvalidInputError
from ..formulations.files import dump, load, load_problem, save
from ..formulations.printing import HARMFUL
from .shelf import Listed

_ALLOWED = re.compile(r"[\n\t]|[^\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class Translation:
    """From paths of a board to those here."""

    root: str  # folder of gapless on the board
    printed: Mapping[str, str]  # what the user calls a path there that is relative to it

    def _pairs(self) -> list[tuple[str, str]]:
        """Return (there, here): whole paths before relative ones, which they end with; longer ones first."""
        names = sorted(self.printed.items(), key=lambda pair: -len(pair[0]))
        whole = [(f"{self.root}/{there}", str(Path(here).absolute())) for there, here in names]
        return [*whole, *names]

    def text(self, text: str) -> str:
        """Return a text for people."""
        return _told(text, self._pairs())

    def file(self, text: str) -> str:
        """Return the text of a file: in JSON, names are escaped."""
        for there, here in self._pairs():
            for ascii_only in (False, True):
                text = text.replace(_escaped(there, ascii_only), _escaped(here, ascii_only))
        return text

    def tree(self, value: Any) -> Any:
        """Return a JSON value."""
        pairs = self._pairs()

        def told(each: Any) -> Any:
            match each:
                case str():
                    return _told(each, pairs)
                case list():
                    return [told(one) for one in each]
                case dict():
                    return {_told(str(name), pairs): told(one) for name, one in each.items()}
            return each

        return told(value)


def _told(text: str, pairs: Sequence[tuple[str, str]]) -> str:
    for there, here in pairs:
        text = text.replace(there, here)
    return harmless(text)


def _escaped(text: str, ascii_only: bool) -> str:  # noqa: FBT001 - as json.dumps calls it
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def harmless(text: str) -> str:
    """Return a text without what could steer a terminal or turn the direction of writing.

    All that a board says goes through here before anybody sees it.
    """
    found = "".join(_ALLOWED.findall(text))
    if found.isascii():
        return found
    return "".join(char for char in found if ord(char) < 0xA0 or unicodedata.category(char) not in HARMFUL)


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

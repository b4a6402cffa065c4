"""The folder of a board where gapless keeps what was brought there: files by content, and unfinished runs.

`files/DIGEST/` holds files that belong together (a model and its weights), under the digest of their names
and contents; it appears at once, complete and checked. `runs/ID/` is what a command writes; it stays until
its results were received, so that a run whose connection was lost can be resumed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from ..executor.engines.cache import default_cache
from ..executor.tuning.store import Holder, this_process
from ..formulations.errors import BoardError, InvalidInputError
from ..formulations.validation import FileContent

FILES, RUNS = "files", "runs"
ANSWER = "answer.json"
"""What a command prints, in the folder of its run."""

FORGOTTEN_AFTER_S = 30 * 86_400.0
"""Seconds after which a run that nobody has resumed is removed from a board."""

TAKE_OVER_S = 45.0
"""How long the command of a lost connection may take to end."""

_DIGEST = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_RUN = re.compile(r"[0-9a-f]{16}")
_UNFINISHED = ".unfinished-"
_MAX_FILES = 4096
_READ_BYTES, _SYNC_BYTES = 1 << 20, 16 << 20
_KILLED_AFTER_S = 35.0
"""From when on a command that does not end is killed; in order it takes up to 30 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed(FileContent):
    """A file as both sides speak of it."""

    name: str  # its path in its group, or its name in the folder of a run; "/" parts folders
    size_bytes: int
    sha256: str  # of its content, hexadecimal

    def __post_init__(self) -> None:
        parts = PurePosixPath(self.name).parts
        if not parts or self.name.startswith("/") or ".." in parts or "\0" in self.name:
            raise InvalidInputError(f"{self.name[:200]!r} is no name of a file")
        if self.size_bytes < 0 or not _SHA256.fullmatch(self.sha256):
            raise InvalidInputError(f"{self.name[:200]!r} has no size, or no digest")

    @classmethod
    def of(cls, name: str, path: Path, alive: Callable[[], None] = lambda: None) -> Listed:
        """Describe a file; `alive` is called while it is read."""
        found = hashlib.sha256()
        with path.open("rb") as file:
            while piece := file.read(_READ_BYTES):
                found.update(piece)
                alive()
            return cls(name=name, size_bytes=file.tell(), sha256=found.hexdigest())


def group_digest(files: Sequence[Listed]) -> str:
    """Return what files that belong together are kept under: a digest of their names and contents."""
    known = sorted((file.name, file.sha256) for file in files)
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def receive(listed: Listed, path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file from the pieces that come; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found, left, loose = hashlib.sha256(), listed.size_bytes, 0
    with path.open("wb") as file:
        for piece in pieces:
            left -= len(piece)
            if left < 0:
                break
            found.update(piece)
            file.write(piece)
            loose += len(piece)
            if loose > _SYNC_BYTES:  # all of it at the end would take longer than anybody may be silent
                os.fsync(file.fileno())
                loose = 0
        file.flush()
        os.fsync(file.fileno())
    if left or found.hexdigest() != listed.sha256:
        raise BoardError(f"{listed.name} arrived damaged, or changed on its way: try again")


class Shelf:
    """The folder.

    `root`: where it is; None: `boards` in the cache of gapless. `holding`: whether groups that are found or
    filled are held by a lock until this process ends: nobody removes them, whatever the clock says.
    """

    def __init__(
        self, root: Path | None = None, alive: Callable[[], None] = lambda: None, *, holding: bool = False
    ) -> None:
        self._alive = alive
        self._holding = holding
        self._holds: dict[Path, ExitStack] = {}
        self._cache = default_cache()
        folder = self._cache.folder / "boards" if root is None else root
        for name in (FILES, RUNS):
            (folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.root = folder.resolve()

    def has(self, digest: str, files: Sequence[Listed]) -> bool:
        """Return whether a group is there, with the contents that its name says; a damaged one is removed."""
        place = self._group(digest)
        with ExitStack() as hold:
            if not _held(place, hold, shared=True):
                return False
            with suppress(OSError):
                if all(Listed.of(file.name, place / file.name, self._alive) == file for file in files):
                    os.utime(place)
                    self._hold(place, hold)
                    return True
        self._holds.pop(place, hold).close()
        if not _removed(place):
            raise BoardError(f"{place} is damaged, and another command works with it: try again later")
        return False

    @contextmanager
    def group(self, digest: str) -> Iterator[Path]:
        """Yield a folder to fill, which becomes that of the group unless filling it fails."""
        place = self._group(digest)
        part = Path(tempfile.mkdtemp(dir=place.parent, prefix=_UNFINISHED))
        try:
            with ExitStack() as hold:
                _held(part, hold, shared=True)
                yield part
                try:
                    part.rename(place)
                except OSError:  # another process was faster: it has the same content
                    hold.close()
                    _held(place, hold, shared=True)
                self._hold(place, hold)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def run(self, name: str) -> Path:
        """Return the folder of a run."""
        if not _RUN.fullmatch(name):
            raise BoardError(f"refused: {name[:60]!r} is no name of a run")
        return self.root / RUNS / name

    @contextmanager
    def held(self, name: str) -> Iterator[Path]:
        """Hold a run; whoever still works on it has lost its connection, and is ended first."""
        path = self.run(name).with_suffix(".lock")
        started = time.monotonic()
        with ExitStack() as hold:
            while not _held(path, hold, file=True):
                taken = time.monotonic() - started
                if taken > TAKE_OVER_S:
                    raise BoardError(
                        "the command of the lost connection still runs on the board: try again soon"
                    )
                _end_holder(path, signal.SIGKILL if taken > _KILLED_AFTER_S else signal.SIGTERM)
                self._alive()
                time.sleep(0.2)
            path.write_text(json.dumps(asdict(this_process())))
            yield self.run(name)

    def forget(self, name: str) -> None:
        """Remove a run that this process holds."""
        shutil.rmtree(self.run(name), ignore_errors=True)
        self.run(name).with_suffix(".lock").unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what is too old or too much: groups beyond the limit of the cache, runs nobody resumed.

        What a process holds stays.
        """
        now, kept = time.time(), 0
        groups = [path for path in (self.root / FILES).iterdir() if path.is_dir()]
        for path in sorted(groups, key=lambda path: -_used_at(path)):
            self._alive()
            with suppress(OSError):  # another process removes it, too
                kept += sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
            if kept > self._cache.limit_bytes or path.name.startswith(_UNFINISHED):
                _removed(path)
        for name in sorted({path.stem for path in (self.root / RUNS).iterdir()}):
            self._alive()
            files = [(self.root / RUNS / name).with_suffix(suffix) for suffix in ("", ".part", ".lock")]
            lock = files[-1]
            if all(now - _used_at(path) > FORGOTTEN_AFTER_S for path in files if path.exists()):
                with ExitStack() as hold:
                    if _held(lock, hold, file=True):
                        for path in files[:-1]:
                            shutil.rmtree(path, ignore_errors=True)
                        lock.unlink(missing_ok=True)

    def _hold(self, place: Path, hold: ExitStack) -> None:
        if self._holding:
            self._holds[place] = hold.pop_all()

    def _group(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise BoardError(f"refused: {digest[:60]!r} is no digest")
        return self.root / FILES / digest


def written(folder: Path, alive: Callable[[], None] = lambda: None) -> list[Listed]:
    """Return the regular files of a folder that are not hidden; `alive` is called while they are read."""
    if not folder.is_dir():
        return []
    found = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    plain = [path for path in found if stat.S_ISREG(path.lstat().st_mode)]
    return [Listed.of(path.name, path, alive) for path in plain[:_MAX_FILES]]


def _held(path: Path, hold: ExitStack, *, shared: bool = False, file: bool = False) -> bool:
    """Lock a folder, or a file that is made if need be, until `hold` ends; return whether that worked."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC if file else os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    with ExitStack() as own:
        try:
            descriptor = os.open(path, flags, 0o600)
            own.callback(os.close, descriptor)
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(descriptor), path.stat()):  # it was removed meanwhile
                return False
        except (BlockingIOError, FileNotFoundError, NotADirectoryError):
            return False
        hold.push(own.pop_all())
    return True


def _removed(path: Path) -> bool:
    """Remove a folder that nobody holds; return whether it is gone."""
    with ExitStack() as hold:
        if _held(path, hold):
            shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


def _end_holder(path: Path, number: signal.Signals) -> None:
    """Have the agent that holds a run end; asked, it stops its command, which keeps what it has finished."""
    with suppress(OSError, ValueError, TypeError):
        holder = Holder(**json.loads(path.read_text()))
        if holder.alive:
            os.kill(holder.pid, number)


def _used_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process has removed it
        return time.time()

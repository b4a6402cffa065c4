"""Files that took time to make, kept by content: converted pieces and built-in networks.

The name of an entry holds the key it is asked for by and the digest of what is in it, so one rename
makes it appear whole, and an entry that does not match its name is known to be damaged. Several
processes can use one folder at once without locks.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...formulations.errors import InvalidInputError, StoreError

DEFAULT_LIMIT_BYTES = 2 << 30
"""Most bytes of all entries together, when nothing else is said."""

IN_USE_S = 3600.0
"""Entries that were used within this time stay, whatever the limit: a running job may still open them."""

_ENTRY = re.compile(r"([0-9a-f]{16,128})-([0-9a-f]{64})(\.[a-z0-9]{1,16})")
_UNFINISHED = ".unfinished-"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One file of a cache.

    `key`, `suffix`: what it was put under.
    """

    key: str
    suffix: str
    path: Path  # where it is
    size_bytes: int  # its size
    used_at_s: float  # when it was last put or asked for, seconds since the epoch


class Cache:
    """A folder of files by key, of limited size; what was not used for longest goes first.

    `folder`: where; made when something is first put; None: `$GAPLESS_CACHE`, or `gapless` in
    `$XDG_CACHE_HOME` or in `~/.cache`. `limit_bytes`: most bytes of all entries together; None:
    `$GAPLESS_CACHE_LIMIT_MB`, or 2 GiB.
    Raises InvalidInputError: `$GAPLESS_CACHE_LIMIT_MB` is no number.
    """

    def __init__(self, folder: Path | None = None, *, limit_bytes: int | None = None) -> None:
        self.folder = _default_folder() if folder is None else folder.absolute()
        self.limit_bytes = _default_limit_bytes() if limit_bytes is None else limit_bytes

    def path(self, key: str, suffix: str) -> Path | None:
        """Return the file that was put under a key, or None; a damaged one is removed and counts as none.

        `key`: lower-case hexadecimal digits, at least 16 (see `cache_key`); `suffix`: kind of file, e.g.
        ".mnn".
        """
        _check_name(key, suffix)
        for file in self._files(key):
            match = _ENTRY.fullmatch(file.name)
            if match is None or (match[1], match[3]) != (key, suffix):
                continue
            with contextlib.suppress(OSError):
                if _digest_of(file) == match[2]:
                    os.utime(file)
                    return file
                file.unlink()
        return None

    def put(self, key: str, suffix: str, content: bytes | Path) -> Path:
        """Keep some bytes, or a copy of a file, under a key, and return where they are now.

        Raises StoreError: the disk is full, or the folder cannot be written to. Nothing half-written is left.
        """
        _check_name(key, suffix)
        with self._errors(), self._unfinished() as unfinished:
            if isinstance(content, Path):
                shutil.copyfile(content, unfinished)
            else:
                unfinished.write_bytes(content)
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            target = self.folder / f"{key}-{_digest_of(unfinished)}{suffix}"
            os.replace(unfinished, target)
            self._shrink()
        return target

    def entries(self) -> tuple[CacheEntry, ...]:
        """Return all entries, in the order of their last use, the latest first."""
        found = [entry for entry in map(_entry, self._files()) if entry is not None]
        return tuple(sorted(found, key=lambda entry: (-entry.used_at_s, entry.path.name)))

    @property
    def size_bytes(self) -> int:
        """Bytes of all entries together."""
        return sum(entry.size_bytes for entry in self.entries())

    def clear(self) -> int:
        """Remove all entries, and what killed processes left half-written; return the number of entries.

        Raises StoreError: the folder cannot be written to.
        """
        entries = self.entries()
        with self._errors():
            for entry in entries:
                entry.path.unlink(missing_ok=True)
            self._sweep(older_than_s=0.0)
        return len(entries)

    def _files(self, begun: str = "") -> list[Path]:
        """Return the files whose names begin so; there may be thousands of others."""
        try:
            return [self.folder / name for name in os.listdir(self.folder) if name.startswith(begun)]
        except OSError:
            return []

    def _shrink(self) -> None:
        """Remove what was not used for longest until the limit holds, and what was left half-written."""
        self._sweep(older_than_s=IN_USE_S)
        size_bytes, oldest_s = 0, time.time() - IN_USE_S
        for entry in self.entries():
            size_bytes += entry.size_bytes
            if size_bytes > self.limit_bytes and entry.used_at_s < oldest_s:
                size_bytes -= entry.size_bytes
                entry.path.unlink(missing_ok=True)

    def _sweep(self, *, older_than_s: float) -> None:
        for file in self._files(_UNFINISHED):
            with contextlib.suppress(FileNotFoundError):
                if file.stat().st_mtime <= time.time() - older_than_s:
                    file.unlink()

    @contextmanager
    def _unfinished(self) -> Iterator[Path]:
        """Yield an empty file in the folder, which is gone afterwards unless it was renamed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.folder, prefix=_UNFINISHED)
        os.close(descriptor)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in _FULL:
                raise StoreError(
                    f"the cache {self.folder} cannot take another file: {error.strerror}; make room "
                    "(`gapless tools cache --clear` empties it), or set GAPLESS_CACHE to a folder on another "
                    "disk"
                ) from error
            raise StoreError(
                f"the cache {self.folder} cannot be written to: {error.strerror or error}; "
                "set GAPLESS_CACHE to a folder that can"
            ) from error


def default_cache() -> Cache:
    """Return the cache of the user."""
    return Cache()


def cache_key(*parts: str) -> str:
    """Return the key of what is made from some parts, e.g. content, engine version and options."""
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def _default_folder() -> Path:
    if named := os.environ.get("GAPLESS_CACHE"):
        return Path(named).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~")) / ".cache"
    return root.absolute() / "gapless"


def _default_limit_bytes() -> int:
    text = os.environ.get("GAPLESS_CACHE_LIMIT_MB")
    if not text:
        return DEFAULT_LIMIT_BYTES
    if not text.isdecimal():
        raise InvalidInputError(f"GAPLESS_CACHE_LIMIT_MB is {text!r}, must be a number of mebibytes")
    return int(text) << 20


def _entry(file: Path) -> CacheEntry | None:
    match = _ENTRY.fullmatch(file.name)
    if match is None:
        return None
    try:
        found = file.stat()
    except OSError:
        return None  # another process has removed it
    return CacheEntry(
        key=match[1], suffix=match[3], path=file, size_bytes=found.st_size, used_at_s=found.st_mtime
    )


def _digest_of(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _check_name(key: str, suffix: str) -> None:
    """Refuse anything but hexadecimal keys: names in models are hostile and must not reach file names."""
    if not _ENTRY.fullmatch(f"{key}-{'0' * 64}{suffix}"):
        raise ValueError(f"{key!r} with suffix {suffix!r} cannot name a cache entry")

"""The cache: whole or absent, limited, shared by processes, and plain about what is wrong."""

from __future__ import annotations

import errno
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gapless.executor.engines.cache import IN_USE_S, Cache, cache_key, default_cache
from gapless.formulations.errors import InvalidInputError, StoreError

A, B, C = (cache_key(letter) for letter in "abc")


@pytest.fixture
def cache(cache_folder: Path) -> Cache:
    return Cache(cache_folder)


def age(path: Path, seconds: float) -> None:
    """Have an entry be used for the last time some seconds ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_what_is_put_is_found(cache: Cache, tmp_path: Path) -> None:
    assert cache.path(A, ".mnn") is None
    path = cache.put(A, ".mnn", b"content")
    assert path.read_bytes() == b"content"
    (tmp_path / "file").write_bytes(b"from a file")
    other = cache.put(B, ".onnx", tmp_path / "file")
    assert (cache.path(A, ".mnn"), cache.path(B, ".onnx")) == (path, other)
    assert cache.path(A, ".onnx") is None
    assert cache.size_bytes == len(b"content") + len(b"from a file")
    assert {(entry.key, entry.suffix, entry.size_bytes) for entry in cache.entries()} == {
        (A, ".mnn", 7),
        (B, ".onnx", 11),
    }
    assert cache.clear() == 2
    assert list(cache.folder.iterdir()) == []


def test_a_later_content_is_no_worse(cache: Cache) -> None:
    cache.put(A, ".mnn", b"one")
    cache.put(A, ".mnn", b"two")
    found = cache.path(A, ".mnn")
    assert found is not None
    assert found.read_bytes() in (b"one", b"two")


@pytest.mark.parametrize("damage", [b"conten", b"CONTENT", b""])
def test_damaged_entries_are_noticed(cache: Cache, damage: bytes) -> None:
    cache.put(A, ".mnn", b"content").write_bytes(damage)
    assert cache.path(A, ".mnn") is None
    assert cache.entries() == ()
    cache.put(A, ".mnn", b"content")
    assert cache.path(A, ".mnn") is not None


def test_the_longest_unused_go_first(cache_folder: Path) -> None:
    cache = Cache(cache_folder, limit_bytes=25)
    for key, used in ((A, 3.0), (B, 2.0)):
        age(cache.put(key, ".mnn", bytes(10)), used * IN_USE_S)
    assert cache.path(A, ".mnn") is not None  # used now
    cache.put(C, ".mnn", bytes(10))
    assert {entry.key for entry in cache.entries()} == {A, C}


def test_what_a_running_job_uses_is_not_taken_from_it(cache_folder: Path) -> None:
    cache = Cache(cache_folder, limit_bytes=5)
    cache.put(A, ".mnn", bytes(10))
    cache.put(B, ".mnn", bytes(10))
    assert {entry.key for entry in cache.entries()} == {A, B}


def test_only_digests_reach_file_names(cache: Cache) -> None:
    for key, suffix in (("../../etc/passwd", ".mnn"), ("name", ".mnn"), (A, "/../x"), (A.upper(), ".mnn")):
        with pytest.raises(ValueError, match="cannot name a cache entry"):
            cache.put(key, suffix, b"")
        with pytest.raises(ValueError, match="cannot name a cache entry"):
            cache.path(key, suffix)
    assert not cache.folder.exists()
    assert cache_key("a", "bc") != cache_key("ab", "c")


def test_other_files_in_the_folder_are_left_alone(cache: Cache) -> None:
    path = cache.put(A, ".mnn", b"content")
    (cache.folder / "notes.txt").write_text("mine")
    half = cache.folder / ".unfinished-killed"
    half.write_bytes(b"half")
    age(half, 2 * IN_USE_S)
    cache.put(B, ".mnn", b"more")
    assert not half.exists()  # of a process that was killed long ago
    cache.clear()
    assert not path.exists()
    assert [file.name for file in cache.folder.iterdir()] == ["notes.txt"]


@contextmanager
def file_size_limit(most: int) -> Iterator[None]:
    """Let no file grow beyond a size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("from_file", [False, True])
def test_a_full_disk_is_said_and_leaves_nothing(cache: Cache, tmp_path: Path, from_file: bool) -> None:
    (tmp_path / "big").write_bytes(bytes(100_000))
    content = tmp_path / "big" if from_file else bytes(100_000)
    where = re.escape(str(cache.folder))
    with file_size_limit(10_000), pytest.raises(StoreError, match=f"{where} cannot take .*GAPLESS_CACHE"):
        cache.put(A, ".mnn", content)
    assert list(cache.folder.iterdir()) == []
    assert cache.put(A, ".mnn", content).stat().st_size == 100_000


def test_no_space_at_the_last_moment(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left on device; make room"):
        cache.put(A, ".mnn", b"content")
    assert list(cache.folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file" / "cache")
    with pytest.raises(StoreError, match=r"file/cache cannot be written to: .*set GAPLESS_CACHE"):
        cache.put(A, ".mnn", b"content")
    assert cache.entries() == ()
    assert cache.path(A, ".mnn") is None


def test_the_environment_says_where_and_how_much(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert default_cache().folder == cache_folder
    monkeypatch.setenv("GAPLESS_CACHE_LIMIT_MB", "3")
    assert default_cache().limit_bytes == 3 << 20
    monkeypatch.setenv("GAPLESS_CACHE_LIMIT_MB", "much")
    with pytest.raises(InvalidInputError, match="GAPLESS_CACHE_LIMIT_MB is 'much'"):
        default_cache()
    monkeypatch.delenv("GAPLESS_CACHE_LIMIT_MB")
    monkeypatch.delenv("GAPLESS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache().folder == tmp_path / "xdg" / "gapless"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache().folder == tmp_path / ".cache" / "gapless"


def test_two_processes_at_once(cache: Cache) -> None:
    code = (
        "import sys\n"
        "from gapless.executor.engines.cache import Cache, cache_key, default_cache\n"
        "cache = default_cache()\n"
        "for turn in range(60):\n"
        "    key = cache_key(str(turn % 7))\n"
        "    path = cache.path(key, '.bin') or cache.put(key, '.bin', (key * 999).encode())\n"
        "    assert path.read_bytes() == (key * 999).encode()\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(2)]
    for worker in workers:
        assert worker.communicate(timeout=60)[1] == b""
        assert worker.returncode == 0
    assert len(cache.entries()) == 7
    assert len(list(cache.folder.iterdir())) == 7

"""The store: nothing twice, nothing lost, and clear words when the file cannot be used."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import pytest

from gapless.executor.progress import Ledger
from gapless.executor.tuning.result import Visit
from gapless.executor.tuning.store import Holder, RunDescription, Store, this_process
from gapless.formulations.errors import NoStoreError, StoreError

ABOUT = RunDescription(candidates="[]", options="{}")
OTHER = RunDescription(candidates="[1]", options="{}")
VISIT = Visit("abc", 0, 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "tuning.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_the_ledger_keeps_the_latest_text_for_good(path: Path, store: Store) -> None:
    ledger: Ledger = store
    assert ledger.find("layer", "a") is None
    ledger.keep("layer", "a", "1")
    ledger.keep("layer", "a", "2")
    ledger.keep("chunk", "a", "3")
    with Store(path) as again:
        assert (again.find("layer", "a"), again.find("chunk", "a")) == ("2", "3")


def test_users_lose_nothing_in_a_power_cut(path: Path) -> None:
    """Tests do not wait for the disk (`wait_for_no_disk`); the module by itself does."""
    spec = find_spec(Store.__module__)
    assert spec is not None
    assert spec.loader is not None
    unpatched = module_from_spec(spec)
    spec.loader.exec_module(unpatched)
    for kind, full in ((Store, False), (unpatched.Store, True)):
        with kind(path) as store:
            found = store._connection.execute("PRAGMA synchronous").fetchone()[0]
        assert (found == 2) is full


def test_a_run_is_resumed_or_begun_anew(path: Path) -> None:
    with Store(path) as store, store.begin(ABOUT, resume=True) as run:
        run.record(VISIT, "first")
        number = run.number
    with Store(path) as store:
        with store.begin(ABOUT, resume=True) as run:
            assert (run.number, run.trials()) == (number, {VISIT: "first"})
        with store.begin(ABOUT, resume=False) as run:
            assert run.number != number
            assert run.trials() == {}
            newest = run.number
        with store.begin(OTHER, resume=True) as run:
            assert run.trials() == {}
        with store.begin(ABOUT, resume=True) as run:
            assert run.number == newest


def test_a_visit_is_recorded_once(store: Store) -> None:
    with store.begin(ABOUT, resume=False) as run:
        run.record(VISIT, "first")
        with pytest.raises(StoreError, match="recorded before"):
            run.record(VISIT, "second")
        run.record(Visit("abc", 0, 2), "next")
        assert run.trials()[VISIT] == "first"


def test_different_runs_work_side_by_side(path: Path, store: Store) -> None:
    with (
        Store(path) as second,
        store.begin(ABOUT, resume=False) as one,
        second.begin(OTHER, resume=False) as two,
    ):
        one.record(VISIT, "one")
        two.record(VISIT, "two")
        assert (one.trials(), two.trials()) == ({VISIT: "one"}, {VISIT: "two"})


@contextmanager
def held_by(path: Path, store: Store, holder: Holder) -> Iterator[None]:
    """Make it look as if a process had begun the run and not given it back."""
    with store.begin(ABOUT, resume=True) as run:
        values = f"pid = {holder.pid}, boot = '{holder.boot}', started = {holder.started}"
        change(path, f"UPDATE runs SET {values} WHERE run = {run.number}")
        yield
        change(path, "UPDATE runs SET pid = NULL")


def test_a_run_of_a_living_process_is_refused_and_of_a_dead_one_taken_over(path: Path, store: Store) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        started = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
        living = Holder(pid=child.pid, boot=this_process().boot, started=started)
        assert living.alive
        with held_by(path, store, living), Store(path) as second:
            for resume in (True, False):
                with pytest.raises(StoreError, match=f"worked on by process {child.pid}"):
                    second.begin(ABOUT, resume=resume)
            second.begin(OTHER, resume=True).close()
        for gone in (
            Holder(pid=child.pid, boot="another boot", started=started),
            Holder(pid=child.pid, boot=living.boot, started=started - 1),
        ):
            with held_by(path, store, gone), Store(path) as second:
                second.begin(ABOUT, resume=True).close()
    finally:
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not living.alive  # a zombie has ended
        child.wait()
    assert not living.alive


def test_who_was_taken_over_records_nothing_more(path: Path, store: Store) -> None:
    with store.begin(ABOUT, resume=False) as run:
        run.record(VISIT, "mine")
        change(path, "UPDATE runs SET pid = 1, boot = 'x', started = 1")
        with pytest.raises(StoreError, match=r"taken over by another process \(1\)"):
            run.record(Visit("abc", 0, 2), "late")
        with pytest.raises(StoreError, match="taken over"):
            run.finish()
        assert run.trials() == {VISIT: "mine"}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT pid FROM runs").fetchone() == (1,)  # not given back for it


def test_what_is_interrupted_is_rolled_back(store: Store) -> None:
    def interrupted() -> None:
        with store.transaction() as connection:
            connection.execute("INSERT INTO ledger VALUES ('k', 'a', 'text', '')")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert store.find("k", "a") is None
    store.keep("k", "a", "text")


@pytest.mark.slow
def test_a_damaged_store_says_so(path: Path) -> None:
    with Store(path) as store:
        for number in range(200):
            store.keep("kind", str(number), "text" * 50)
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + os.urandom(8192) + whole[16384:])
    with pytest.raises(StoreError, match="is damaged"):
        Store(path)
    path.write_bytes(os.urandom(5000))
    with pytest.raises(StoreError, match="it is no store, or it is damaged"):
        Store(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreError, match="is damaged"):
        Store(path)
    path.write_bytes(whole)
    with Store(path) as store:
        assert store.find("kind", "199") == "text" * 50


def test_other_versions_and_other_databases_are_refused(path: Path, tmp_path: Path) -> None:
    Store(path).close()
    change(path, "PRAGMA user_version = 7")
    with pytest.raises(NoStoreError, match=r"has version 7, this gapless uses version 1; use the gapless"):
        Store(path)
    foreign = tmp_path / "foreign.db"
    change(foreign, "CREATE TABLE songs (title TEXT)")
    before = foreign.read_bytes()
    with pytest.raises(NoStoreError, match="no store of gapless"):
        Store(foreign)
    assert foreign.read_bytes() == before


def test_places_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(NoStoreError, match="it cannot be opened"):
        Store(tmp_path)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(NoStoreError, match=r"file/tuning.db: it cannot be opened"):
        Store(file / "tuning.db")


def test_a_store_that_may_only_be_read_is_refused(path: Path) -> None:
    Store(path).close()
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write everything")
    with pytest.raises(StoreError, match="it may only be read"):
        Store(path)


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file can grow beyond 64 KiB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_loses_nothing_that_was_recorded(path: Path) -> None:
    with Store(path) as store:
        store.keep("kind", "small", "text")
        with pytest.raises(StoreError, match="full or fails; free some space and go on with --resume"):
            store.keep("kind", "large", "x" * 200_000)
        store.keep("kind", "next", "text")
    with Store(path) as store:
        assert store.find("kind", "small") == store.find("kind", "next") == "text"
        assert store.find("kind", "large") is None
    assert [file.name for file in path.parent.iterdir()] == ["tuning.db"]


def test_what_is_kept_under_keys_that_start_alike(store: Store) -> None:
    for key, text in (("a 1", "x"), ("a 2", "y"), ("b 1", "z")):
        store.keep("executions", key, text)
    store.keep("other", "a 3", "w")
    assert store.kept("executions", "a ") == {"a 2": "y", "a 1": "x"}
    assert list(store.kept("executions", "a ")) == ["a 2", "a 1"], "newest first"
    assert store.kept("executions", "%") == {}

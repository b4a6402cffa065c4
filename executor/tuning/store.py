"""What was measured, kept for good: tuning runs, who holds one, and the ledger of the profiler.

One SQLite file. It uses a rollback journal and not a write-ahead log: the log needs memory that is shared
between processes, which network file systems do not have, and it leaves two more files beside the
store while anybody has it open. Every write is a transaction of its own with `synchronous=FULL`: about
one a second is written, so that safety costs nothing, and what was recorded survives `kill -9` and loss
of power. A transaction that was cut off is rolled back by whoever opens the store next.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ...formulations.errors import NoStoreError, StoreError
from ..closing import Closing
from ..machine.kernel_files import boot_id, started_at
from .result import Visit


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process.

    Attributes
    ----------
    pid
        Its number, which the system gives to another process one day.
    boot
        Identity of the boot of the system it runs on; None where the system does not say.
    started
        When it was started, in clock ticks since that boot; None where the system does not say.
    """

    pid: int
    boot: str | None
    started: int | None

    @property
    def alive(self) -> bool:
        """Whether exactly this process still runs."""
        return self == _holder(self.pid) and self.started is not None


def this_process() -> Holder:
    """Return the process that asks."""
    return _holder(os.getpid())


def _holder(pid: int) -> Holder:
    return Holder(pid=pid, boot=boot_id(), started=started_at(pid))


VERSION = 1
"""Version of the tables below."""

_APPLICATION = int.from_bytes(b"gapl")
_BUSY_S = 30.0

SYNCHRONOUS = "FULL"
"""SQLite's word for when a commit counts: when the disk has it."""

_TABLES = (
    """
    CREATE TABLE runs (
        run INTEGER PRIMARY KEY,
        key TEXT NOT NULL,  -- digest of the next four
        candidates TEXT NOT NULL,
        options TEXT NOT NULL,
        problem TEXT NOT NULL,
        device TEXT NOT NULL,
        created TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('open', 'finished')),
        pid INTEGER, boot TEXT, started INTEGER  -- the process that holds it, or null
    )
    """,
    "CREATE INDEX runs_by_key ON runs (key)",
    """
    CREATE TABLE trials (
        run INTEGER NOT NULL REFERENCES runs,
        candidate TEXT NOT NULL,
        rung INTEGER NOT NULL,
        round INTEGER NOT NULL,
        trial TEXT NOT NULL,
        created TEXT NOT NULL,
        PRIMARY KEY (run, candidate, rung, round)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE ledger (
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        text TEXT NOT NULL,
        created TEXT NOT NULL,
        PRIMARY KEY (kind, key)
    ) WITHOUT ROWID
    """,
)

_AGAIN = "move it away and measure again, or name another store"
_HINTS = {
    "SQLITE_FULL": "the disk is full; free some space and go on with --resume",
    "SQLITE_IOERR": "the disk is full or fails; free some space and go on with --resume",
    "SQLITE_READONLY": "it may only be read; name a store in a folder that may be written",
    "SQLITE_CANTOPEN": "it cannot be opened; name a file in a folder that exists and may be written",
    "SQLITE_NOTADB": f"it is no store, or it is damaged; {_AGAIN}",
    "SQLITE_CORRUPT": f"it is damaged; {_AGAIN}",
    "SQLITE_BUSY": "another process is writing it and does not come to an end",
    "SQLITE_CONSTRAINT": "this was recorded before: two processes work on one tuning run",
}

_UNFIT = ("SQLITE_NOTADB", "SQLITE_CANTOPEN")
"""What is wrong with the name of a store, rather than with a disk."""

_APPLICATION_AT = 68
"""Where SQLite keeps the number of the application that a file is of."""


def is_store(path: Path) -> bool:
    """Return whether a file is a store of gapless, or empty, so that it can become one."""
    with path.open("rb") as file:
        head = file.read(_APPLICATION_AT + 4)
    return not head or head[_APPLICATION_AT:] == _APPLICATION.to_bytes(4)


def is_blank(path: Path) -> bool:
    """Return whether nothing was measured for a store."""
    if not path.stat().st_size:
        return True
    try:
        with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro", uri=True)) as connection:
            kept = "SELECT EXISTS (SELECT 1 FROM ledger) OR EXISTS (SELECT 1 FROM trials)"
            return not connection.execute(kept).fetchone()[0]
    except sqlite3.Error:  # damaged, or of another version: that is for who works with it to say
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """What a tuning run is about, as JSON texts: runs with equal descriptions can be resumed as each other.

    `candidates`, `options`: what is measured, and how.
    """

    candidates: str
    options: str
    problem: str = ""  # what the candidates are plans of; may be empty
    device: str = ""  # fingerprint of the device; may be empty

    @property
    def key(self) -> str:
        """Hexadecimal digest of all of it."""
        return hashlib.sha256(repr(astuple(self)).encode()).hexdigest()


class Store(Closing):
    """One file of measurements; implements `Ledger`. Several processes may have it open at once.

    `path`: the file; it and its folder are made where they are missing. ":memory:" keeps everything until
    `close` only.
    Raises StoreError: it cannot be opened or written, is damaged, is no store, or has another version. All
    methods raise it when the file cannot be read or written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        with self._clear_errors():
            if self.path != ":memory:":
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)
        try:
            with self._clear_errors():
                self._prepare()
        except BaseException:
            self.close()
            raise

    def find(self, kind: str, key: str) -> str | None:
        """Return what was kept under a kind and a key, or None."""
        with self._clear_errors():
            row = self._connection.execute(
                "SELECT text FROM ledger WHERE kind = ? AND key = ?", (kind, key)
            ).fetchone()
        return None if row is None else str(row[0])

    def kept(self, kind: str, start: str) -> dict[str, str]:
        """Return what was kept under a kind and keys that start alike, by key, the newest first."""
        with self._clear_errors():
            rows = self._connection.execute(
                "SELECT key, text FROM ledger WHERE kind = ? AND substr(key, 1, ?) = ? "
                "ORDER BY created DESC, key DESC",
                (kind, len(start), start),
            ).fetchall()
        return {str(key): str(text) for key, text in rows}

    def keep(self, kind: str, key: str, text: str) -> None:
        """Keep a text under a kind and a key; replaces an earlier one."""
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?)", (kind, key, text, _now()))

    def begin(self, description: RunDescription, *, resume: bool) -> TuningRun:
        """Begin a tuning run, or go on with the latest one of the same description; it is held from now on.

        Raises StoreError: a process that is alive holds a run of this description.
        """
        holder = this_process()
        with self.transaction() as connection:
            row = connection.execute(
                "SELECT run, pid, boot, started FROM runs WHERE key = ? ORDER BY run DESC LIMIT 1",
                (description.key,),
            ).fetchone()
            if row is not None:
                self._refuse_held(row, holder)
            number = row[0] if resume and row is not None else self._insert(connection, description)
            connection.execute(
                "UPDATE runs SET pid = ?, boot = ?, started = ? WHERE run = ?",
                (holder.pid, holder.boot, holder.started, number),
            )
        return TuningRun(self, number, holder)

    def close(self) -> None:
        """Close the file; can be called twice."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write everything or nothing of what happens inside."""
        connection = self._connection
        with self._clear_errors():
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _prepare(self) -> None:
        for pragma in ("journal_mode = DELETE", f"synchronous = {SYNCHRONOUS}", "foreign_keys = ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        with self.transaction() as connection:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                for statement in _TABLES:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
        if self._pragma("application_id") != _APPLICATION:
            raise NoStoreError(f"{self.path} is a database, but no store of gapless; name another file")
        if self._pragma("user_version") != VERSION:
            raise NoStoreError(
                f"the store {self.path} has version {self._pragma('user_version')}, this gapless uses "
                f"version {VERSION}; use the gapless that wrote it, or name another store"
            )
        found = self._pragma("quick_check(1)")
        if found != "ok":
            raise StoreError(f"the store {self.path} is damaged ({found}); {_AGAIN}")
        with (
            self.transaction() as connection
        ):  # what may only be read is found out before anything is measured
            connection.execute("DELETE FROM ledger WHERE false")

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    def _insert(self, connection: sqlite3.Connection, about: RunDescription) -> int:
        cursor = connection.execute(
            "INSERT INTO runs (key, candidates, options, problem, device, created, state) "
            "VALUES (?, ?, ?, ?, ?, ?, 'open')",
            (about.key, about.candidates, about.options, about.problem, about.device, _now()),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _refuse_held(self, row: tuple[int, int | None, str | None, int | None], ours: Holder) -> None:
        number, pid, boot, started = row
        if pid is None:
            return
        other = Holder(pid=pid, boot=boot, started=started)
        if other != ours and other.alive:
            raise StoreError(
                f"tuning run {number} in the store {self.path} is being worked on by process {pid}; wait for "
                "it or end it, and go on with --resume; runs with other models or options can go on beside it"
            )

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            hint = next(
                (text for start, text in _HINTS.items() if name.startswith(start)), "it cannot be used"
            )
            kind = NoStoreError if name in _UNFIT else StoreError
            raise kind(f"the store {self.path}: {hint} ({error})") from error
        except OSError as error:
            raise NoStoreError(
                f"the store {self.path}: {_HINTS['SQLITE_CANTOPEN']} ({error.strerror})"
            ) from error


class TuningRun(Closing):
    """One tuning run that this process holds; it is given back at the end of a `with` block."""

    def __init__(self, store: Store, number: int, holder: Holder) -> None:
        self.number = number  # its number in the store
        self._store = store
        self._holder = holder

    def trials(self) -> dict[Visit, str]:
        """Return everything that was recorded so far, also by processes that held the run before."""
        with self._store.transaction() as connection:
            rows = connection.execute(
                "SELECT candidate, rung, round, trial FROM trials WHERE run = ?", (self.number,)
            ).fetchall()
        return {Visit(candidate, rung, number): trial for candidate, rung, number, trial in rows}

    def record(self, visit: Visit, trial: str) -> None:
        """Record what came of a visit; it is there for good when this returns.

        Raises StoreError: it was recorded before, or another process has taken the run over.
        """
        with self._store.transaction() as connection:
            self._require_held(connection)
            connection.execute(
                "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?)", (self.number, *visit, trial, _now())
            )

    def finish(self) -> None:
        """Note that the run has come to its end."""
        with self._store.transaction() as connection:
            self._require_held(connection)
            connection.execute("UPDATE runs SET state = 'finished' WHERE run = ?", (self.number,))

    def close(self) -> None:
        """Give the run back, so that any process may go on with it."""
        with self._store.transaction() as connection:
            connection.execute(
                "UPDATE runs SET pid = NULL, boot = NULL, started = NULL "
                "WHERE run = ? AND pid IS ? AND boot IS ? AND started IS ?",
                (self.number, self._holder.pid, self._holder.boot, self._holder.started),
            )

    def _require_held(self, connection: sqlite3.Connection) -> None:
        row = connection.execute(
            "SELECT pid, boot, started FROM runs WHERE run = ?", (self.number,)
        ).fetchone()
        if row != (self._holder.pid, self._holder.boot, self._holder.started):
            raise StoreError(
                f"tuning run {self.number} in the store {self._store.path} was taken over by another process"
                f"{'' if row is None or row[0] is None else f' ({row[0]})'}; this one ends"
            )


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")

"""The folder of a sweep: what is in it, and who may work in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..executor.progress import Ledger
from ..executor.tuning.store import Store, is_blank
from ..files.run import Entry, alone
from ..files.run_document import SWEEP_STORE_FILE, run_files
from ..formulations.errors import InvalidInputError
from ..formulations.files import save
from .answers import TaskAnswer
from .tasks import SweepTask

CSV_FILE, PARQUET_FILE, PAGE_FILE = "sweep.csv", "sweep.parquet", "sweep.html"
CONTEST_FILE = "comparison.html"
PLANS_FOLDER = "plans"
SWEEP, COMPARE = "sweep", "compare"
"""Commands that keep their answers in such a folder, each in one of its own, and under its name."""

_SHOWN_DIGITS = 12
"""Of the key of a task, in the name of its plan file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """How a sweep is run."""

    out: Path | None = None  # folder for everything that is written; None: nothing is written
    entry: Entry = Entry()
    jobs: int | None = None
    """How many tasks are solved at once; None: as many as cores may be used. Over Ray: as many as it has."""
    address: str | None = None  # of the Ray cluster that solves the tasks; None: child processes do
    allow_no_token: bool = False  # whether a Ray cluster that takes orders from everybody is good enough
    plans: bool = False  # whether each plan is kept as a file
    parquet: bool = False  # whether the table is also written as a Parquet file

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise InvalidInputError(f"jobs is {self.jobs}, must be at least 1")
        if self.out is None and (self.plans or self.parquet or self.entry.resume):
            raise InvalidInputError("plans, Parquet files and going on need a folder: name one with out")


@contextmanager
def opened(options: SweepOptions, command: str) -> Iterator[Ledger]:
    """Hold the folder of a sweep or of a comparison, and open the store of its answers."""
    if options.out is None:
        with Store(":memory:") as store:
            yield store
        return
    with alone(options.out):
        path = options.out / SWEEP_STORE_FILE
        if options.entry.overwrite:
            for stale in _files(options.out):
                stale.unlink(missing_ok=True)
        elif path.exists() and not is_blank(path) and not options.entry.resume:
            raise InvalidInputError(
                f"{options.out} holds a sweep, or a comparison. Nothing was changed. What you can do:",
                [
                    "keep it, and write to another folder (--out)",
                    "go on with it, what is answered is not solved again: --resume",
                    "remove it first: --overwrite",
                ],
            )
        elif options.entry.resume and not path.exists() and run_files(options.out):
            raise _of_another(options.out, "a run of `gapless tune` or `gapless profile`")
        with Store(path) as store:
            for other in {SWEEP, COMPARE} - {command}:
                if store.kept(other, ""):
                    raise _of_another(options.out, f"what `gapless {other}` found")
            yield store


def _of_another(folder: Path, what: str) -> InvalidInputError:
    return InvalidInputError(
        f"{folder} holds {what}, with which this command cannot go on. Nothing was changed; name another "
        "folder with --out"
    )


def _files(folder: Path) -> list[Path]:
    """Return the files of a sweep in a folder."""
    names = (SWEEP_STORE_FILE, f"{SWEEP_STORE_FILE}-journal", CSV_FILE, PARQUET_FILE, PAGE_FILE, CONTEST_FILE)
    return [
        *(folder / name for name in names),
        *(folder / PLANS_FOLDER).glob(f"{'[0-9a-f]' * _SHOWN_DIGITS}.json"),
    ]


def plan_file(task: SweepTask, found: TaskAnswer, options: SweepOptions) -> str:
    """Keep the plan of a task as a file, if plans are kept; return its name in the folder, or empty."""
    if not options.plans or options.out is None or not found.plan_file:
        return ""
    name = f"{PLANS_FOLDER}/{task.key[:_SHOWN_DIGITS]}.json"
    path = options.out / name
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        save(found.plan_file, path)
    return name

"""What a run is: the file run.json of a run folder, and the names of the other files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

from ..executor.tuning.store import Holder, is_store
from ..formulations.canonical import digest
from ..formulations.errors import InvalidInputError
from ..formulations.files import Schema, load
from ..formulations.json_files import format_of
from ..formulations.network import Network
from ..formulations.problem import Problem
from ..formulations.validation import STRICT

RUN_FILE = "run.json"
STORE_FILE = "store.sqlite"
SWEEP_STORE_FILE = "sweep.sqlite"
"""The answers of a sweep, or of a comparison of many problems: no run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """One kind of file of a run folder."""

    name: str  # what it is called; * stands for a number or the name of a cost model
    formats: tuple[str, ...] = ()  # what it may say that it is; empty: it is no JSON document
    begins: str = ""  # how its text begins, of a file that is neither JSON nor a store
    what: str = ""  # what it is in words, of files that are no JSON: the others are described by their format

    def defect(self, path: Path) -> str:
        """Return why a file of this name is not one of gapless; empty: it is one."""
        try:
            if self.formats:
                found = format_of(path)
                return "" if found in self.formats else f"its format is {found!r}, not {self.formats[0]!r}"
            if not self.begins:
                return "" if is_store(path) else "it is no store of gapless"
            with path.open("rb") as file:
                begins = file.read(len(self.begins)) == self.begins.encode()
            return "" if begins else f"it does not begin with {self.begins!r}"
        except InvalidInputError as error:
            return error.message
        except OSError as error:
            return f"it cannot be read: {error.strerror or error}"


RUN_FILES = (
    RunFile(name=RUN_FILE, formats=("gapless.run",)),
    RunFile(name="problem.json", formats=("gapless.problem",)),
    RunFile(name="problem-*.json", formats=("gapless.problem",)),
    RunFile(name="deployment.json", formats=("gapless.deployment",)),
    RunFile(name="plan.json", formats=("gapless.plan", "gapless.plans")),
    RunFile(name="tuning.json", formats=("gapless.tuning",)),
    RunFile(name="rounds.json", formats=("gapless.rounds",)),
    RunFile(name="comparison.json", formats=("gapless.comparison",)),
    RunFile(name="pareto.json", formats=("gapless.pareto",)),
    RunFile(name="executions.json", formats=("gapless.executions",)),
    RunFile(name="measurement.json", formats=("gapless.measurement",)),
    RunFile(name="trace.json", formats=("gapless.chrome_trace",)),
    RunFile(name="profile.json", formats=("gapless.profile",)),
    RunFile(name="profile-*.json", formats=("gapless.profile",)),
    RunFile(
        name="table.md",
        begins="| place | candidate ",
        what="every plan and baseline: predicted, measured, why it left",
    ),
    RunFile(name="table.csv", begins="place,candidate,", what="the same as table.md, for spreadsheets"),
    RunFile(name=STORE_FILE, what="every finished measurement; --resume goes on from it"),
)
"""All files that runs write, and those that `gapless run` adds: a report takes them for files of the run."""


def run_file(name: str) -> RunFile | None:
    """Return what a file of a name is in a run folder; None: it is none of a run."""
    return next((known for known in RUN_FILES if fnmatchcase(name, known.name)), None)


def run_files(folder: Path, listed: Collection[str] = ()) -> tuple[Path, ...]:
    """Return the files of a folder that are of its run: of known names, and they hold what they should.

    `listed`: names that the run says it wrote. A name with a number or a cost model in it counts only if it
    is listed: users call files of their own problem-2.json.
    """
    return tuple(path for path, known in _named(folder, listed) if not known.defect(path))


def strangers(folder: Path) -> tuple[tuple[Path, str], ...]:
    """Return the files of a folder that have names of a run and are not of gapless, and why not."""
    found = ((path, known.defect(path)) for path, known in _named(folder))
    return tuple((path, why) for path, why in found if why)


def _named(folder: Path, listed: Collection[str] = ()) -> list[tuple[Path, RunFile]]:
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInputError(f"cannot read {folder}: {error.strerror or error}") from error
    found = ((path, run_file(path.name)) for path in paths)
    return [
        (path, known) for path, known in found if known and (path.name in listed or path.name == known.name)
    ]


class RunState(StrEnum):
    """How far a run has come.

    RUNNING
        Somebody works on it; or was killed, so that nobody could say how it ended.
    FINISHED
        It has come to its end.
    INTERRUPTED
        The user stopped it.
    FAILED
        An error ended it.
    """

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRef:
    """Where a run took place that was started from here (`--on`)."""

    __pydantic_config__: ClassVar[Any] = STRICT

    destination: str
    """What ssh was told."""
    run: str
    """Name of its folder on the board, where a run whose connection was lost goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDocument:
    """What a run is: the file run.json of its folder."""

    __pydantic_config__: ClassVar[Any] = STRICT

    command: str
    """What was asked for: "tune", "profile", or "save_run" of a Python program."""
    networks: tuple[str, ...]
    """Names of the networks."""
    subject: str
    """Digest of what is measured (`subject_of`): runs with the same one can be resumed as each other."""
    gapless: str
    """Version of gapless."""
    started_at: str
    """When it began, ISO 8601 with the offset from UTC; of a resumed run, its last session."""
    state: RunState
    """How far it has come."""
    simulated: bool = False
    """Whether the device is a simulated one."""
    line: str = ""
    """The command line; empty: it was no command."""
    ended_at: str = ""
    """When it ended; empty: it has not."""
    written_at: str = ""
    """When the results that are in the folder were written; empty: there are none yet."""
    engine: str = ""
    units: tuple[str, ...] = ()
    device: str = ""
    """Who ran it, on which units of which device; empty as long as they are not known."""
    files: tuple[str, ...] = ()
    """Names of the results."""
    process: Holder | None = None
    """Who works on it; None when it has ended."""
    board: BoardRef | None = None
    """Where it took place; None: on the machine that has the folder."""

    @property
    def standing(self) -> RunState:
        """How far it has come, as far as that can be told: who was killed has not said that it ended."""
        killed = self.state is RunState.RUNNING and not (self.process and self.process.alive)
        return RunState.INTERRUPTED if killed else self.state

    def __str__(self) -> str:
        simulated = ", simulated" if self.simulated else ""
        moment = self.started_at[:16].replace("T", " ")
        return f"{self.command} {', '.join(self.networks)}{simulated}, {moment}"


RUN = Schema(format="gapless.run", version=1, content=RunDocument)


def subject_of(networks: Sequence[Network], *, device: str = "") -> str:
    """Return a digest of what is measured: networks by their models, wherever these lie.

    `device`: for networks that are tables without models: whose tables.
    """
    known = [
        (network.name, [model.digest for model in network.models] or [device, *network.layer_names])
        for network in networks
    ]
    return digest(known)


def subject_of_problem(problem: Problem) -> str:
    """Return the digest of the networks of a problem."""
    return subject_of(problem.networks, device=problem.platform.name)


def read_run(place: Path) -> RunDocument | None:
    """Return what run is in a folder; None: it does not say.

    Raises InvalidInputError: its run.json is not valid.
    """
    path = place / RUN_FILE
    return load(path, RUN) if path.is_file() else None

"""What a run is: the file run.json of a run folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from ..executor.tuning.leases import Holder
from ..formulations.canonical import digest
from ..formulations.files import Schema, load
from ..formulations.network import Network
from ..formulations.problem import Problem
from ..formulations.validation import STRICT
from .run_names import RUN_FILE


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

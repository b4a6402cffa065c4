"""Engines: one protocol for everything that can run a piece of a model, and its placement receipts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..formulations.availability import Availability
from ..formulations.errors import EngineUnavailableError
from ..formulations.hardware import ProcessingUnit
from ..formulations.validation import FileContent
from .model import Piece, TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIMULATED = "simulated"
"""What receipts call the engine of a simulated device, and `--engine` asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact(FileContent):
    """A piece in the form that an engine opens; travels to worker processes as JSON."""

    engine: str
    """Registry name of the engine that opens it."""
    piece: str
    digest: str
    """Name and digest of the piece it was made from."""
    path: str
    """Absolute path of its file."""
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    """As in the piece, in the order in which a session takes and gives them."""
    most: tuple[int | None, ...] = ()
    """As in the piece: with larger inputs, an engine that computes in 32 bits would be wrong."""


def artifact_of(piece: Piece, *, engine: str, path: Path) -> Artifact:
    """Return what an engine has made of a piece, and put into a file."""
    return Artifact(
        engine=engine,
        piece=piece.name,
        digest=piece.digest,
        path=str(path),
        inputs=piece.inputs,
        outputs=piece.outputs,
        most=piece.most,
    )


def installed_version(found: Availability) -> str:
    """Return the version of an engine that is there.

    Raises
    ------
    EngineUnavailableError
        It is not; the reason says what to install.
    """
    if not found.ok:
        raise EngineUnavailableError(found.reason)
    return found.version


def parse_artifact(data: Mapping[str, Any]) -> Artifact:
    """Return the artifact that `dataclasses.asdict` wrote, after a journey as JSON."""
    specs = {
        side: tuple(TensorSpec(**{**spec, "shape": tuple(spec["shape"])}) for spec in data[side])
        for side in ("inputs", "outputs")
    }
    return Artifact(**{**data, **specs, "most": tuple(data["most"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementReceipt(FileContent):
    """What was asked of an engine for one session, and what it granted."""

    unit: str
    piece: str
    engine: str
    """Who runs what, by which engine (with its version)."""
    asked_backend: str
    granted_backend: str
    """Names in lower case."""
    asked_threads: int | None
    granted_threads: int | None
    """Numbers of threads; None where it has no meaning, or cannot be found out."""
    asked_cores: tuple[int, ...]
    granted_cores: tuple[int, ...] | None
    """Core numbers; `granted_cores` as the kernel says it of *every* thread of the process. None: cannot be
    found out."""
    precision: str = "high"
    memory: str = "normal"
    """As asked; engines do not say what they granted."""
    quota_permille: int | None = None
    """Quota of processor time that was set; None: none. A receipt with a quota is of an emulated unit."""
    compared: bool | None = None
    """Whether its numbers were compared with those of the uncut model before it worked, and agreed. None: it
    was opened to be measured only."""

    @property
    def mismatches(self) -> tuple[str, ...]:
        """What was granted otherwise than asked, in words; empty for a good receipt."""
        found = []
        for what, asked, granted in (
            ("backend", self.asked_backend, self.granted_backend),
            ("threads", self.asked_threads, self.granted_threads),
            ("cores", self.asked_cores or None, self.granted_cores),
        ):
            if asked is not None and granted is not None and asked != granted:
                found.append(f"{what}: asked for {asked}, got {granted}")
        return tuple(found)


def parse_receipt(data: Mapping[str, Any]) -> PlacementReceipt:
    """Return the receipt that `dataclasses.asdict` wrote, after a journey as JSON."""
    lists = {name: tuple(value) for name, value in data.items() if isinstance(value, list)}
    return PlacementReceipt(**{**data, **lists})


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """Median time of one operator inside a session.

    Attributes
    ----------
    output
        Name of the operator's (first) output tensor.
    kind
        The engine's own name of the operator type.
    time_us
        Median in microseconds.
    """

    output: str
    kind: str
    time_us: float


class Session(Protocol):
    """One artifact, open on one unit, in this process.

    `copy_in`, `run`, `copy_out` are three calls so that copies are timed apart. `run` may destroy
    the inputs: they are copied in again before every run.
    """

    @property
    def artifact(self) -> Artifact:
        """What it runs."""
        ...

    @property
    def receipt(self) -> PlacementReceipt:
        """What was granted."""
        ...

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the inputs (C-contiguous, in the order of `artifact.inputs`) into the engine."""
        ...

    def run(self) -> None:
        """Compute; returns when the outputs are there. Releases the interpreter lock where it can."""
        ...

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the outputs into given arrays (C-contiguous, in the order of `artifact.outputs`)."""
        ...

    def operator_times(
        self, arrays: Sequence[NDArray[Any]], *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return the time of every operator in order, or None where the engine cannot tell them apart."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


class Engine(Protocol):
    """Something that runs pieces: MNN, ONNX Runtime, Python functions."""

    @property
    def name(self) -> str:
        """Registry name."""
        ...

    def availability(self) -> Availability:
        """Say whether it works here, without loading anything heavy."""
        ...

    def backends(self) -> tuple[str, ...]:
        """Return its backends that really work on this machine, lower case, "cpu" first."""
        ...

    def takes(self, kind: str) -> bool:
        """Return whether it can run contents of a kind ("onnx", "callable")."""
        ...

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        """Bring pieces into its own form, from its cache where they have been before.

        Parameters
        ----------
        pieces
            Any number at once; conversions share child processes.
        folder
            Where to put what it makes; None: in the cache of the user.

        Raises
        ------
        ConversionError
            A piece cannot be translated; the message names it and says why.
        """
        ...

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:
        """Open a session in this process, which has been pinned to the cores of the unit before.

        Raises
        ------
        PlacementError
            Something else was granted than asked.
        ExecutionError
            The artifact cannot be opened.
        """
        ...

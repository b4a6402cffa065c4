"""What an exported folder holds: `manifest.json`, which programs other than gapless can read, too.

No field has a default, because defaults are left out of the file, and who reads it shall not have to
know them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...formulations.errors import InvalidInputError
from ...formulations.files import Schema
from ...formulations.validation import Defects, FileContent
from .kinds import ExportKind

MANIFEST_NAME = "manifest.json"
RUNNER_NAME = "run.py"
SCRIPT_NAME = "taskset.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtSettings(FileContent):
    """Session options of ONNX Runtime, by their names there."""

    providers: tuple[str, ...]
    """Execution providers; the first one has to be granted."""
    intra_op_num_threads: int
    inter_op_num_threads: int
    execution_mode: str
    """Attributes of `SessionOptions`; the mode is a name in `ExecutionMode`."""
    config: dict[str, str]
    """Entries for `add_session_config_entry`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MnnSettings(FileContent):
    """Settings of an MNN session."""

    config: dict[str, str | int]
    """What `createSession` takes, by its names there."""
    granted: tuple[int, ...]
    """Numbers of the backends that count as granted (`getSessionInfo(session, 2)`): MNN turns a backend that
    is not there into the CPU, and says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedUnit(FileContent):
    """A unit that the plan uses."""

    name: str
    kind: str
    cores: tuple[int, ...]
    threads: int | None
    quota_permille: int | None
    """As in `ProcessingUnit`. A quota is a fact about the plan: the runner sets none."""
    backend: str
    precision: str
    memory: str
    """What its engine is asked for."""
    session: OrtSettings | MnnSettings | None
    """The same in the words of the engine; None: this engine cannot drive the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTensor(FileContent):
    """Name, shape and element type (numpy name) of a tensor in a task slot."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenTensor(FileContent):
    """A tensor that a chunk reads."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """What it is."""
    source: int | None
    """Number of the chunk that makes it; None: it is an input of the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedStep(FileContent):
    """One session of a chunk; a chunk has several only where several models follow each other."""

    file: str
    """Name of the model file."""
    prefix: str
    """What precedes the names of its tensors in the task slot."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """Its tensors in its own order, by their names in the file."""
    most: tuple[int | None, ...] = ()
    """Of each input, the largest number with which an engine of 32 bits is right (see `Piece`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedChunk(FileContent):
    """One chunk of a stream."""

    number: int
    """Its place in the stream, from 0."""
    start: int
    stop: int
    """Layers [start, stop) of the network."""
    unit: str
    """Name of the unit."""
    predicted_us: int | None
    """Time that the problem charges for it, microseconds."""
    steps: tuple[ExportedStep, ...]
    """What to run, in order."""
    takes: tuple[TakenTensor, ...]
    """What it reads, wherever that was made: a tensor whose source is not the chunk before has jumped over
    others."""
    gives: tuple[ExportedTensor, ...]
    """What it makes."""
    alive: tuple[str, ...]
    """Names of the tensors that have to be there when it begins, for itself and for what comes after it, in
    the order in which the runner sends them from process to process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedStream(FileContent):
    """Requests of one network that all pass through the same chunks."""

    name: str
    network: str
    """Its own name, and that of the network."""
    slots: int
    """Most requests on their way at once."""
    arrival_us: int
    """When its request comes in, from the beginning of a round; 0 where there are no rounds."""
    chunks: tuple[ExportedChunk, ...]
    """In order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedNetwork(FileContent):
    """A network as a whole."""

    name: str
    """Its name."""
    inputs: tuple[ExportedTensor, ...]
    outputs: tuple[ExportedTensor, ...]
    """What goes in and what comes out."""
    sample: str
    """File (.npz) of random inputs; the first dimension counts them."""
    expected: str | None
    """File of what the uncut model makes of them; None: nobody was there to compute it."""
    random: tuple[str, ...] = ()
    """Outputs that come from random operators: they are compared with nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTurn(FileContent):
    """A chunk that a unit serves: the name of its stream, and its number there."""

    stream: str
    chunk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRounds(FileContent):
    """That the streams are the requests of one workload (see `Rounds`)."""

    mode: str
    """Either "batch" or "stream"."""
    task_slots: int | None
    """Most requests of all streams on their way at once, or None."""
    turns: tuple[ExportedTurn, ...] = ()
    """All chunks of a round, in the order in which each unit serves its own ones. Left out: each unit serves
    them in the order of the streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted(FileContent):
    """What the judge says of the plan, microseconds; None where that has no meaning."""

    period_us: int | None
    latency_us: int | None
    makespan_us: int | None
    """As in a score; the period of several pipelines is that of their results together."""
    engine: str
    device: str
    """Who ran the layers when the costs were measured, and on what; empty: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(FileContent):
    """Everything that is needed to run the exported files, or to know where they come from."""

    kind: ExportKind
    engine: str
    """What was asked for, and which engine the model files are for."""
    gapless: str
    """Version that wrote it."""
    plan_id: str | None
    deployment_id: str
    problem: str
    """What was exported: ids of plan (None: replicas) and deployment, fingerprint of the problem."""
    platform: str
    """Name of the device that it was planned for."""
    predicted: Predicted
    """What to expect."""
    tolerance: float
    """Largest relative error that counts as equal."""
    units: tuple[ExportedUnit, ...]
    networks: tuple[ExportedNetwork, ...]
    streams: tuple[ExportedStream, ...]
    """What there is, and who does what. A unit serves the requests with the same number in the order of the
    streams, or of the turns of `rounds`."""
    rounds: ExportedRounds | None
    """How requests come in that belong together; None: each stream lets them in by itself."""
    files: dict[str, str]
    """SHA-256 of every other file of the folder, by name."""
    quantised: bool = False
    """Whether a network rounds to eight bits on the way (see `executor.comparing.Allowed`)."""
    numbers: str = ""
    """What is known of the numbers of these files, in words: how they compared with those of the uncut model
    on the device where they were exported, or that they were not compared, and why. "": an older version
    wrote them."""

    def __post_init__(self) -> None:
        steps = [step for stream in self.streams for chunk in stream.chunks for step in chunk.steps]
        samples = [name for network in self.networks for name in (network.sample, network.expected) if name]
        defects = Defects("export")
        for name in (*self.files, *(step.file for step in steps), *samples):
            # An older export is removed by these names: they must not lead elsewhere.
            if "/" in name or "\\" in name or "\0" in name or name in ("", ".", "..", MANIFEST_NAME):
                defects.add(f"{name!r} is no name of a file in its folder")
        defects.raise_as(InvalidInputError)


EXPORT = Schema(format="gapless.export", version=1, content=Manifest)

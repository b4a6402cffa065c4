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
    """Session options of ONNX Runtime, by their names there.

    Attributes
    ----------
    providers
        Execution providers; the first one has to be granted.
    intra_op_num_threads, inter_op_num_threads, execution_mode
        Attributes of `SessionOptions`; the mode is a name in `ExecutionMode`.
    config
        Entries for `add_session_config_entry`.
    """

    providers: tuple[str, ...]
    intra_op_num_threads: int
    inter_op_num_threads: int
    execution_mode: str
    config: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class MnnSettings(FileContent):
    """Settings of an MNN session.

    Attributes
    ----------
    config
        What `createSession` takes, by its names there.
    granted
        Numbers of the backends that count as granted (`getSessionInfo(session, 2)`): MNN turns a backend
        that is not there into the CPU, and says nothing.
    """

    config: dict[str, str | int]
    granted: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedUnit(FileContent):
    """A unit that the plan uses.

    Attributes
    ----------
    name, kind, cores, threads, quota_permille
        As in `ProcessingUnit`. A quota is a fact about the plan: the runner sets none.
    backend, precision, memory
        What its engine is asked for.
    session
        The same in the words of the engine; None: this engine cannot drive the unit.
    """

    name: str
    kind: str
    cores: tuple[int, ...]
    threads: int | None
    quota_permille: int | None
    backend: str
    precision: str
    memory: str
    session: OrtSettings | MnnSettings | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTensor(FileContent):
    """Name, shape and element type (numpy name) of a tensor in a task slot."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenTensor(FileContent):
    """A tensor that a chunk reads.

    Attributes
    ----------
    name, shape, dtype
        What it is.
    source
        Number of the chunk that makes it; None: it is an input of the network.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    source: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedStep(FileContent):
    """One session of a chunk; a chunk has several only where several models follow each other.

    Attributes
    ----------
    file
        Name of the model file.
    prefix
        What precedes the names of its tensors in the task slot.
    inputs, outputs
        Its tensors in its own order, by their names in the file.
    """

    file: str
    prefix: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedChunk(FileContent):
    """One chunk of a stream.

    Attributes
    ----------
    number
        Its place in the stream, from 0.
    start, stop
        Layers [start, stop) of the network.
    unit
        Name of the unit.
    predicted_us
        Time that the problem charges for it, microseconds.
    steps
        What to run, in order.
    takes
        What it reads, wherever that was made: a tensor whose source is not the chunk before has jumped over
        others.
    gives
        What it makes.
    alive
        Names of the tensors that have to be there when it begins, for itself and for what comes after it, in
        the order in which the runner sends them from process to process.
    """

    number: int
    start: int
    stop: int
    unit: str
    predicted_us: int | None
    steps: tuple[ExportedStep, ...]
    takes: tuple[TakenTensor, ...]
    gives: tuple[ExportedTensor, ...]
    alive: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedStream(FileContent):
    """Requests of one network that all pass through the same chunks.

    Attributes
    ----------
    name, network
        Its own name, and that of the network.
    slots
        Most requests on their way at once.
    arrival_us
        When its request comes in, from the beginning of a round; 0 where there are no rounds.
    chunks
        In order.
    """

    name: str
    network: str
    slots: int
    arrival_us: int
    chunks: tuple[ExportedChunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedNetwork(FileContent):
    """A network as a whole.

    Attributes
    ----------
    name
        Its name.
    inputs, outputs
        What goes in and what comes out.
    sample
        File (.npz) of random inputs; the first dimension counts them.
    expected
        File of what the uncut model makes of them; None: nobody was there to compute it.
    """

    name: str
    inputs: tuple[ExportedTensor, ...]
    outputs: tuple[ExportedTensor, ...]
    sample: str
    expected: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTurn(FileContent):
    """A chunk that a unit serves: the name of its stream, and its number there."""

    stream: str
    chunk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRounds(FileContent):
    """That the streams are the requests of one workload (see `Rounds`).

    Attributes
    ----------
    mode
        "batch" or "stream".
    task_slots
        Most requests of all streams on their way at once, or None.
    turns
        All chunks of a round, in the order in which each unit serves its own ones. Left out: each unit serves
        them in the order of the streams.
    """

    mode: str
    task_slots: int | None
    turns: tuple[ExportedTurn, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted(FileContent):
    """What the judge says of the plan, microseconds; None where that has no meaning.

    Attributes
    ----------
    period_us, latency_us, makespan_us
        As in a score; the period of several pipelines is that of their results together.
    engine, device
        Who ran the layers when the costs were measured, and on what; empty: not known.
    """

    period_us: int | None
    latency_us: int | None
    makespan_us: int | None
    engine: str
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(FileContent):
    """Everything that is needed to run the exported files, or to know where they come from.

    Attributes
    ----------
    kind, engine
        What was asked for, and which engine the model files are for.
    gapless
        Version that wrote it.
    plan_id, deployment_id, problem
        What was exported: ids of plan (None: replicas) and deployment, fingerprint of the problem.
    platform
        Name of the device that it was planned for.
    predicted
        What to expect.
    tolerance
        Largest relative error that counts as equal.
    units, networks, streams
        What there is, and who does what. A unit serves the requests with the same number in the order of
        the streams, or of the turns of `rounds`.
    rounds
        How requests come in that belong together; None: each stream lets them in by itself.
    files
        SHA-256 of every other file of the folder, by name.
    quantised
        Whether a network rounds to eight bits on the way (see `executor.comparing.Allowed`).
    numbers
        What is known of the numbers of these files, in words: how they compared with those of the uncut
        model on the device where they were exported, or that they were not compared, and why. "": an older
        version wrote them.
    """

    kind: ExportKind
    engine: str
    gapless: str
    plan_id: str | None
    deployment_id: str
    problem: str
    platform: str
    predicted: Predicted
    tolerance: float
    units: tuple[ExportedUnit, ...]
    networks: tuple[ExportedNetwork, ...]
    streams: tuple[ExportedStream, ...]
    rounds: ExportedRounds | None
    files: dict[str, str]
    quantised: bool = False
    numbers: str = ""

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

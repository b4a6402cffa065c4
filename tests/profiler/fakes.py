"""A model with known costs, an engine that only pretends, and a bench that knows the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.executor.comparing import Allowed
from gapless.executor.engine import Artifact, Engine, OperatorTime, PlacementReceipt, Session
from gapless.executor.model import Model, Piece, TensorSpec
from gapless.executor.progress import Forgetful, Ledger, Step
from gapless.formulations.availability import Availability
from gapless.formulations.errors import ConversionError, PlacementError, ProfilingError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, ModelRef, Network, Tensor
from gapless.profiler.feed import Feed
from gapless.profiler.hops import Trial
from gapless.profiler.measuring import NOTHING, Bench, PreparedPiece
from gapless.profiler.preparing import Preparers
from gapless.profiler.profile import ProfileOptions
from gapless.profiler.records import MeasuringProgress, MeasuringSetting, RecordedBench
from gapless.profiler.sampling import Effort, Samples
from gapless.profiler.slowdown.contention.features import Features
from gapless.profiler.summary import Timing, timing
from gapless.profiler.survey import Survey, with_spares

PLATFORM = Platform(
    name="two",
    units=(
        ProcessingUnit(name="big", cores=(0,), threads=1),
        ProcessingUnit(name="little", cores=(1,), threads=1),
        ProcessingUnit(name="all", cores=(0, 1), threads=2),
    ),
)


@dataclass(frozen=True)
class FakeContent:
    text: str
    kind: str = "fake"

    def read(self) -> bytes:
        return self.text.encode()


class FakeModel:
    """Layers in a row, float tensors of given sizes between them; several models follow at `seams`."""

    def __init__(
        self, sizes: Sequence[int], *, seams: Sequence[int] = (), forbidden: Sequence[int] = ()
    ) -> None:
        self.sizes = tuple(sizes)
        self.seams = tuple(seams)
        count = len(sizes) - 1
        made = [
            Tensor(name=f"t{b}", bytes=4 * sizes[b], source=b - 1, targets=(b,)) for b in range(count + 1)
        ]
        fed = [Tensor(name=f"in{s}", bytes=4 * sizes[s], source=-1, targets=(s,)) for s in seams]
        ends = {s: Tensor(name=f"t{s}", bytes=4 * sizes[s], source=s - 1, targets=(count,)) for s in seams}
        self.network = Network(
            name="fake",
            layers=tuple(Layer(name=f"layer{i}", flops=i + 1) for i in range(count)),
            tensors=(*(ends.get(b, tensor) for b, tensor in enumerate(made)), *fed),
            forbidden_cuts=tuple(forbidden),
            models=(ModelRef(locator="fake.model", digest="0123456789abcdef" * 4),),
        )
        self.references = 0

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return (self._input(0), *(self._input(seam) for seam in self.seams))

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return tuple(self._made(stop) for stop in (*self.seams, len(self.sizes) - 1))

    def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        ends = [start, *(seam for seam in self.seams if start < seam < stop), stop]
        return tuple(self._piece(a, b) for a, b in pairwise(ends))

    def sample_inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        return {spec.name: np.full(spec.shape, seed, dtype="float32") for spec in self.inputs}

    def reference(
        self, inputs: Mapping[str, NDArray[Any]], *, also: Collection[str] = ()
    ) -> dict[str, NDArray[Any]]:
        self.references += 1
        made = {f"t{b}": np.full(self.sizes[b], b, dtype="float32") for b in range(1, len(self.sizes))}
        return {name: made[name] for name in {*also, *(spec.name for spec in self.outputs)}}

    def layer_of(self, tensor: str) -> int | None:
        """Inner names look like "t5.conv": made by layer 4."""
        name = tensor.partition(".")[0].removeprefix("t")
        return int(name) - 1 if name.isdigit() else None

    def _piece(self, start: int, stop: int) -> Piece:
        return Piece(
            name=f"fake[{start}:{stop})",
            digest=hashlib.sha256(f"{start}:{stop}".encode()).hexdigest(),
            inputs=(self._input(start),),
            outputs=(self._made(stop),),
            content=FakeContent(f"{start}:{stop}"),
        )

    def _input(self, boundary: int) -> TensorSpec:
        name = f"in{boundary}" if boundary in self.seams else f"t{boundary}"
        return TensorSpec(name=name, shape=(self.sizes[boundary],))

    def _made(self, boundary: int) -> TensorSpec:
        return TensorSpec(name=f"t{boundary}", shape=(self.sizes[boundary],))


class FakeEngine:
    """Takes fake pieces; refuses those with a layer in `unconvertible`, and those that `alone` is all of."""

    def __init__(
        self, name: str = "fake", *, unconvertible: Collection[int] = (), alone: Collection[int] = ()
    ) -> None:
        self.name = name
        self.unconvertible = set(unconvertible)
        self.alone = set(alone)
        self.batches: list[int] = []

    def availability(self) -> Availability:
        return Availability(ok=True, version="1.0")

    def backends(self) -> tuple[str, ...]:
        return ("cpu",)

    def takes(self, kind: str) -> bool:
        return kind == "fake"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        self.batches.append(len(pieces))
        for piece in pieces:
            layers = set(layers_of(piece.content.read().decode()))
            if self.unconvertible & layers or (self.alone and layers <= self.alone):
                raise ConversionError(f"{piece.name}: the operator Frobnicate is not known")
        return tuple(
            Artifact(
                engine=self.name,
                piece=piece.name,
                digest=piece.digest,
                path=piece.content.read().decode(),
                inputs=piece.inputs,
                outputs=piece.outputs,
            )
            for piece in pieces
        )

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:
        return FakeSession(artifact, unit)


def layers_of(path: str) -> range:
    start, stop = path.split(":")
    return range(int(start), int(stop))


def receipt_for(artifact: Artifact, unit: ProcessingUnit) -> PlacementReceipt:
    return PlacementReceipt(
        unit=unit.name,
        piece=artifact.piece,
        engine="fake 1.0",
        asked_backend="cpu",
        granted_backend="cpu",
        asked_threads=unit.threads,
        granted_threads=unit.threads,
        asked_cores=unit.cores,
        granted_cores=unit.cores,
        quota_permille=unit.quota_permille,
    )


class FakeSession:
    """Adds one to what comes in; refuses to run twice on the same inputs."""

    def __init__(self, artifact: Artifact, unit: ProcessingUnit) -> None:
        if artifact.piece == "fake[9:9)":
            raise PlacementError("fake[9:9) is refused")
        self.artifact = artifact
        self.receipt = receipt_for(artifact, unit)
        self.fresh = False
        self.runs = 0
        self.closed = False
        self.held: float = 0.0

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        assert [array.shape for array in arrays] == [spec.shape for spec in self.artifact.inputs]
        self.held = float(arrays[0].flat[0])
        self.fresh = True

    def run(self) -> None:
        assert self.fresh
        assert not self.closed
        self.fresh = False
        self.runs += 1

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        for array in arrays:
            array[...] = self.held + 1

    def operator_times(
        self, arrays: Sequence[NDArray[Any]], *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        self.copy_in(arrays)  # what the inputs hold becomes visible to the tests
        return (OperatorTime(output=self.artifact.outputs[0].name, kind="Sum", time_us=self.held),)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeBench:
    """A bench whose times follow from a formula, without any process.

    Attributes
    ----------
    layer_us
        By unit and layer.
    platform
        The units.
    slowdown
        Factor on runs beside load.
    unable
        Layers that a unit cannot run.
    operator_factor, callback_us
        What operator times are too large by; None: no operator times.
    tensor
        What precedes the number of a tensor in the names of operators.
    wobble
        By unit: factors on consecutive measurements of the second piece that is measured there, the
        reference (the whole is the first); the last one stays.
    wrong
        By engine: layers whose numbers are wrong.
    """

    layer_us: Mapping[str, Sequence[float]]
    platform: Platform = PLATFORM
    overhead_us: float = 20.0
    per_tensor_us: float = 3.0
    per_kilobyte_us: float = 0.1
    slowdown: float = 1.5
    unable: Mapping[str, Collection[int]] = field(default_factory=dict)
    operator_factor: float | None = 0.95
    callback_us: float = 0.0
    tensor: str = "t"
    wobble: Mapping[str, Sequence[float]] = field(default_factory=dict)
    wrong: Mapping[str, Collection[int]] = field(default_factory=dict)
    asked: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    def start(self, unit: str) -> None:
        """It is always ready."""

    def timing(
        self,
        unit: str,
        prepared: PreparedPiece,
        *,
        effort: Effort,
        beside: Mapping[str, PreparedPiece] = NOTHING,
    ) -> Timing:
        artifact, layers = prepared.artifact, layers_of(prepared.artifact.path)
        if set(layers) & set(self.unable.get(unit, ())):
            raise PlacementError(f"{artifact.piece} asks for a backend that {unit} has not")
        self.asked.append((unit, artifact.piece, tuple(beside)))
        factor = (self.slowdown if beside else 1.0) * self._wobble(unit, artifact.piece)
        run = factor * (self.overhead_us + sum(self.layer_us[unit][layer] for layer in layers))
        copies = [factor * self.copy_us(specs) for specs in (artifact.inputs, artifact.outputs)]
        count = effort.min_repetitions
        columns = [(round(1000 * time_us),) * count for time_us in (copies[0], run, copies[1])]
        samples = Samples(copy_in_ns=columns[0], run_ns=columns[1], copy_out_ns=columns[2])
        return timing(samples, receipt_for(artifact, self.platform.units[self.platform.index_of(unit)]))

    def operators(
        self, unit: str, prepared: PreparedPiece, *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        if self.operator_factor is None:
            return None
        return tuple(
            OperatorTime(
                output=f"{self.tensor}{layer + 1}",
                kind="Op",
                time_us=self.operator_factor * self.layer_us[unit][layer] + self.callback_us,
            )
            for layer in layers_of(prepared.artifact.path)
        )

    def error(self, unit: str, prepared: PreparedPiece, *, allowed: Allowed) -> float:
        layers = set(layers_of(prepared.artifact.path))
        return 0.5 if layers & set(self.wrong.get(prepared.artifact.engine, ())) else 1e-6

    def features(self, unit: str, prepared: PreparedPiece, *, runs: int) -> Features:
        raise ProfilingError("nothing is counted here")

    def copy_us(self, specs: Sequence[TensorSpec]) -> float:
        return sum(self.per_tensor_us + self.per_kilobyte_us * spec.bytes / 1024 for spec in specs)

    def _wobble(self, unit: str, piece: str) -> float:
        here = [asked for where, asked, beside in self.asked if where == unit and not beside]
        factors = self.wobble.get(unit, (1.0,))
        is_reference = len(here) > 1 and piece == here[1]
        return factors[min(here.count(piece), len(factors)) - 1] if is_reference else 1.0


class Shelf:
    """A ledger in memory, which can fail after some entries, as a killed job does."""

    def __init__(self, *, dies_after: int | None = None) -> None:
        self.entries: dict[tuple[str, str], str] = {}
        self.dies_after = dies_after

    def find(self, kind: str, key: str) -> str | None:
        return self.entries.get((kind, key))

    def keep(self, kind: str, key: str, text: str) -> None:
        if self.dies_after is not None and len(self.entries) >= self.dies_after:
            raise KeyboardInterrupt
        self.entries[kind, key] = text


@contextmanager
def surveying(
    bench: Bench,
    model: Model,
    options: ProfileOptions,
    *,
    platform: Platform = PLATFORM,
    engines: Mapping[str, Engine] | None = None,
    ledger: Ledger = Forgetful(),
    steps: list[Step] | None = None,
    trial: Trial | None = None,
) -> Iterator[Survey]:
    """Return a survey on a fake bench; `engines`: by unit, None: one fake engine for all."""
    places = with_spares(platform, options.most_workers)
    by_unit = engines or dict.fromkeys(places.unit_names, FakeEngine())
    named = {unit: f"{engine.name} 1.0" for unit, engine in by_unit.items()}
    feed = Feed(model, seed=0)
    recorded = RecordedBench(
        bench=bench,
        platform=places,
        setting=MeasuringSetting(
            engine=" + ".join(dict.fromkeys(named.values())), device="a test", digest="d1"
        ),
        ledger=ledger,
        effort=options.effort,
        retries=options.retries,
        progress=MeasuringProgress(report=(steps if steps is not None else []).append),
        engines=named,
    )
    try:
        yield Survey(
            model=model,
            platform=platform,
            preparers=Preparers(model, by_unit, feed),
            bench=recorded,
            options=options,
            trial=trial,
        )
    finally:
        feed.close()

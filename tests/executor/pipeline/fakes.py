"""A tiny engine and models for it: numpy functions by name, some of which go wrong on purpose."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.executor.engine import Artifact, OperatorTime, PlacementReceipt
from gapless.executor.model import Piece, TensorSpec
from gapless.formulations.availability import Availability
from gapless.formulations.errors import EngineUnavailableError, ExecutionError, UnfitNumbersError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor

ENGINE = "tests.executor.pipeline.fakes:FakeEngine"
Array = NDArray[Any]


def cores() -> list[int]:
    """Return usable cores."""
    return sorted(os.sched_getaffinity(0))


def platform(*names: str) -> Platform:
    """Return units that take turns on the usable cores."""
    usable = cores()
    return Platform(
        name="here",
        units=tuple(
            ProcessingUnit(name=name, cores=(usable[index % len(usable)],), threads=1)
            for index, name in enumerate(names)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeLayer:
    """A function by name, and the tensors that it takes and makes."""

    does: str
    takes: tuple[str, ...]
    makes: str
    value: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeContent:
    layers: tuple[FakeLayer, ...]
    kind: str = "fake"

    def read(self) -> bytes:
        return json.dumps(
            [[layer.does, layer.takes, layer.makes, layer.value] for layer in self.layers]
        ).encode()


class FakeModel:
    """Layers of functions on vectors of one length.

    Parameters
    ----------
    name, layers
        Of the network; the input is "x".
    outputs
        Tensors that it puts out.
    length
        Of all vectors.
    joints
        Layers before which a chunk is broken into two pieces.
    """

    def __init__(
        self,
        name: str,
        layers: Sequence[FakeLayer],
        *,
        outputs: Sequence[str] | None = None,
        length: int = 16,
        joints: Sequence[int] = (),
    ) -> None:
        self.layers = tuple(layers)
        self.joints = joints
        self._length = length
        self._outputs = tuple(outputs or [layers[-1].makes])
        count = len(self.layers)
        sources = {"x": -1} | {layer.makes: index for index, layer in enumerate(self.layers)}
        tensors = []
        for tensor, source in sources.items():
            users = [i for i, layer in enumerate(self.layers) if tensor in layer.takes]
            targets = tuple(users + [count] * (tensor in self._outputs))
            if targets:
                tensors.append(Tensor(name=tensor, bytes=4 * length, source=source, targets=targets))
        self._network = Network(
            name=name,
            layers=tuple(Layer(name=f"{index}") for index in range(count)),
            tensors=tuple(tensors),
        )

    @property
    def network(self) -> Network:
        return self._network

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return (self._spec("x"),)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return tuple(map(self._spec, self._outputs))

    def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        ends = [start, *(joint for joint in self.joints if start < joint < stop), stop]
        return tuple(self._piece(a, b) for a, b in pairwise(ends))

    def _piece(self, start: int, stop: int) -> Piece:
        content = FakeContent(layers=self.layers[start:stop])
        tensors = self._network.tensors
        return Piece(
            name=f"{self._network.name}[{start}:{stop})",
            digest=hashlib.sha256(content.read()).hexdigest(),
            inputs=tuple(
                self._spec(t.name)
                for t in tensors
                if t.source < start and any(start <= target < stop for target in t.targets)
            ),
            outputs=tuple(
                self._spec(t.name) for t in tensors if start <= t.source < stop and max(t.targets) >= stop
            ),
            content=content,
        )

    def layer_of(self, tensor: str) -> int | None:
        """Say that nothing is known."""
        return None

    def sample_inputs(self, seed: int) -> dict[str, Array]:
        rng = np.random.default_rng(seed)
        return {"x": rng.uniform(1, 2, self._length).astype(np.float32)}

    def reference(self, inputs: Mapping[str, Array], *, also: Collection[str] = ()) -> dict[str, Array]:
        known = dict(inputs)
        for layer in self.layers:
            known[layer.makes] = RIGHT[layer.does](layer.value, *(known[name] for name in layer.takes))
        return {name: known[name] for name in (*self._outputs, *also)}

    def _spec(self, name: str) -> TensorSpec:
        return TensorSpec(name=name, shape=(self._length,))


def chain(*does: str | tuple[str, float], name: str = "net", **options: Any) -> FakeModel:
    """Return a chain of layers x -> t0 -> t1 ..., each a function or (function, value)."""
    pairs = [(item, 1.0) if isinstance(item, str) else item for item in does]
    layers = [
        FakeLayer(does=what, takes=(f"t{index - 1}" if index else "x",), makes=f"t{index}", value=value)
        for index, (what, value) in enumerate(pairs)
    ]
    return FakeModel(name, layers, **options)


def _total(value: float, *arrays: Array) -> Array:
    result: Array = np.add.reduce(arrays, dtype=np.float32) + np.float32(value)
    return result


def _scale(value: float, *arrays: Array) -> Array:
    return arrays[0] * np.float32(value)


def _same(value: float, *arrays: Array) -> Array:
    return arrays[0]


def _sleep(value: float, *arrays: Array) -> Array:
    time.sleep(value)
    return arrays[0]


def _burn(value: float, *arrays: Array) -> Array:
    until = time.thread_time() + value
    while time.thread_time() < until:
        pass
    return arrays[0]


def _crash(value: float, *arrays: Array) -> Array:
    os.kill(os.getpid(), signal.SIGKILL)
    return arrays[0]


def _crash_once(value: float, *arrays: Array) -> Array:
    """Die when the first number of the input is `value`, but not a second time: a file remembers."""
    mark = Path(os.environ["GAPLESS_TEST_MARK"])
    if arrays[0][0] == value and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return arrays[0]


def _freeze(value: float, *arrays: Array) -> Array:
    os.kill(os.getpid(), signal.SIGSTOP)
    return arrays[0]


def _fail(value: float, *arrays: Array) -> Array:
    raise ExecutionError("the fake engine cannot do that")


def _refuse(value: float, *arrays: Array) -> Array:
    if arrays[0][0] >= value:
        raise UnfitNumbersError(f"{arrays[0][0]} is too large")
    return arrays[0]


def _stumble(value: float, *arrays: Array) -> Array:
    raise ZeroDivisionError("by design")


def _wrong(value: float, *arrays: Array) -> Array:
    return arrays[0] + np.float32(0.5)


def _nan(value: float, *arrays: Array) -> Array:
    return arrays[0] * np.float32("nan")


RIGHT = {
    "add": _total,
    "scale": _scale,
    "lose nan": _nan,
    **dict.fromkeys(("same", "sleep", "burn", "wrong", "nan"), _same),
    **dict.fromkeys(("crash", "crash once", "freeze", "fail", "refuse", "stumble", "absent"), _same),
}
"""What each function should compute."""

FUNCTIONS = {
    **RIGHT,
    "sleep": _sleep,
    "burn": _burn,
    "crash": _crash,
    "crash once": _crash_once,
    "freeze": _freeze,
    "fail": _fail,
    "refuse": _refuse,
    "stumble": _stumble,
    "wrong": _wrong,
    "nan": _nan,
    "lose nan": _same,
}
"""What it does."""


class FakeSession:
    def __init__(self, artifact: Artifact, unit: ProcessingUnit) -> None:
        self._artifact = artifact
        self._unit = unit
        self._layers = json.loads(artifact.path)
        if any(does == "absent" for does, *_ in self._layers):
            raise EngineUnavailableError("not here")
        self._known: dict[str, Array] = {}

    @property
    def artifact(self) -> Artifact:
        return self._artifact

    @property
    def receipt(self) -> PlacementReceipt:
        return PlacementReceipt(
            unit=self._unit.name,
            piece=self._artifact.piece,
            engine="fake 1",
            asked_backend="cpu",
            granted_backend="cpu",
            asked_threads=self._unit.threads,
            granted_threads=1,
            asked_cores=self._unit.cores,
            granted_cores=tuple(cores()),
        )

    def copy_in(self, arrays: Sequence[Array]) -> None:
        self._known = {
            spec.name: array.copy() for spec, array in zip(self._artifact.inputs, arrays, strict=True)
        }

    def run(self) -> None:
        for does, takes, makes, value in self._layers:
            self._known[makes] = FUNCTIONS[does](value, *(self._known[name] for name in takes))

    def copy_out(self, arrays: Sequence[Array]) -> None:
        for spec, array in zip(self._artifact.outputs, arrays, strict=True):
            array[...] = self._known[spec.name]

    def operator_times(self, arrays: Sequence[Array], *, repetitions: int) -> tuple[OperatorTime, ...] | None:
        return None

    def close(self) -> None:
        pass


class FakeEngine:
    @property
    def name(self) -> str:
        return ENGINE

    def availability(self) -> Availability:
        return Availability(ok=True)

    def backends(self) -> tuple[str, ...]:
        return ("cpu",)

    def takes(self, kind: str) -> bool:
        return kind == "fake"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        return tuple(
            Artifact(
                engine=ENGINE,
                piece=piece.name,
                digest=piece.digest,
                path=piece.content.read().decode(),
                inputs=piece.inputs,
                outputs=piece.outputs,
            )
            for piece in pieces
        )

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> FakeSession:
        return FakeSession(artifact, unit)

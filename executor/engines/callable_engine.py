"""Layers that are Python functions, behind the same protocol as neural networks."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ...formulations.availability import Availability
from ...formulations.errors import ExecutionError, InvalidModelError, PlacementError
from ...formulations.hardware import ProcessingUnit
from ..callable_file import source_of
from ..callable_layers import CallableModel
from ..callables import LayerCall, declared_in, protected
from ..engine import Artifact, OperatorTime, PlacementReceipt, Session, artifact_of
from ..model import Piece, TensorSpec
from .cache import default_cache
from .placement import receipt_of, require_match

if TYPE_CHECKING:
    from numpy.typing import NDArray


class CallableEngine:
    """Calls the functions of a piece, one layer after the other; see `Engine`.

    The functions are those that the user gave for the kind of the unit. Whether one of them really runs
    there, and by how many threads, is its own affair: a receipt says which variants were called.
    """

    @property
    def name(self) -> str:
        """Registry name."""
        return "callable"

    def availability(self) -> Availability:
        """Python is always there."""
        return Availability(ok=True, version=platform.python_version())

    def backends(self) -> tuple[str, ...]:
        """Return "cpu": units of other kinds are what the functions make of them."""
        return ("cpu",)

    def takes(self, kind: str) -> bool:
        """Return whether the content is a pipeline of Python functions."""
        return kind == "callable"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        """Write down which functions to call, one JSON document a piece."""
        return tuple(artifact_of(piece, engine=self.name, path=_written(piece, folder)) for piece in pieces)

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:
        """Load the functions of a piece for a kind of unit.

        Raises PlacementError: a layer has no function for this kind of unit, or this process is not on its
        cores.
        Raises ExecutionError: the file has changed since it was loaded, or cannot be executed any more.
        """
        return CallableSession(artifact, unit)


class CallableSession:
    """The functions of one piece, loaded in this process; see `Session`."""

    def __init__(self, artifact: Artifact, unit: ProcessingUnit) -> None:
        self.artifact = artifact
        self._steps, variants = load_steps(artifact, unit, unit.kind)
        self._inputs = {spec.name: spec.empty() for spec in artifact.inputs}
        self._tensors: dict[str, NDArray[Any]] = {}
        chosen = "+".join(sorted(set(variants)))
        receipt = receipt_of(
            unit,
            artifact.piece,
            f"Python {platform.python_version()}",
            granted_backend=chosen,
            granted_threads=None,
        )
        self.receipt: PlacementReceipt = replace(receipt, asked_backend=chosen)
        require_match(self.receipt)

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the inputs, so that the functions keep nothing of the caller's memory."""
        import numpy as np

        for own, array in zip(self._inputs.values(), arrays, strict=True):
            np.copyto(own, array)

    def run(self) -> None:
        """Call the functions in order.

        Raises ExecutionError: one of them raised an exception, or gave something of another shape or type
        than on the sample; the message names the layer and the piece.
        """
        self._begin()
        for step in self._steps:
            self._call(step)

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the outputs of the last run."""
        import numpy as np

        for spec, array in zip(self.artifact.outputs, arrays, strict=True):
            np.copyto(array, self._tensors[spec.name])

    def operator_times(
        self, arrays: Sequence[NDArray[Any]], *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return the median time of each layer."""
        times_ns: list[list[int]] = [[] for _ in self._steps]
        for _ in range(repetitions):
            self.copy_in(arrays)
            self._begin()
            for step, samples in zip(self._steps, times_ns, strict=True):
                start_ns = perf_counter_ns()
                self._call(step)
                samples.append(perf_counter_ns() - start_ns)
        return tuple(
            OperatorTime(output=step.outputs[0].name, kind=step.layer, time_us=median(samples) / 1000)
            for step, samples in zip(self._steps, times_ns, strict=True)
        )

    def close(self) -> None:
        """Free everything. Can be called twice."""
        self._steps = ()
        self._inputs, self._tensors = {}, {}

    def _begin(self) -> None:
        self._tensors = {name: protected(array) for name, array in self._inputs.items()}

    def _call(self, step: LayerCall) -> None:
        try:
            step.run(self._tensors)
        except ExecutionError as error:
            raise ExecutionError(f"piece {self.artifact.piece!r}: {error}") from error


def _written(piece: Piece, folder: Path | None) -> Path:
    content = piece.content.read()
    if folder is None:
        cache = default_cache()
        return cache.path(piece.digest, ".json") or cache.put(piece.digest, ".json", content)
    path = folder.absolute() / f"{piece.digest}.json"
    path.write_bytes(content)
    return path


def load_steps(
    artifact: Artifact, unit: ProcessingUnit, kind: str
) -> tuple[tuple[LayerCall, ...], tuple[str, ...]]:
    """Return the layers of a piece with their functions for a kind of unit, and which variants these are."""
    document = _document(artifact)
    declared = _declared(artifact, document)
    steps, variants = [], []
    for index, outputs in enumerate(document["outputs"], start=document["start"]):
        (layer,) = declared.functions(index, index + 1)
        variant = layer.variant_for(kind)
        if variant is None:
            raise PlacementError(
                f"piece {artifact.piece!r}: layer {layer.name!r} has no function for unit {unit.name!r} of "
                f"kind {str(kind)!r}, only for {', '.join(map(repr, layer.variants))}"
            )
        variants.append(variant)
        steps.append(
            LayerCall(
                layer=layer.name,
                function=layer.variants[variant],
                inputs=declared.inputs_of(index),
                outputs=tuple(_spec(data) for data in outputs),
            )
        )
    return tuple(steps), tuple(variants)


def _declared(artifact: Artifact, document: Mapping[str, Any]) -> CallableModel:
    """Return the pipeline that a piece was cut from; it is the same as it was then."""
    try:
        source = source_of(document["source"])
        same = source.digest == document["digest"]
        declared = declared_in(source, document["name"]) if same else None
    except InvalidModelError as error:
        raise ExecutionError(f"piece {artifact.piece!r}: {error}") from error
    # The names of the layers tell when a module that it imports has changed.
    layers = declared.layers[document["start"] : document["stop"]] if declared else ()
    if declared is None or [layer.name for layer in layers] != document["layers"]:
        raise ExecutionError(
            f"piece {artifact.piece!r}: {source.where} has changed since it was loaded; load it again, "
            "and profile it again if it does something else now"
        )
    return declared


def _document(artifact: Artifact) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(Path(artifact.path).read_bytes())
    except (OSError, ValueError) as error:
        raise ExecutionError(
            f"piece {artifact.piece!r}: cannot read {artifact.path} ({error}); prepare it again"
        ) from error
    return document


def _spec(data: Mapping[str, Any]) -> TensorSpec:
    return TensorSpec(name=data["name"], shape=tuple(data["shape"]), dtype=data["dtype"])

"""Which backends of an engine really are there: each is asked to open a tiny piece in a child process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from ...formulations.errors import ExecutionError, UnitLostError
from ...formulations.hardware import EngineSettings
from ..engine import parse_artifact
from ..model import Piece, TensorSpec
from ..workers import Link
from .helper import Helper
from .registry import get_engine

LIMIT_S = 60.0
"""How long a backend may take to open a piece: graphics drivers compile their kernels then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relu:
    """A model with one operator: y = Relu(x), float32 1x4, ONNX operator set 13."""

    kind: ClassVar[str] = "onnx"

    def read(self) -> bytes:
        return (
            b'\x08\x08\x12\x00:;\n\x0c\n\x01x\x12\x01y"\x04Relu\x12\x01gZ\x13\n\x01x\x12\x0e\n\x0c\x08\x01'
            b"\x12\x08\n\x02\x08\x01\n\x02\x08\x04b\x13\n\x01y\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x01"
            b"\n\x02\x08\x04B\x04\n\x00\x10\r"
        )


TINY = Piece(
    name="a tiny piece",
    digest=hashlib.sha256(_Relu().read()).hexdigest(),
    inputs=(TensorSpec(name="x", shape=(1, 4)),),
    outputs=(TensorSpec(name="y", shape=(1, 4)),),
    content=_Relu(),
)
"""The piece that backends are tried with."""


def working_backends(engine: str, candidates: Sequence[str]) -> tuple[str, ...]:
    """Return those of some backends that open a piece and say that it is they who run it.

    Raises ExecutionError: the engine cannot even prepare the piece.
    """
    artifact = get_engine(engine).prepare([TINY])[0]
    working = []
    with Helper(f"probe of {engine}", serve, {"artifact": asdict(artifact)}, engines=[engine]) as helper:
        for backend in candidates:
            try:
                answer = helper.ask({"kind": "open", "backend": backend}, limit_s=LIMIT_S)
            except UnitLostError:  # crashed or hung; the next one is asked in a new child
                continue
            if answer["kind"] == "opened":
                working.append(backend)
    return tuple(working)


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of a helper process: open the piece of the settings on each "backend" that is asked for."""
    artifact = parse_artifact(settings["artifact"])
    while (question := link.receive()) is not None:
        unit = replace(link.unit, engine=EngineSettings(backend=question["backend"]))
        try:
            get_engine(artifact.engine).open(artifact, unit).close()
        except ExecutionError:
            link.send({"kind": "refused"})
        else:
            link.send({"kind": "opened"})

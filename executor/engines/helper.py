"""Helper processes: work that may crash, hang or print is done in a child that can be replaced.

Backends are tried in one of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from ...formulations.errors import ExecutionError, UnitLostError
from ...formulations.hardware import EngineSettings, ProcessingUnit
from ..closing import Closing
from ..engine import parse_artifact
from ..model import Piece, TensorSpec
from ..workers import Link, Message, Role, Worker
from .registry import get_engine


class NamelessFile(Closing):
    """A file that is gone as soon as no process has it open any more."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("gapless")

    @property
    def path(self) -> str:
        """What to open in this process, and in children that inherit the descriptor."""
        return f"/proc/self/fd/{self.descriptor}"

    def write(self, data: bytes) -> None:
        """Replace the content."""
        os.ftruncate(self.descriptor, 0)
        view, at = memoryview(data), 0
        while at < len(view):
            at += os.pwrite(self.descriptor, view[at:], at)

    def read(self) -> bytes:
        """Return the content."""
        with open(self.path, "rb") as file:
            return file.read()

    def close(self) -> None:
        """Free it. Can be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Helper(Closing):
    """A child process that answers one question at a time; where one kills it, the next finds a new one.

    `role`, `settings`, `descriptors`, `engines`: as for `Worker`; the role answers each message by exactly
    one. It is not pinned.
    """

    def __init__(
        self,
        name: str,
        role: Role | str,
        settings: Mapping[str, Any],
        *,
        descriptors: Sequence[int] = (),
        engines: Collection[str] | None = None,
    ) -> None:
        self._unit = ProcessingUnit(name=name)
        self._role = role
        self._settings = settings
        self._descriptors = descriptors
        self._engines = engines
        self._worker: Worker | None = None

    def ask(self, question: Message, *, limit_s: float) -> Message:
        """Return the answer to a question.

        Raises GaplessError: what the child raised.
        """
        try:
            if self._worker is None:
                self._worker = Worker(
                    self._unit,
                    self._role,
                    self._settings,
                    descriptors=self._descriptors,
                    engines=self._engines,
                )
            self._worker.send(question)
            answer = self._worker.receive(limit_s)
            if answer is None:
                raise UnitLostError(f"no answer within {limit_s:g} s; the process was ended")
        except BaseException:
            self.close()
            raise
        return answer

    def close(self) -> None:
        """End the child. Can be called twice."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None


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

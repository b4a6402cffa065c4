"""Opening model files of strangers: in a child process, with limits of time and memory.

A file of a few bytes can keep a checker, an inliner or a constant folder busy for ever, make it take all
memory, or crash it. So all of that happens in a child; what comes back is a checked and simplified model.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...formulations.errors import (
    ExecutionError,
    InvalidInputError,
    InvalidModelError,
    OpenShapesError,
    UnitLostError,
)
from ...formulations.hardware import ProcessingUnit
from ...formulations.validation import read_number
from ..closing import Closing
from ..engines.helper import NamelessFile
from ..workers import Link, Message, Worker
from .choices import COMPARING, Simplification

if TYPE_CHECKING:
    from .preparing import Prepared
    from .shapes import Shapes


SECONDS_OPTION = "--open-seconds"
SECONDS_VARIABLE = "GAPLESS_OPEN_SECONDS"
MEMORY_VARIABLE = "GAPLESS_OPEN_MEMORY_MB"

_OUT_OF_MEMORY = "alloc"
"""In the last words of a process that could not go on without memory: std::bad_alloc, "cannot allocate"."""

_LEAST_SECONDS = 45.0
_SECONDS_PER_BYTE = 0.5e-6
"""The slowest of the built-in networks took 0.05 s for each megabyte on a loaded machine."""

_LEAST_BYTES = 2 * 2**30
_BYTES_PER_BYTE = 8
"""Simplification holds a model about five times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningLimits:
    """What opening one model file may take."""

    seconds: float | None = None  # time; None: 45 seconds, and half a second for each megabyte of the model
    memory_bytes: int | None = None  # memory; None: 2 GiB, and eight times the bytes of the model

    @classmethod
    def usual(cls) -> OpeningLimits:
        """Return the limits that the environment sets: `$GAPLESS_OPEN_SECONDS`, `$GAPLESS_OPEN_MEMORY_MB`."""
        memory = _number(MEMORY_VARIABLE)
        return cls(
            seconds=_number(SECONDS_VARIABLE), memory_bytes=None if memory is None else int(memory * 2**20)
        )

    def seconds_for(self, size: int) -> float:
        """Return the time for a model of a given number of bytes."""
        return _LEAST_SECONDS + _SECONDS_PER_BYTE * size if self.seconds is None else self.seconds

    def memory_for(self, size: int) -> int:
        """Return the memory for a model of a given number of bytes."""
        return _LEAST_BYTES + _BYTES_PER_BYTE * size if self.memory_bytes is None else self.memory_bytes


def _number(variable: str) -> float | None:
    """Return the positive number that a variable of the environment has; None: it has none."""
    text = os.environ.get(variable)
    if not text:
        return None
    number = read_number(text)
    if number is None or number <= 0:
        raise InvalidInputError(f"{variable} is {text!r}, must be a positive number")
    return number


class Opener(Closing):
    """A child process that opens model files, one after the other; after a death it is a new one.

    `limits`: for each file; None: `OpeningLimits.usual`.
    """

    def __init__(self, limits: OpeningLimits | None = None) -> None:
        self._limits = limits or OpeningLimits.usual()
        self._worker: Worker | None = None
        self._step, self._since = "", 0.0
        self._target = NamelessFile()

    def prepare(
        self,
        path: str | Path,
        *,
        shapes: Shapes,
        materialize: bool = False,
        simplification: Simplification = Simplification.AUTO,
    ) -> Prepared:
        """Do what `preparing.prepare` does, in the child.

        Where the comparison of the simplified model with the file is what cannot be done, it is left out.

        Raises InvalidModelError: as for `prepare`; or a step met a limit, failed, or ended the child: the
        message says which.
        """
        absolute = Path(os.path.abspath(path))
        question = {
            "kind": "open",
            "path": str(absolute),
            "shapes": {name: list(shape) for name, shape in shapes.items()},
            "materialize": materialize,
            "simplification": str(simplification),
            "compared": True,
        }
        self._since = time.monotonic()
        try:
            try:
                answer = self._ask(absolute, question)
            except InvalidModelError:
                if self._step != COMPARING:
                    raise
                self._end()
                answer = self._ask(absolute, {**question, "compared": False})
        except BaseException:
            self._end()
            raise
        if answer["kind"] == "refused":
            refused = OpenShapesError if answer["shapes"] else InvalidModelError
            raise refused(answer["message"], answer["problems"])
        return self._prepared(absolute, answer)

    def close(self) -> None:
        """End the child. Can be called twice."""
        self._end()
        self._target.close()

    def _ask(self, path: Path, question: Message) -> Message:
        """Return what the child found out, while its limits are kept; both questions share the time."""
        self._step = "the start of its process"
        seconds = self._limits.seconds_for(_size(path))
        try:
            worker = self._started()
            worker.send(question)
            while True:
                answer = worker.receive(max(0.0, self._since + seconds - time.monotonic()))
                match answer:
                    case None:
                        allowed = f"{seconds:,.0f} s"
                        raise InvalidModelError(
                            _met(path, self._step, f"the time limit of {allowed}", "more time")
                        )
                    case {"kind": "step", "name": name}:
                        self._step = name
                        if name == COMPARING:  # which may be left out: then there must be time to begin again
                            seconds = (seconds + time.monotonic() - self._since) / 2
                    case {"kind": "size", "bytes": size}:
                        seconds = self._limits.seconds_for(size)
                    case {"kind": "memory", "bytes": most}:
                        allowed = f"{most / 2**30:,.1f} GiB"
                        raise InvalidModelError(
                            _met(path, self._step, f"the memory limit of {allowed}", "more memory")
                        )
                    case _:
                        return answer
        except UnitLostError:
            assert self._worker is not None
            ending = self._worker.ending()
            if _OUT_OF_MEMORY in ending:
                raise InvalidModelError(_met(path, self._step, "its memory limit", "more memory")) from None
            raise InvalidModelError(
                f"the model file {path} cannot be opened: {self._step} ended its process, which {ending}; "
                f"the file is damaged, made to do this, or needs more memory ({MEMORY_VARIABLE}=... in the "
                "environment)"
            ) from None
        except ExecutionError as error:
            raise InvalidModelError(
                f"the model file {path} cannot be opened: {self._step} failed ({error}); if ONNX Runtime "
                "runs this model, please report this with the file"
            ) from None

    def _started(self) -> Worker:
        if self._worker is None:
            settings: Mapping[str, Any] = {
                "target": self._target.path,
                "least_bytes": self._limits.memory_for(0),
                "bytes_per_byte": self._limits.memory_for(1) - self._limits.memory_for(0),
            }
            unit = ProcessingUnit(name="opening of model files")
            self._worker = Worker(
                unit,
                open_there,
                settings,
                descriptors=(self._target.descriptor,),
                engines=["onnx", "onnxruntime"],
            )
        return self._worker

    def _prepared(self, path: Path, answer: Message) -> Prepared:
        from onnx import ModelProto

        from .preparing import Prepared

        content = self._target.read()
        self._target.write(b"")  # as large as the model
        return Prepared(
            path=path,
            digest=answer["digest"],
            inputs=tuple(answer["inputs"]),
            shapes=tuple((name, tuple(shape)) for name, shape in answer["shapes"]),
            model=ModelProto.FromString(content),
            warnings=tuple(answer["warnings"]),
        )

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0  # the child says what is wrong


def _met(path: Path, step: str, limit: str, more: str) -> str:
    variable = f"{SECONDS_OPTION}, or {SECONDS_VARIABLE}" if more == "more time" else MEMORY_VARIABLE
    return (
        f"the model file {path} cannot be opened: {step} met {limit}. Do not trust the file if it comes "
        f"from a stranger; otherwise allow {more} ({variable}=... in the environment), or export the "
        "model in parts"
    )


@contextmanager
def opened_within(seconds: float) -> Iterator[None]:
    """Have all model files that are opened meanwhile, in processes that are started, too, keep to a limit."""
    before = os.environ.get(SECONDS_VARIABLE)
    os.environ[SECONDS_VARIABLE] = f"{seconds:g}"
    try:
        yield
    finally:
        if before is not None:
            os.environ[SECONDS_VARIABLE] = before
        else:
            os.environ.pop(SECONDS_VARIABLE, None)


def open_there(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of the process in which model files are opened; ONNX is loaded there."""
    from .opening_worker import serve

    serve(link, settings)

"""The process in which an engine is tried: it runs what it is told, and tells facts; nobody is judged here.

Who computes is not taken from the engine but from the kernel: the time of each thread on a processor, and the
cores that it may use.
"""

from __future__ import annotations

import gc
import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations import errors
from ...formulations.errors import ExecutionError, GaplessError
from ..comparing import Allowed, Difference
from ..engine import Session, parse_artifact
from ..machine.cores import threads_of_process
from ..model import TensorSpec, tolerance
from ..workers import Link, Message, parse_unit
from .conformance_samples import Sample, bad_pieces, samples
from .registry import get_engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_REPEATS = 5
_SEEDS = range(3)
"""Those of the inputs that say at which scale the numbers of a sample are."""

_TASKS = Path("/proc/self/task")


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of a worker: answer each question by "done", "refused" (an error of gapless) or "broke" (another).

    `settings`: "engine": its registry name; "content": kind of content ("onnx", "callable") of the samples.
    """
    trial = _Trial(settings["engine"], settings["content"])
    while (question := link.receive()) is not None:
        link.send(_answer(trial, question))


class _Trial:
    """An engine, its samples, and the session that is open."""

    def __init__(self, engine: str, content: str) -> None:
        self.engine = get_engine(engine)
        self.content = content
        self._session: Session | None = None
        self._allowed = Allowed(tolerance("high"))

    @property
    def session(self) -> Session:
        if self._session is None:
            raise ExecutionError("no session is open")
        return self._session

    def sample(self, name: str) -> Sample:
        return samples(self.content)[name]

    def prepare(self, question: Message) -> Message:
        """Have a sample, or a piece that nobody can run, converted."""
        bad = question.get("bad")
        piece = self.sample(question["sample"]).piece if bad is None else bad_pieces(self.content)[bad]
        (artifact,) = self.engine.prepare([piece])
        return {"artifact": asdict(artifact)}

    def open(self, question: Message) -> Message:
        """Open a session, in place of the one that was open."""
        self.close(question)
        unit = parse_unit(question["unit"])
        self._session = self.engine.open(parse_artifact(question["artifact"]), unit)
        self._allowed = Allowed(tolerance(unit.engine.precision.value))
        return {"receipt": asdict(self._session.receipt)}

    def close(self, question: Message) -> Message:
        """Close the session, twice, as callers may."""
        if self._session is not None:
            self._session.close()
            self._session.close()
            self._session = None
        return {}

    def run(self, question: Message) -> Message:
        """Run once on random inputs; of a piece that nobody can run nothing is compared."""
        specs = self.session.artifact.inputs
        if "sample" not in question:
            self._run([np.ones(spec.shape, spec.dtype) for spec in specs])
            return {}
        sample = self.sample(question["sample"])
        seed = question["seed"]
        found = self._compared(self._run(sample.inputs(seed)), sample, seed)
        return {
            "differences": [
                [each.agrees, each.said_of(f"output {spec.name!r}")]
                for spec, each in zip(self.session.artifact.outputs, found, strict=True)
            ]
        }

    def copies(self, question: Message) -> Message:
        """Run with inputs and outputs that are used again, and tell what became of them."""
        sample = self.sample(question["sample"])
        first, second = sample.inputs(1), sample.inputs(2)
        judged = partial(self._worst, sample=sample)
        given = [array.copy() for array in first]
        self.session.copy_in(given)
        changed = not _same(given, first)
        for own, other in zip(given, second, strict=True):
            own[...] = other
        self.session.run()
        outputs = self._outputs()
        kept = [array.copy() for array in outputs]
        self.session.copy_in(given)
        self.session.run()
        aliased, changed = not _same(kept, outputs), changed or not _same(given, second)
        found = self._outputs()
        for array in found:
            array[...] = 0
        repeats = [self._run(first) for _ in range(_REPEATS)]
        again = self._outputs()
        return {
            "overwritten": judged(kept, seed=1),
            "as_overwritten": judged(kept, seed=2),
            "aliased": aliased,
            "changed": changed,
            "new": judged(self._run(second), seed=2),
            "new_as_old": judged(self._run(second), seed=1),
            "again": judged(again, seed=1),
            "repeats": [judged(each, seed=1) for each in repeats],
            "same_bits": all(_same(each, repeats[0]) for each in repeats),
        }

    def work(self, question: Message) -> Message:
        """Run for a while, and tell who was on a processor."""
        inputs = self.sample(question["sample"]).inputs(0)
        outputs = self._run(inputs)
        before, start_ns, runs = _busy_ns(), time.perf_counter_ns(), 0
        while time.perf_counter_ns() - start_ns < question["seconds"] * 1e9:
            self._run(inputs)
            runs += 1
        busy = {thread: ns - before.get(thread, 0) for thread, ns in _busy_ns().items()}
        return {
            "runs": runs,
            "busy_ns": busy,
            "cores": [list(cores) for cores in threads_of_process().values()],
            "digest": hashlib.sha256(b"".join(array.tobytes() for array in outputs)).hexdigest(),
        }

    def many(self, question: Message) -> Message:
        """Run very often, and tell what the process holds then."""
        sample = self.sample(question["sample"])
        inputs, outputs = sample.inputs(0), self._empty()
        for _ in range(question["runs"]):
            self.session.copy_in(inputs)
            self.session.run()
            self.session.copy_out(outputs)
        gc.collect()
        return {"error": self._worst(outputs, sample=sample, seed=0), **_held()}

    def reopen(self, question: Message) -> Message:
        """Open and close sessions again and again, and tell what the process holds then."""
        for _ in range(question["times"]):
            self.open(question)
            self._run(self.sample(question["sample"]).inputs(0))
        gc.collect()
        return _held()

    def operators(self, question: Message) -> Message:
        """Ask for the times of operators; the session is as good as before."""
        sample = self.sample(question["sample"])
        inputs = sample.inputs(0)
        times = self.session.operator_times(inputs, repetitions=3)
        error = self._worst(self._run(inputs), sample=sample, seed=0)
        return {"times": None if times is None else [asdict(each) for each in times], "error": error}

    def _run(self, inputs: Sequence[Array]) -> list[Array]:
        self.session.copy_in(inputs)
        self.session.run()
        return self._outputs()

    def _outputs(self) -> list[Array]:
        outputs = self._empty()
        self.session.copy_out(outputs)
        return outputs

    def _empty(self) -> list[Array]:
        return [_poisoned(spec) for spec in self.session.artifact.outputs]

    def _compared(self, found: Sequence[Array], sample: Sample, seed: int) -> list[Difference]:
        right = sample.references([seed, *(other for other in _SEEDS if other != seed)])
        return [each.compare(array, 0, self._allowed) for each, array in zip(right, found, strict=True)]

    def _worst(self, found: Sequence[Array], *, sample: Sample, seed: int) -> float:
        errors = [each.error for each in self._compared(found, sample, seed)]
        return min(max(errors), 1e9)  # JSON has no infinity


_ANSWERS: dict[str, Callable[[_Trial, Message], Message]] = {
    "prepare": _Trial.prepare,
    "open": _Trial.open,
    "close": _Trial.close,
    "run": _Trial.run,
    "copies": _Trial.copies,
    "work": _Trial.work,
    "many": _Trial.many,
    "reopen": _Trial.reopen,
    "operators": _Trial.operators,
}


def _answer(trial: _Trial, question: Message) -> Message:
    try:
        return {"kind": "done", **_ANSWERS[question["kind"]](trial, question)}
    except GaplessError as error:
        known = next(each for each in type(error).__mro__ if each.__module__ == errors.__name__)
        return {"kind": "refused", "type": known.__name__, "text": str(error)}
    except Exception as error:
        return {"kind": "broke", "type": type(error).__name__, "text": str(error)[:500]}


def _poisoned(spec: TensorSpec) -> Array:
    """Return an array that is no result: an engine that leaves it alone has wrong numbers."""
    array = spec.empty()
    array[...] = np.nan if spec.dtype.startswith("float") else 99
    return array


def _same(some: Sequence[Array], others: Sequence[Array]) -> bool:
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(some, others, strict=True))


def _busy_ns() -> dict[str, int]:
    """Return for how long each thread of this process has been on a processor; empty where it is not told."""
    found = {}
    for task in _TASKS.glob("[0-9]*"):
        try:
            found[task.name] = int((task / "schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):  # it has ended; or the kernel keeps no account
            continue
    return found


def _held() -> dict[str, int]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "rss_bytes": pages * os.sysconf("SC_PAGE_SIZE"),
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(threads_of_process()),
    }

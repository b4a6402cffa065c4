"""What a measuring worker does: it runs one piece at a time on its unit, to time it or to make load."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..executor.comparing import Allowed, Reference
from ..executor.engine import Artifact, Session, parse_artifact
from ..executor.machine.counters import Counters, counters_availability
from ..executor.model import TensorSpec
from ..executor.workers import Link, Message
from ..formulations.errors import GaplessError, ProfilingError, UnitLostError
from ..formulations.hardware import ProcessingUnit
from .sampling import Effort, collect, run_once
from .slowdown.contention.features import EVENTS, features_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Open = Callable[[Artifact, ProcessingUnit], Session]

Answer = Callable[["Workbench", Message, Link], Message]

LARGEST_ERROR = 1e30
"""What an infinite error is told as."""


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of a worker process: answer requests until the parent closes the pipe.

    `link`: says "ready" at first. Requests, each with an artifact and the places of its inputs: "measure"
    (answer: "samples"), "load" (answer: "loading"; it runs until the next message, "stop"; answer: "loaded"),
    "operators" (answer: "operators"), "check" (answer: "checked"), "count" (answer: "counted"). What goes
    wrong with one piece is answered as "error". `settings`: "descriptor": file from which inputs are read;
    "counting": whether performance counters will be asked for. They are opened before anything else, because
    they count only threads that are started later.
    """
    counted = settings["counting"] and counters_availability(EVENTS).ok
    with Counters(EVENTS) if counted else nullcontext() as counters:
        answer(link, settings["descriptor"], open_artifact, counters)


def answer(link: Link, descriptor: int, open_session: Open, counters: Counters | None = None) -> None:
    """Answer requests with sessions that `open_session` opens."""
    bench = Workbench(link.unit, descriptor, open_session, counters)
    link.send({"kind": "ready"})
    while (request := link.receive()) is not None:
        try:
            bench.take(request)
            link.send(_ANSWERS[request["kind"]](bench, request, link))
        except GaplessError as error:
            link.send({"kind": "error", "type": type(error).__name__, "text": str(error)})
        except Exception as error:
            text = f"the worker of unit {link.unit.name!r} failed: {type(error).__name__}: {error}"
            link.send({"kind": "error", "type": UnitLostError.__name__, "text": text})
            raise


def open_artifact(artifact: Artifact, unit: ProcessingUnit) -> Session:
    """Open the memory probe, or a session of the engine of an artifact; errors as for `Engine.open`."""
    from .slowdown.contention.probe import PROBE, ProbeSession, sweep_bytes

    if artifact.engine == PROBE:
        return ProbeSession(artifact, unit, bytes_a_sweep=sweep_bytes())
    from ..executor.engines.registry import get_engine

    return get_engine(artifact.engine).open(artifact, unit)


class Workbench:
    """The one piece that is open, because sessions of a big model would fill the memory, and its tensors."""

    session: Session
    inputs: list[NDArray[Any]]
    outputs: list[NDArray[Any]]

    def __init__(
        self, unit: ProcessingUnit, descriptor: int, open_session: Open, counters: Counters | None
    ) -> None:
        self.counters = counters
        self._unit = unit
        self._descriptor = descriptor
        self._open_session = open_session
        self._open: Artifact | None = None

    def take(self, request: Message) -> None:
        """Have the piece of a request open."""
        artifact = parse_artifact(request["artifact"])
        if artifact == self._open:
            return
        if self._open is not None:
            self._open = None
            self.session.close()
        self.inputs = [
            self.read(spec, offset) for spec, offset in zip(artifact.inputs, request["inputs"], strict=True)
        ]
        self.outputs = [spec.empty() for spec in artifact.outputs]
        self.session = self._open_session(artifact, self._unit)
        self._open = artifact

    def read(self, spec: TensorSpec, offset: int) -> NDArray[Any]:
        """Return a tensor that lies somewhere in the file."""
        array = spec.empty()
        view, at = memoryview(array.reshape(-1).view("uint8").data), 0
        while at < len(view):
            at += os.preadv(self._descriptor, [view[at:]], offset + at)
        return array


def _measure(bench: Workbench, request: Message, link: Link) -> Message:
    samples = collect(bench.session, bench.inputs, bench.outputs, Effort(**request["effort"]))
    return {"kind": "samples", "samples": asdict(samples), "receipt": asdict(bench.session.receipt)}


def _load(bench: Workbench, request: Message, link: Link) -> Message:
    run_once(bench.session, bench.inputs, bench.outputs)
    link.send({"kind": "loading"})
    runs, start_ns, busy_ns = 0, time.perf_counter_ns(), time.process_time_ns()
    while not link.waiting():
        run_once(bench.session, bench.inputs, bench.outputs)
        runs += 1
    share = (time.process_time_ns() - busy_ns) / max(1, time.perf_counter_ns() - start_ns)
    link.receive()
    return {"kind": "loaded", "runs": runs, "share": share}


def _operators(bench: Workbench, request: Message, link: Link) -> Message:
    times = bench.session.operator_times(bench.inputs, repetitions=request["repetitions"])
    return {"kind": "operators", "times": None if times is None else [asdict(time) for time in times]}


def _check(bench: Workbench, request: Message, link: Link) -> Message:
    run_once(bench.session, bench.inputs, bench.outputs)
    specs = bench.session.artifact.outputs
    right = [bench.read(spec, offset) for spec, offset in zip(specs, request["expected"], strict=True)]
    allowed = Allowed(**request["allowed"])
    errors = [
        Reference.of([known]).compare(found, 0, allowed).error
        for found, known in zip(bench.outputs, right, strict=True)
    ]
    return {"kind": "checked", "error": min(max(errors, default=0.0), LARGEST_ERROR)}


def _count(bench: Workbench, request: Message, link: Link) -> Message:
    if bench.counters is None:
        raise ProfilingError(counters_availability(EVENTS).reason or "this worker was not started to count")

    def work() -> None:
        for _ in range(request["runs"]):
            run_once(bench.session, bench.inputs, bench.outputs)

    run_once(bench.session, bench.inputs, bench.outputs)
    return {"kind": "counted", "features": asdict(features_of(bench.counters.count(work)))}


_ANSWERS: dict[str, Answer] = {
    "measure": _measure,
    "load": _load,
    "operators": _operators,
    "check": _check,
    "count": _count,
}

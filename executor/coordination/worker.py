"""What a worker of the coordinator does: it runs whichever chunk it is asked for, one at a time."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from ...formulations.errors import GaplessError
from ..engine import Artifact, Engine, Session, parse_artifact
from ..engines.registry import get_engine
from ..pipeline.shared import SharedMemory
from ..pipeline.worker import largest_rss_bytes
from ..workers import Link, Message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Step = tuple[Session, Sequence[NDArray[Any]], Sequence[NDArray[Any]]]
    """A session, and where its inputs and outputs lie in one task slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """What a worker needs to know about a network; travels as JSON.

    `parent`, `descriptor`, `size`: shared memory of its task slots: which process has it, under which
    descriptor, and how large it is.
    """

    network: int  # index of the network
    parent: int
    descriptor: int
    size: int
    slot_size: int  # bytes from one task slot to the next
    chunks: Sequence[tuple[int, int, Sequence[Mapping[str, Any]]]]
    """(first section, one past the last, steps) of each chunk of the unit; a step has an artifact, and the
    offsets of its inputs and outputs in a slot."""


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of a worker process: answer one message after the other.

    `link`: messages from the parent: "open" (see `NetworkSettings`), answered by "opened"; "shut", by
    "closed"; "run" and "measure" (network, first section, one past the last, slot), by "done" and "measured".
    What goes wrong is answered by "failed".
    """
    with ExitStack() as cleanup:
        held = _Held(link, cleanup)
        answers = {"open": held.open, "shut": held.shut, "run": held.run}
        answers["measure"] = partial(measured, held.run)
        link.send({"kind": "ready"})
        while (message := link.receive()) is not None and message["kind"] in answers:
            try:
                answer = answers[message["kind"]](message)
            except Exception as error:
                words = str(error) if isinstance(error, GaplessError) else f"{type(error).__name__}: {error}"
                answer = {"kind": "failed", "type": type(error).__name__, "text": words}
            link.send(answer)


def measured(run: Callable[[Message], Message], message: Message) -> Message:
    """Run a chunk again and again, and say what each run took; the first one warms up."""
    run(message)
    until_ns, took_us = monotonic_ns() + message["limit_ns"], list[float]()
    while len(took_us) < message["runs"] and (monotonic_ns() < until_ns or not took_us):
        start_ns, *_, end_ns = run(message)["times_ns"]
        took_us.append((end_ns - start_ns) / 1000)
    return {"kind": "measured", "took_us": took_us}


class _Network:
    """The chunks of one network, and where their tensors lie."""

    def __init__(self, settings: NetworkSettings, sessions: Mapping[Artifact, Session]) -> None:
        path = f"/proc/{settings.parent}/fd/{settings.descriptor}"
        self._memory = SharedMemory(os.open(path, os.O_RDWR), settings.size)
        self._slot_size = settings.slot_size
        self._chunks = {
            (start, stop): [
                (sessions[parse_artifact(step["artifact"])], step["inputs"], step["outputs"])
                for step in steps
            ]
            for start, stop, steps in settings.chunks
        }
        self._steps: dict[tuple[int, int, int], list[Step]] = {}

    def steps(self, start: int, stop: int, slot: int) -> list[Step]:
        """Return the sessions of a chunk with their arrays in a slot, made when they are first needed."""
        key = start, stop, slot
        if key not in self._steps:
            at = slot * self._slot_size
            self._steps[key] = [
                (
                    session,
                    [
                        self._memory.array(spec, at + offset)
                        for spec, offset in zip(session.artifact.inputs, inputs, strict=True)
                    ],
                    [
                        self._memory.array(spec, at + offset)
                        for spec, offset in zip(session.artifact.outputs, outputs, strict=True)
                    ],
                )
                for session, inputs, outputs in self._chunks[start, stop]
            ]
        return self._steps[key]

    def close(self) -> None:
        self._steps.clear()
        self._memory.close()


class _Held:
    """All networks of one unit."""

    def __init__(self, link: Link, cleanup: ExitStack) -> None:
        self._unit = link.unit
        self._engines: dict[str, Engine] = {}
        self._networks: dict[int, _Network] = {}
        self._opened: dict[int, ExitStack] = {}
        cleanup.callback(self._close)

    def open(self, message: Message) -> Message:
        """Open the sessions of a network; of two equal pieces one."""
        settings = NetworkSettings(**message["settings"])
        self.shut({"network": settings.network})
        stack, sessions = ExitStack(), dict[Artifact, Session]()
        with stack:
            for *_, steps in settings.chunks:
                for step in steps:
                    artifact = parse_artifact(step["artifact"])
                    if artifact not in sessions:
                        name = artifact.engine
                        engine = self._engines.get(name) or self._engines.setdefault(name, get_engine(name))
                        sessions[artifact] = engine.open(artifact, self._unit)
                        stack.callback(sessions[artifact].close)
            self._networks[settings.network] = network = _Network(settings, sessions)
            stack.callback(network.close)
            self._opened[settings.network] = stack.pop_all()
        gc.collect()
        gc.freeze()  # what is here now stays
        receipts = [asdict(session.receipt) for session in sessions.values()]
        return {"kind": "opened", "receipts": receipts, "rss_bytes": largest_rss_bytes()}

    def shut(self, message: Message) -> Message:
        """Close the sessions of a network, if it is open."""
        self._networks.pop(message["network"], None)
        self._opened.pop(message["network"], ExitStack()).close()
        return {"kind": "closed"}

    def run(self, message: Message) -> Message:
        """Run a chunk once, and say when it began, and when it had copied in, run and copied out."""
        start_ns = at_ns = monotonic_ns()
        copied_in_ns = ran_ns = 0
        network = self._networks[message["network"]]
        for session, inputs, outputs in network.steps(message["start"], message["stop"], message["slot"]):
            session.copy_in(inputs)
            in_ns = monotonic_ns()
            session.run()
            out_ns = monotonic_ns()
            session.copy_out(outputs)
            copied_in_ns += in_ns - at_ns
            ran_ns += out_ns - in_ns
            at_ns = monotonic_ns()
        run_ns = start_ns + copied_in_ns
        return {"kind": "done", "times_ns": (start_ns, run_ns, run_ns + ran_ns, at_ns)}

    def _close(self) -> None:
        for stack in self._opened.values():
            stack.close()

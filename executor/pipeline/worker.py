"""What a worker of the pipeline does: it serves the chunks of its units, request after request.

Usually that is one unit. Units of one resource, which take turns, have one worker together.
"""

from __future__ import annotations

import gc
import select
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from ...formulations.errors import ExecutionError, GaplessError
from ..engine import Artifact, Engine, Session, parse_artifact
from ..engines.registry import get_engine
from ..model import TensorSpec
from ..workers import Link, parse_unit
from .runs import PipelineRun, RequestWindow, Tally
from .shared import (
    Board,
    BoardShape,
    Doing,
    Hop,
    HopReader,
    NeighbourGoneError,
    SharedMemory,
    SlotHeader,
    Stamps,
    WorkerProgress,
    send_hop,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Step = tuple[Session, Sequence[NDArray[Any]], Sequence[NDArray[Any]]]
    """A session, and where its inputs and outputs lie in one task slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """What a worker needs to know about one of its chunks; travels as JSON.

    `stream`, `chunk`: indices of the stream in the deployment, and of the chunk in the stream; `receives`,
    `senders`: descriptor of the pipe from the chunks that it waits for, and how many of them there are.
    """

    stream: int
    chunk: int
    unit: Mapping[str, Any]  # which one of those that the worker stands for (`unit_data`)
    waits: Sequence[Sequence[int]]  # see `SlotHeader`
    is_last: bool  # whether no chunk waits for it: it is the last of its stream, or one of several
    where: str  # the chunk in words
    steps: Sequence[Mapping[str, Any]]
    """For each session, in order: its artifact, and (offset, strides) of its inputs and outputs in a slot."""
    states: Sequence[Sequence[Any]]
    """What it hands on to its next request: the tensor, and where it is taken and where made in a slot."""
    slots_at: Sequence[int]  # where each task slot starts in the shared memory
    receives: int
    senders: int
    sends: Sequence[int]
    """Descriptors of the pipes to the chunks that wait for it; the last chunks send to the first, which so
    learns that a slot is free."""
    leads: Sequence[int]
    """Descriptors of the pipes to the chunks that begin together with the first one: it alone decides which
    requests come in."""
    delivers: int
    """Descriptor of the pipe to the parent, for the last chunk of a stream that the parent feeds."""
    turn: Sequence[int]
    """How many requests it is behind in the cycle of its stream, and when in the period its turn is; empty:
    it has none, and requests are served by number."""
    patience_ns: Sequence[int]
    """How long its unit waits for it when it is its turn, and how long where its request could have come in
    and has not; nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """What a worker needs to know; travels as JSON.

    `descriptor`, `size`, `stamps_at`: the shared memory, and where the time stamps lie in it.
    """

    unit: int  # its index among the workers
    descriptor: int
    size: int
    stamps_at: int
    chunks: Sequence[int]  # number of chunks of each stream
    units: int
    tasks: Sequence[Mapping[str, Any]]
    """Its chunks, in the order in which it serves the requests of one number."""


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of a worker process: open all sessions, then run whenever the parent says so.

    `link`: messages from the parent: "run" (see `PipelineRun`), answered by "done"; "end".
    """
    known = WorkerSettings(**settings)
    with ExitStack() as cleanup:
        unit = _UnitWorker(link, known, cleanup)
        gc.collect()
        gc.freeze()  # what is here now stays until the end
        link.send({"kind": "ready", "receipts": [asdict(receipt) for receipt in unit.receipts]})
        while (message := link.receive()) is not None and message["kind"] == "run":
            try:
                tallies = unit.run(PipelineRun.parse(message))
            except NeighbourGoneError:
                link.receive()  # the parent has noticed too, and ends everything
                return
            link.send({"kind": "done", "tallies": tallies, "rss_bytes": largest_rss_bytes()})


def largest_rss_bytes(process: int | str = "self") -> int:
    """Return the largest resident memory that a process has had so far; 0 where it is not told."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


class _UnitWorker:
    """All chunks of a worker, served in the order of a cycle, or by request number and then by task."""

    def __init__(self, link: Link, settings: WorkerSettings, cleanup: ExitStack) -> None:
        memory = SharedMemory(settings.descriptor, settings.size)
        shape = BoardShape(units=settings.units, chunks=tuple(settings.chunks))
        self._board = Board(memory, shape, stamps_at=settings.stamps_at)
        self._progress = self._board.progress[settings.unit]
        self.receipts = []
        self._tasks: list[_Task] = []
        engines: dict[str, Engine] = {}
        opened: dict[tuple[Artifact, str], Session] = {}
        for index, data in enumerate(settings.tasks):
            task = TaskSettings(**data)
            sessions, unit = [], parse_unit(task.unit)
            for step in task.steps:
                artifact = parse_artifact(step["artifact"])
                if artifact.engine not in engines:
                    engines[artifact.engine] = get_engine(artifact.engine)
                key = artifact, unit.name
                if key not in opened:  # requests that run the same chunk share its session
                    session = opened[key] = engines[artifact.engine].open(artifact, unit)
                    cleanup.callback(session.close)
                    self.receipts.append(session.receipt)
                sessions.append(opened[key])
            slots = _slots(memory, task, sessions)
            stamps = self._board.stamps(task.stream, task.chunk)
            states = [_Recurrence(memory, task.slots_at, *state) for state in task.states]
            self._tasks.append(_Task(index, task, slots, stamps, self._progress, states=states))

    def run(self, run: PipelineRun) -> list[dict[str, int]]:
        """Serve one run, and return what counts of each task."""
        window = RequestWindow(run, self._board)
        for task in self._tasks:
            task.begin(run)
        in_turns = len(self._tasks) > 1 and all(task.settings.turn for task in self._tasks)
        order = (_InTurns if in_turns else _ByNumber)(list(self._tasks))
        while order.going:
            task = order.choose()
            if not task.serve(run, window):
                order.end(task)
        self._progress.set(Doing.ENDING, 0, 0)
        for task in self._tasks:
            task.finish(run)
        return [
            {"stream": task.settings.stream, "chunk": task.settings.chunk, **vars(task.tally)}
            for task in self._tasks
        ]


class _ByNumber:
    """Tasks served by the number of their requests, and of these in their order."""

    def __init__(self, going: list[_Task]) -> None:
        self.going = going

    def choose(self) -> _Task:
        """Return the task of the lowest request, and of these the first one."""
        return min(self.going, key=lambda task: (task.request, task.index))

    def end(self, task: _Task) -> None:
        """Leave out a task whose stream has ended."""
        self.going.remove(task)


class _InTurns(_ByNumber):
    """Tasks served in the order of a cycle.

    What is polled is registered once: a worker chooses as often as it serves a chunk.
    """

    def __init__(self, going: list[_Task]) -> None:
        super().__init__(going)
        self._of = {task.descriptor: task for task in going}
        self._all, self._own = select.poll(), {task.index: select.poll() for task in going}
        for task in going:
            self._all.register(task.descriptor, select.POLLIN)
            self._own[task.index].register(task.descriptor, select.POLLIN)

    def choose(self) -> _Task:
        """Return the task whose turn it is, or if nothing comes for it in time, the next one that can begin.

        The simulation does the same (`formulations/flight.py`).
        """
        planned = min(self.going, key=lambda task: task.turn)
        own = self._own[planned.index]
        if own.poll(0):  # as a rule, where a unit is busy
            return planned
        planned.expect()
        waiting = [self._of[descriptor] for descriptor, _ in self._all.poll()]
        if planned in waiting or own.poll(planned.patience_ns / 1e6):
            return planned
        return min(waiting, key=lambda task: task.turn)

    def end(self, task: _Task) -> None:
        """Leave out a task whose stream has ended."""
        super().end(task)
        self._all.unregister(task.descriptor)


def _slots(
    memory: SharedMemory, task: TaskSettings, sessions: Sequence[Session]
) -> list[tuple[SlotHeader, list[Step]]]:
    """Return, for each task slot, its header and the arrays of all steps: made once, before any run."""
    slots = []
    for slot_at in task.slots_at:
        steps: list[Step] = []
        for session, step in zip(sessions, task.steps, strict=True):
            sides = (
                (session.artifact.inputs, step["inputs"]),
                (session.artifact.outputs, step["outputs"]),
            )
            inputs, outputs = (
                [memory.array(spec, slot_at + at, by) for spec, (at, by) in zip(specs, places, strict=True)]
                for specs, places in sides
            )
            steps.append((session, inputs, outputs))
        slots.append((SlotHeader(memory, slot_at, task.waits), steps))
    return slots


class _Recurrence:
    """A state that one chunk takes and makes: the next request begins with what the last one left.

    `spec`: what it is; `taken_at`, `made_at`: where in each task slot.
    """

    def __init__(
        self,
        memory: SharedMemory,
        slots_at: Sequence[int],
        spec: Mapping[str, Any],
        taken_at: int,
        made_at: int,
    ) -> None:
        known = TensorSpec(**{**spec, "shape": tuple(spec["shape"])})
        self._taken = [memory.array(known, slot_at + taken_at) for slot_at in slots_at]
        self._made = [memory.array(known, slot_at + made_at) for slot_at in slots_at]
        self._last: int | None = None

    def forget(self) -> None:
        """Have the next request begin with the state that lies in its slot."""
        self._last = None

    def take(self, slot: int) -> None:
        """Give a request what the one before it has left."""
        if self._last is not None:
            self._taken[slot][...] = self._made[self._last]  # which only this chunk writes to
        self._last = slot


class _Task:
    """One chunk of one stream: takes the next request, works on it, passes it on."""

    def __init__(
        self,
        index: int,
        settings: TaskSettings,
        slots: list[tuple[SlotHeader, list[Step]]],
        stamps: Stamps,
        progress: WorkerProgress,
        *,
        states: list[_Recurrence],
    ) -> None:
        self.index = index
        self.settings = settings
        self.tally = Tally()
        self._slots = slots
        self._states = states
        self._stamps = stamps
        self._progress = progress
        self._reader = HopReader(settings.receives, settings.senders)
        self._expect(0)

    @property
    def descriptor(self) -> int:
        """Where messages for it come in."""
        return self._reader.descriptor

    @property
    def patience_ns(self) -> int:
        """How long its unit waits for its next request."""
        slots = len(self._slots)
        header, _ = self._slots[self.request % slots]
        return self.settings.patience_ns[not header.expects(self.request, slots)]

    def begin(self, run: PipelineRun) -> None:
        """Prepare for a run."""
        self._expect(run.first[self.settings.stream])
        for state in self._states:
            state.forget()
        self.tally = Tally()

    def expect(self) -> None:
        """Say that the unit waits for the next request of this chunk."""
        self._progress.set(Doing.WAITING, self.index, self.request)

    def serve(self, run: PipelineRun, window: RequestWindow) -> bool:
        """Serve the next request; return False when the stream has ended instead."""
        settings, request = self.settings, self.request
        self.expect()
        hop = self._reader.receive()
        start_ns = monotonic_ns()
        if hop.ends or (settings.chunk == 0 and not run.fed and not window.admits(request)):
            self._end(run, hop)
            return False
        slot = request % len(self._slots)
        header, _ = self._slots[slot]
        header.check(hop, Hop(settings.stream, request, slot), settings.chunk)
        if settings.chunk == 0:
            header.admit(request)
            _send(settings.leads, hop)
        self._progress.set(Doing.WORKING, self.index, request)
        times_ns = self._work(slot, start_ns)
        end_ns = times_ns[-1]
        header.finish(settings.chunk, request)
        if settings.is_last:
            window.note_output(settings.stream, request, end_ns)
        if window.counts(request, end_ns):
            self._stamps.put(request, times_ns)  # first: whoever gets the request may read them
            self.tally.add(start_ns, end_ns)
        self._pass_on(run, header, slot)
        self._progress.finished(end_ns - start_ns)
        self._expect(request + 1)
        return True

    def finish(self, run: PipelineRun) -> None:
        """Take back the free slots that nobody used, so that the next run finds empty pipes."""
        if self.settings.chunk == 0 and not run.fed:
            for _ in range(len(self._slots) - 1):
                self._reader.receive()

    def _expect(self, request: int) -> None:
        """Note which request is next, and when it is its turn: by number in the cycle, in it, by stream."""
        self.request = request
        behind, place = self.settings.turn or (0, 0)
        self.turn = request + behind, place, self.settings.stream

    def _work(self, slot: int, start_ns: int) -> tuple[int, int, int, int]:
        """Run all steps; of several, the times of the copies and runs are added up.

        What a request takes from the one before it counts as a copy.
        """
        at_ns, copied_in_ns, ran_ns = start_ns, 0, 0
        for state in self._states:
            state.take(slot)
        try:
            for session, inputs, outputs in self._slots[slot][1]:
                session.copy_in(inputs)
                in_ns = monotonic_ns()
                session.run()
                out_ns = monotonic_ns()
                session.copy_out(outputs)
                copied_in_ns += in_ns - at_ns
                ran_ns += out_ns - in_ns
                at_ns = monotonic_ns()
        except Exception as error:
            raise self._explained(error) from error
        run_ns = start_ns + copied_in_ns
        return start_ns, run_ns, run_ns + ran_ns, at_ns

    def _explained(self, error: Exception) -> GaplessError:
        kind = type(error) if isinstance(error, ExecutionError) else ExecutionError
        text = str(error) if isinstance(error, GaplessError) else f"{type(error).__name__}: {error}"
        return kind(f"request {self.request} of {self.settings.where} failed: {text}")

    def _pass_on(self, run: PipelineRun, header: SlotHeader, slot: int) -> None:
        settings = self.settings
        if settings.is_last and run.fed:
            send_hop(settings.delivers, Hop(settings.stream, self.request, slot))
        elif settings.is_last:
            following = self.request + len(self._slots)
            header.enter(settings.stream, following)
            _send(settings.sends, Hop(settings.stream, following, slot))
        else:
            _send(settings.sends, Hop(settings.stream, self.request, slot))

    def _end(self, run: PipelineRun, hop: Hop) -> None:
        """Pass the end of the stream on; the last chunk tells only a parent that feeds it."""
        end = hop._replace(ends=True)
        _send(self.settings.leads, end)
        if not self.settings.is_last:
            _send(self.settings.sends, end)
        elif run.fed:
            send_hop(self.settings.delivers, end)


def _send(descriptors: Sequence[int], hop: Hop) -> None:
    for descriptor in descriptors:
        send_hop(descriptor, hop)

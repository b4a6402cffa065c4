"""A deployment at work: open it, measure it, send inputs through it, close it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, Any, Self

from ...formulations.deployment import Deployment, Mode, Rounds
from ...formulations.errors import ExecutionError, InvalidInputError, UnitLostError
from ...formulations.hardware import Platform
from ...formulations.history import History
from ..engine import Engine, PlacementReceipt
from ..machine.state import MachineWatch, own_processes
from ..measurement import Measurement
from ..model import Model
from ..progress import Report, Step, silent
from ..runner import Budget, Verification, told
from ..workers import Message
from .account import Evidence, TaskCount, measured_trace, measurement
from .blueprint import Blueprint, draw
from .crew import Crew, SharedState
from .feeding import Feeder, check_inputs, check_names
from .runs import PipelineRun, run_for
from .shared import RECORDS, Hop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .feeding import Job


class RoundKeeper:
    """One run of a workload on inputs that lie in the task slots already."""

    def __init__(self, blueprint: Blueprint, state: SharedState, crew: Crew, rounds: Rounds) -> None:
        self._crew = crew
        self._headers = state.headers
        self._rounds = rounds
        self._chunks = [len(stream.chunks) for stream in blueprint.streams]
        self._entered = [0] * len(self._chunks)
        self._left = [0] * len(self._chunks)
        self._open = set(range(len(self._chunks)))
        self._waiting: list[int] = []
        self._begins_ns: list[int] = []

    def play(self, asked: PipelineRun) -> tuple[int, ...]:
        """Play round after round, and return when each of them began, in nanoseconds of the clock."""
        self._crew.begin(PipelineRun(first=asked.first, warm_up=asked.warm_up, fed=True))
        while self._wants_another(asked):
            self._begins_ns.append(monotonic_ns())
            self._waiting = list(range(len(self._chunks)))
            self._let_in()
            while not self._may_begin:
                self._collect()
                self._let_in()
        for stream, entered in enumerate(self._entered):
            self._crew.end_stream(stream, entered)
        while self._open:
            self._collect()
        return tuple(self._begins_ns)

    def _wants_another(self, asked: PipelineRun) -> bool:
        """Return whether another round is to be played; at least one counts."""
        number, warm_up = len(self._begins_ns), asked.warm_up
        if number <= warm_up:
            return True
        if asked.requests is not None and number >= warm_up + asked.requests:
            return False
        return asked.duration_ns is None or monotonic_ns() < self._begins_ns[warm_up] + asked.duration_ns

    @property
    def _may_begin(self) -> bool:
        """Whether the next round may begin."""
        return not self._waiting and (self._rounds.mode is Mode.STREAM or self._entered == self._left)

    def _let_in(self) -> None:
        """Let in, in order, whatever may come in now."""
        for stream in tuple(self._waiting):
            request, slots = self._entered[stream], len(self._headers[stream])
            if self._has_room(stream) and self._arrives_in_ns(stream) <= 0:
                self._crew.enter(stream, request, request % slots)
                self._entered[stream] += 1
                self._waiting.remove(stream)

    def _has_room(self, stream: int) -> bool:
        if self._entered[stream] - self._left[stream] >= len(self._headers[stream]):
            return False
        if self._rounds.task_slots is None:
            return True
        place = self._entered[stream] * len(self._chunks) + stream
        return place - sum(self._left) < self._rounds.task_slots

    def _arrives_in_ns(self, stream: int) -> int:
        return self._begins_ns[-1] + 1000 * self._rounds.arrivals_us[stream] - monotonic_ns()

    def _collect(self) -> None:
        """Sleep until a request leaves or the next one arrives, and note what has left."""
        coming_ns = [self._arrives_in_ns(stream) for stream in self._waiting if self._has_room(stream)]
        timeout_s = max(0, min(coming_ns)) / 1e9 if coming_ns else None
        exits = self._crew.exits
        for descriptor in self._crew.wait(exits, timeout_s=timeout_s):
            self._take(exits.index(descriptor))

    def _take(self, stream: int) -> None:
        hop = self._crew.take(stream)
        if hop is None:
            return
        if hop.ends:
            self._open.discard(stream)
            return
        headers, request = self._headers[stream], self._left[stream]
        slot = request % len(headers)
        headers[slot].check(hop, Hop(stream, request, slot), self._chunks[stream])
        self._left[stream] += 1


_CLOSE_PATIENCE_S = 2.0


class Pipeline:
    """An open pipeline: one worker process a unit, all sessions open; a context manager.

    Units of one resource, which take turns, have one worker together. It stays open for any number of
    measurements, traces and fed runs, one at a time. When a run fails, everything is closed.

    Parameters
    ----------
    deployment
        What runs.
    models
        Its networks, by name.
    platform
        Its units.
    engine
        Runs the pieces; on units that name another one, that does.
    device
        On which device, for measurements.
    stall_limit_s
        How long a worker may make no progress before it counts as hung. None: the larger of 10 s and 20
        times its longest task.
    restarts
        How many times lost workers are replaced, all of them anew, before the run fails. Requests whose
        results are not out yet are then run again.
    report
        Told when workers are replaced, and why.

    Attributes
    ----------
    deployment, blueprint
        What runs, and how it is laid out.
    verification
        What came of comparing its numbers with those of the uncut models; None: they were not compared.

    Raises
    ------
    InvalidPlanError
        The deployment does not fit the models or the platform.
    PlacementError, ExecutionError
        A worker could not be started, or a session not opened as asked.
    """

    def __init__(
        self,
        deployment: Deployment,
        models: Mapping[str, Model],
        platform: Platform,
        engine: Engine,
        *,
        device: str = "",
        stall_limit_s: float | None = None,
        restarts: int = 0,
        report: Report = silent,
    ) -> None:
        if stall_limit_s is not None and stall_limit_s <= 0:
            raise InvalidInputError(f"stall_limit_s is {stall_limit_s}, must be greater than 0")
        self.deployment = deployment
        self.verification: Verification | None = None
        self._models = models
        self._device = device
        self._stall_limit_s = stall_limit_s
        self._restarts_left = restarts
        self._report = report
        self._is_running = False
        self._crew: Crew | None = None
        self._has_samples = False
        self.blueprint = draw(deployment, models, platform, engine)
        self._state = SharedState(self.blueprint)
        try:
            self._crew = self._new_crew()
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """Whether it can run; a run that failed has closed it."""
        return self._crew is not None

    @property
    def receipts(self) -> tuple[PlacementReceipt, ...]:
        """One for each session."""
        return told(self.verification, self._workers().receipts)

    def measure(self, budget: Budget) -> Measurement:
        """Run on sample inputs, and measure.

        Raises
        ------
        InvalidInputError
            The budget allows nothing.
        UnitLostError
            A worker died or hangs; the message names the request that was lost.
        ExecutionError
            An engine failed; the message names the request.
        """
        run = run_for(budget, len(self.deployment.streams))
        with self._running(), MachineWatch(own_processes(self._workers().pids)) as watch:
            evidence = self._execute(run)
        return replace(measurement(evidence, self.receipts, self._device), machine=watch.state)

    def trace(self, *, requests: int) -> History:
        """Run some requests of each stream on sample inputs, and return when everything happened.

        Raises
        ------
        InvalidInputError
            The number is not between 1 and `RECORDS`.
        UnitLostError, ExecutionError
            As for `measure`.
        """
        if not 1 <= requests <= RECORDS:
            raise InvalidInputError(f"requests is {requests}, must be between 1 and {RECORDS}")
        run = PipelineRun(first=(0,) * len(self.deployment.streams), requests=requests)
        with self._running():
            self._execute(run)
        return measured_trace(self.deployment, self._state.board, requests)

    def map(self, frames: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Send the user's own inputs through, and yield the outputs in the same order.

        Parameters
        ----------
        frames
            For one network: its inputs by name; several streams of it share the work. For several
            networks: a mapping from the name of each network to its inputs; for a workload, from the name
            of each request. The next frame is asked for when there is a free task slot, so a slow consumer
            slows the source down. Rounds of a workload follow each other as the frames come.

        Yields
        ------
        dict
            As the frames: outputs by name, or a mapping to them; the caller's own copies.

        Raises
        ------
        InvalidInputError
            A frame does not fit; the frames before it have come out. Or some of several networks run
            in several streams.
        UnitLostError, ExecutionError
            As for `measure`.
        """
        parts = self._parts()
        if 1 < len(parts) < len(self.deployment.streams):
            raise InvalidInputError(
                f"[{self.deployment}] runs several networks, and one of them in several streams: "
                "inputs can be sent through one network, or through one stream of each"
            )
        wanted = [[spec.name for spec in stream.outputs] for stream in self.blueprint.streams]
        jobs = (self._job(parts, frame, number) for number, frame in enumerate(frames))
        for results in self.feed(jobs, groups=list(parts.values()), wanted=wanted):
            yield results[0] if len(parts) == 1 else dict(zip(parts, results, strict=True))

    def feed(
        self, jobs: Iterable[Job], *, groups: Sequence[Sequence[int]], wanted: Sequence[Collection[str]]
    ) -> Iterator[list[dict[str, NDArray[Any]]]]:
        """Send inputs through chosen streams, and yield any tensors of their task slots, in order.

        Parameters
        ----------
        jobs
            Inputs by name for each group.
        groups
            Groups of streams (indices); each part of a job goes to one stream of its group.
        wanted
            For each stream: names of the tensors that are wanted.

        Raises
        ------
        UnitLostError, ExecutionError
            As for `measure`.
        """
        with self._running():
            self._has_samples = False
            feeder = Feeder(self.blueprint, self._state, groups=groups, wanted=wanted)
            self._attempt(feeder, lambda: feeder.begin(self._workers()))
            try:
                yield from self._feed(feeder, iter(jobs))
            except GeneratorExit:  # nobody wants the rest
                for _ in self._drain(feeder):
                    pass
                raise

    def close(self) -> None:
        """End all workers and free everything. Can be called twice."""
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.close(patience_s=0.0 if self._is_running else _CLOSE_PATIENCE_S)
        self._state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _workers(self) -> Crew:
        if self._crew is None:
            raise ExecutionError(f"the pipeline [{self.deployment}] is closed; open a new one")
        return self._crew

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Allow one run at a time; one that does not come to its end takes the workers with it."""
        self._workers()
        if self._is_running:
            raise ExecutionError(
                f"the pipeline [{self.deployment}] is still running; take all results of `map` first"
            )
        self._is_running = True
        try:
            yield
        finally:
            if self._is_running:
                self.close()
                self._is_running = False

    def _finish(self) -> list[Message]:
        done = self._workers().finish()
        self._is_running = False
        return done

    def _execute(self, run: PipelineRun) -> Evidence:
        """Run on sample inputs; when workers are lost, start over with new ones."""
        self._fill_in_samples()
        try:
            begins_ns = self._begin(run)
            done = self._finish()
        except UnitLostError as error:
            self._replace_workers(error)
            return self._execute(run)
        tallies = [tally for message in done for tally in message["tallies"]]
        return Evidence(
            deployment=self.deployment,
            board=self._state.board,
            warm_up=run.warm_up,
            begins_ns=begins_ns,
            tasks={(t.pop("stream"), t.pop("chunk")): TaskCount(**t) for t in tallies},
            rss_bytes={
                unit.name: message["rss_bytes"]
                for own, message in zip(self.blueprint.workers, done, strict=True)
                for unit in own
            },
        )

    def _begin(self, run: PipelineRun) -> tuple[int, ...]:
        """Start a run; one in rounds is over when this returns when each of them began."""
        rounds = self.deployment.rounds
        if rounds is not None:
            return RoundKeeper(self.blueprint, self._state, self._workers(), rounds).play(run)
        self._workers().begin(run)
        return ()

    def _fill_in_samples(self) -> None:
        if self._has_samples:
            return
        for index, stream in enumerate(self.deployment.streams):
            for slot in range(stream.slots):
                tensors = self._state.tensors(index, slot)
                for name, array in self._models[stream.network].sample_inputs(slot).items():
                    tensors[name][...] = array
        self._has_samples = True

    def _feed(self, feeder: Feeder, jobs: Iterator[Job]) -> Iterator[list[dict[str, NDArray[Any]]]]:
        failure: Exception | None = None
        while True:
            while not feeder.has_room:
                self._attempt(feeder, feeder.collect)
                yield from feeder.results()
            try:
                job = next(jobs, None)
            except Exception as error:
                failure = error
                break
            if job is None:
                break
            self._attempt(feeder, partial(feeder.give, job))
            self._attempt(feeder, partial(feeder.collect, timeout_s=0.0))
            yield from feeder.results()
        yield from self._drain(feeder)
        if failure is not None:
            raise failure

    def _drain(self, feeder: Feeder) -> Iterator[list[dict[str, NDArray[Any]]]]:
        """Let nothing more in, and yield what is still on its way."""
        if self._crew is None:
            return
        self._attempt(feeder, feeder.end)
        while not feeder.is_over or not self._attempt(feeder, self._finish):
            self._attempt(feeder, feeder.collect)
            yield from feeder.results()

    def _attempt(self, feeder: Feeder, action: Callable[[], object]) -> bool:
        """Do something; when workers are lost, give what is on its way to new ones and return False."""
        self._workers()
        try:
            action()
        except UnitLostError as error:
            if any(stream.states for stream in self.deployment.streams):
                raise  # what the lost workers kept for the next request is gone
            self._replace_workers(error)
            self._attempt(feeder, lambda: feeder.begin(self._workers()))
            return False
        return True

    def _replace_workers(self, error: UnitLostError) -> None:
        """Start all workers anew, as often as is allowed; else raise what has happened to them."""
        crew, self._crew = self._workers(), None
        crew.close()
        while self._crew is None:
            if self._restarts_left <= 0:
                raise error
            self._restarts_left -= 1
            self._report(Step(text=f"{error}; all workers are started anew"))
            try:
                self._crew = self._new_crew()
            except UnitLostError as another:
                error = another

    def _new_crew(self) -> Crew:
        try:
            return Crew(self.blueprint, self._state, stall_limit_s=self._stall_limit_s)
        except OSError as error:
            raise ExecutionError(
                f"the workers of [{self.deployment}] cannot be started: {error.strerror or error}"
            ) from error

    def _parts(self) -> dict[str, list[int]]:
        """Return the streams (indices) for each part of a frame: of one network, or one request."""
        is_workload = self.deployment.rounds is not None
        found: dict[str, list[int]] = {}
        for index, stream in enumerate(self.deployment.streams):
            found.setdefault(stream.name if is_workload else stream.network, []).append(index)
        return found

    def _job(self, parts: Mapping[str, Sequence[int]], frame: Mapping[str, Any], number: int) -> Job:
        """Return a frame as a job."""
        given = dict.fromkeys(parts, frame) if len(parts) == 1 else frame
        defects = check_names("network" if self.deployment.rounds is None else "request", parts, given)
        for name, (first, *_) in parts.items():
            if not defects:
                defects += check_inputs(self.blueprint.streams[first].inputs, given[name])
        if defects:
            raise InvalidInputError(f"frame {number} cannot be run:", defects)
        return [given[name] for name in parts]

"""A device that is only simulated: deployments are played on a cost table, which is its truth."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from statistics import fmean, harmonic_mean

from ..formulations.chunking.tables import chain_of
from ..formulations.deployment import Deployment, Stream
from ..formulations.errors import ExecutionError, InvalidInputError
from ..formulations.judge import check
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.simulate import Trace, simulate
from .measurement import ChunkTimes, MeasuredEvent, MeasuredTrace, Measurement, Spread, StreamTimes, UnitUse
from .runner import Budget, Verification
from .simulation import (
    BLOCKS,
    IMPOSSIBLE,
    Noise,
    charged_for,
    device_name,
    requests_within,
    simulated_receipt,
)


class SimulatedRunner:
    """Plays deployments on the cost table of a problem; implements `Runner`.

    Each chunk takes what the table says, whatever else runs: a table that was measured under load makes
    a single unit as slow as a busy device does. Streams must not share units, and their memory is checked
    one by one. There are no numbers to verify, and receipts say that nothing was granted.

    Parameters
    ----------
    problem
        One network on one platform; its costs are the truth.
    noise_permille, seed
        Random variation of every execution (see `Noise`).
    real_time
        Take the time that the device would take.

    Raises
    ------
    InvalidInputError
        The noise is out of range, or the problem has several networks.
    """

    def __init__(
        self, problem: Problem, *, noise_permille: int = 0, seed: int = 0, real_time: bool = False
    ) -> None:
        if len(problem.networks) != 1:
            raise InvalidInputError(
                f"a simulated device plays one network, the problem has {len(problem.networks)}"
            )
        self._problem = problem
        self._noise = Noise(noise_permille, seed=seed)
        self._real_time = real_time
        self._device = device_name(problem)

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        """Play a deployment.

        Raises
        ------
        ExecutionError
            A unit is unknown or shared, or cannot run a layer; the message says which.
        """
        charged = charged_for(self._problem, deployment)
        plays = [_play(charged, stream) for stream in self._checked(deployment)]
        noise = self._noise.visit(deployment.deployment_id)
        runs = [
            _Run(play=play, factors=tuple(islice(noise, requests_within(budget, play.period_us))))
            for play in plays
        ]
        if self._real_time:
            warm_up_us = budget.warm_up_requests * max(play.period_us for play in plays)
            time.sleep((warm_up_us + max(run.window_us for run in runs)) / 1e6)
        return _measurement(deployment, runs, self._device)

    def trace(self, deployment: Deployment, *, requests: int) -> MeasuredTrace:
        """Return when everything happens by the table, without noise; errors as for `measure`."""
        charged = charged_for(self._problem, deployment)
        return MeasuredTrace(
            deployment=deployment,
            events=tuple(
                sorted(
                    event
                    for stream in self._checked(deployment)
                    for event in _events(_play(charged, stream), _simulate(charged, stream, requests))
                )
            ),
        )

    def verify(self, deployment: Deployment) -> Verification | None:
        """Return None: nothing is computed."""
        return None

    def close(self) -> None:
        """Do nothing."""

    def _checked(self, deployment: Deployment) -> tuple[Stream, ...]:
        """Return the streams of a deployment that this device can run."""
        wrong = [
            f"stream {stream.name!r}: {violation.message}"
            for stream in deployment.streams
            for violation in check(self._problem, Plan(chunks=stream.chunks))
            if violation.rule in IMPOSSIBLE
        ]
        wrong += [
            f"streams {a!r} and {b!r} need the same cores or unit" for a, b in self._clashes(deployment)
        ]
        if wrong:
            raise ExecutionError(f"the {self._device} cannot run [{deployment}]: {'; '.join(wrong)}")
        return deployment.streams

    def _clashes(self, deployment: Deployment) -> Iterator[tuple[str, str]]:
        platform = self._problem.platform
        names = platform.unit_names
        exclusive = {(names[u], names[v]) for u, v in platform.conflicts}
        for one, other in combinations(deployment.streams, 2):
            pairs = {(a.unit, b.unit) for a in one.chunks for b in other.chunks}
            if any(a == b or (a, b) in exclusive or (b, a) in exclusive for a, b in pairs):
                yield one.name, other.name


def _simulate(problem: Problem, stream: Stream, requests: int) -> Trace:
    plan = Plan(chunks=stream.chunks)
    return simulate(problem, plan, requests=requests, interval_us=0, task_slots=stream.slots)


def _play(problem: Problem, stream: Stream) -> _Play:
    """Play a stream until it repeats itself, which it does every `slots` requests."""
    trace = _simulate(problem, stream, 8 * stream.slots)
    cycle = 4 * stream.slots
    last = [event for event in trace.events if event.request == len(trace.arrivals_us) - 1]
    chain = chain_of(problem.charged(trace.plan))
    return _Play(
        stream=stream,
        period_us=(trace.output_us[-1] - trace.output_us[-1 - cycle]) / cycle,
        latency_us=last[-1].end_us - last[0].start_us,
        chunk_us=tuple(
            (
                chain.transfer_in_us[start][unit],
                chain.prefix_us[unit][stop] - chain.prefix_us[unit][start],
                chain.transfer_out_us[stop][unit],
            )
            for start, stop, unit in chain.parts(trace.plan)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Play:
    """The steady state of a stream, without noise; `chunk_us`: copy-in, run, copy-out of each chunk."""

    stream: Stream
    period_us: float
    latency_us: int
    chunk_us: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Some requests of a stream, each with its factor of noise."""

    play: _Play
    factors: tuple[float, ...]

    @property
    def window_us(self) -> float:
        return self.play.period_us * sum(self.factors)

    @property
    def period_us(self) -> float:
        return self.play.period_us * fmean(self.factors)

    def block(self, number: int, blocks: int) -> _Run:
        count = len(self.factors)
        return replace(self, factors=self.factors[number * count // blocks : (number + 1) * count // blocks])

    def spread(self, time_us: float) -> Spread:
        return Spread.of([time_us * factor for factor in self.factors])


def _joint_period_us(runs: Sequence[_Run]) -> float:
    """Return the time between two outputs of streams of one network side by side."""
    return harmonic_mean([run.period_us for run in runs]) / len(runs)


def _measurement(deployment: Deployment, runs: Sequence[_Run], device: str) -> Measurement:
    period_us = _joint_period_us(runs)
    blocks = min(BLOCKS, *(len(run.factors) for run in runs))
    return Measurement(
        deployment=deployment,
        period_us=period_us,
        period_blocks_us=tuple(
            _joint_period_us([run.block(number, blocks) for run in runs]) for number in range(blocks)
        ),
        requests=sum(len(run.factors) for run in runs),
        seconds=max(run.window_us for run in runs) / 1e6,
        streams=tuple(
            StreamTimes(
                stream=run.play.stream.name,
                requests=len(run.factors),
                period_us=run.period_us,
                latency_us=run.spread(run.play.latency_us),
            )
            for run in runs
        ),
        chunks=tuple(times for run in runs for times in _chunk_times(run)),
        units=tuple(use for run in runs for use in _unit_uses(run, period_us)),
        receipts=tuple(simulated_receipt(chunk) for stream in deployment.streams for chunk in stream.chunks),
        device=device,
    )


def _chunk_times(run: _Run) -> Iterator[ChunkTimes]:
    stream = run.play.stream
    for index, (chunk, times) in enumerate(zip(stream.chunks, run.play.chunk_us, strict=True)):
        copy_in, running, copy_out = map(run.spread, times)
        yield ChunkTimes(
            stream=stream.name,
            chunk=index,
            unit=chunk.unit,
            busy_us=run.spread(sum(times)),
            copy_in_us=copy_in,
            run_us=running,
            copy_out_us=copy_out,
        )


def _unit_uses(run: _Run, period_us: float) -> Iterator[UnitUse]:
    for chunk, times in zip(run.play.stream.chunks, run.play.chunk_us, strict=True):
        busy_us = period_us * sum(times) / run.play.period_us
        yield UnitUse(unit=chunk.unit, busy_us=busy_us, bubble_us=period_us - busy_us, rss_bytes=0)


def _events(play: _Play, trace: Trace) -> Iterator[MeasuredEvent]:
    for event in trace.events:
        copy_in, _, copy_out = play.chunk_us[event.chunk]
        yield MeasuredEvent(
            start_ns=1000 * event.start_us,
            run_ns=1000 * (event.start_us + copy_in),
            copied_ns=1000 * (event.end_us - copy_out),
            end_ns=1000 * event.end_us,
            stream=play.stream.name,
            request=event.request,
            chunk=event.chunk,
            unit=event.unit,
        )

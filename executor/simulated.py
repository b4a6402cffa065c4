"""A device that is only simulated: deployments are played on a cost table, which is its truth."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from statistics import fmean, harmonic_mean

from ..formulations.deployment import Deployment
from ..formulations.errors import ExecutionError, InvalidInputError, InvalidPlanError
from ..formulations.history import History, Interval, SteadyState, is_message
from ..formulations.judge import check, malformations
from ..formulations.operation import operation_of
from ..formulations.plan import Chunk, Plan
from ..formulations.problem import Problem
from .engine import SIMULATED, PlacementReceipt
from .measurement import ChunkTimes, Measurement, Spread, StreamTimes, UnitUse
from .runner import Budget, Verification

MOST_REQUESTS = 20_000
"""Most requests of a stream that one measurement plays; its window is shorter where this binds."""

BLOCKS = 10
"""Blocks into which the window of a measurement is divided."""

IMPOSSIBLE = frozenset({"support", "conflict", "cut", "link", "unit_memory", "device_memory", "switch"})
"""What a device cannot do with a well-formed plan; limits and rules are wishes, which it does not know."""


class Noise:
    """Random factors on what things take, the same for the same seed.

    `permille`: standard deviation of a random factor on each request, and of another one on each measurement
    as a whole (on real devices repetitions differ more than the requests of one repetition); `seed`: decides
    the noise, together with what is measured and how often it has been measured before.
    Raises InvalidInputError: it is out of range.
    """

    def __init__(self, permille: int, *, seed: int) -> None:
        if not 0 <= permille <= 500:
            raise InvalidInputError(f"noise_permille is {permille}, must be between 0 and 500")
        self._deviation = permille / 1000
        self._seed = seed
        self._visits: dict[str, int] = {}

    def visit(self, key: str) -> Iterator[float]:
        """Return the factors of all requests of the next measurement of something, without end."""
        count = self._visits[key] = self._visits.get(key, 0) + 1
        return self._factors(random.Random(f"{self._seed} {key} {count}"))

    def _factors(self, rng: random.Random) -> Iterator[float]:
        shared = self._factor(rng)
        while True:
            yield shared * self._factor(rng)

    def _factor(self, rng: random.Random) -> float:
        return math.exp(rng.gauss(0.0, self._deviation)) if self._deviation else 1.0


def charged_for(problem: Problem, deployment: Deployment) -> Problem:
    """Return the problem with the costs that hold in a deployment (`Operation.charged`), if it can run."""
    operation = problem.formulation.operation
    return problem if operation is None else operation.charged(problem, deployment)


def device_name(problem: Problem) -> str:
    """Return what a device that obeys the costs of a problem is called."""
    method = problem.costs.provenance.method
    return f"simulated {problem.platform.name}{f' (costs: {method})' if method else ''}"


def requests_within(budget: Budget, period_us: float) -> int:
    """Return how many requests a budget allows, at least one."""
    limits = [MOST_REQUESTS]
    if budget.seconds is not None:
        limits.append(math.ceil(budget.seconds * 1e6 / period_us))
    if budget.requests is not None:
        limits.append(budget.requests)
    return max(1, min(limits))


def simulated_receipt(chunk: Chunk) -> PlacementReceipt:
    """Return a receipt that says that nothing was granted."""
    return PlacementReceipt(
        unit=chunk.unit,
        piece=f"{chunk.network}[{chunk.start}:{chunk.stop})",
        engine=SIMULATED,
        asked_backend=SIMULATED,
        granted_backend=SIMULATED,
        asked_threads=None,
        granted_threads=None,
        asked_cores=(),
        granted_cores=None,
    )


class SimulatedRunner:
    """Plays deployments on the cost table of a problem; implements `Runner`.

    Each chunk takes what the table says: a table that was measured under load makes a single unit as slow as
    a busy device does. The requests of a workload slow each other down as the interference of the problem
    says; other streams must not share units, and their memory is checked one by one. There are no numbers to
    verify, and receipts say that nothing was granted.

    `noise_permille`, `seed`: random variation of every execution (see `Noise`).
    Raises InvalidInputError: the noise is out of range, or the problem has several networks and no workload.
    """

    def __init__(
        self, problem: Problem, *, noise_permille: int = 0, seed: int = 0, real_time: bool = False
    ) -> None:
        self._operation = operation_of(problem)
        self._operation.check_device(problem)
        self._problem = problem
        self._noise = Noise(noise_permille, seed=seed)
        self._real_time = real_time
        self._device = device_name(problem)

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        """Play a deployment.

        Raises ExecutionError: it is for another workload, or the device cannot run it: a unit is unknown or
        shared, or cannot run a layer. The message says which.
        """
        charged = self._charged_for(deployment)
        states = operation_of(charged).steady(charged, deployment)
        noise = self._noise.visit(deployment.deployment_id)
        runs = [
            _Run(
                steady=state,
                streams=_by_stream(state),
                factors=tuple(islice(noise, requests_within(budget, state.period_us))),
            )
            for state in states
        ]
        if self._real_time:
            warm_up_us = budget.warm_up_requests * max(state.period_us for state in states)
            time.sleep((warm_up_us + max(run.window_us for run in runs)) / 1e6)
        return _measurement(deployment, runs, self._device)

    def trace(self, deployment: Deployment, *, requests: int) -> History:
        """Return when everything happens by the table, without noise; errors as for `measure`."""
        charged = self._charged_for(deployment)
        return operation_of(charged).play(charged, deployment, requests)

    def verify(self, deployment: Deployment) -> Verification | None:
        """Return None: nothing is computed."""
        return None

    def close(self) -> None:
        """Do nothing."""

    def _charged_for(self, deployment: Deployment) -> Problem:
        """Return the problem with the costs of a deployment, which this device can run."""
        try:
            problem = self._operation.matching(self._problem, deployment.parts)
            operation_of(problem).check_deployment(problem, deployment)
            wrong = list(self._wrong(problem, deployment))
        except InvalidPlanError as error:
            raise ExecutionError(f"the {self._device} cannot run [{deployment}]: {error}") from error
        if wrong:
            raise ExecutionError(f"the {self._device} cannot run [{deployment}]: {'; '.join(wrong)}")
        return charged_for(problem, deployment)

    def _wrong(self, problem: Problem, deployment: Deployment) -> Iterator[str]:
        """Yield what the device cannot run; `problem`: that of the deployment."""
        if deployment.rounds is not None or (deployment.plan is not None and len(deployment.streams) > 1):
            named = [("", plan) for plan in deployment.plans]
        else:
            named = [(f"stream {s.name!r}: ", Plan(chunks=s.placed)) for s in deployment.streams]
        for name, plan in named:
            broken = malformations(problem, plan) or [
                violation for violation in check(problem, plan) if violation.rule in IMPOSSIBLE
            ]
            yield from (f"{name}{violation.message}" for violation in broken)
        if deployment.rounds is None:
            yield from self._clashes(deployment)

    def _clashes(self, deployment: Deployment) -> Iterator[str]:
        """Yield which streams side by side cannot run at the same time."""
        platform = self._problem.platform
        names = platform.unit_names
        exclusive = {(names[u], names[v]) for u, v in platform.conflicts}
        for one, other in combinations(deployment.streams, 2):
            pairs = {(a.unit, b.unit) for a in one.chunks for b in other.chunks}
            if any(a == b or (a, b) in exclusive or (b, a) in exclusive for a, b in pairs):
                yield f"streams {one.name!r} and {other.name!r} need the same cores or unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Some rounds of streams that go in step, each with its factor of noise; `streams`: a round of each."""

    steady: SteadyState
    streams: Mapping[int, Sequence[Interval]]
    factors: tuple[float, ...]

    @property
    def window_us(self) -> float:
        return self.steady.period_us * sum(self.factors)

    @property
    def period_us(self) -> float:
        return self.steady.period_us * fmean(self.factors)

    def block(self, number: int, blocks: int) -> _Run:
        count = len(self.factors)
        return replace(self, factors=self.factors[number * count // blocks : (number + 1) * count // blocks])

    def spread(self, time_us: float) -> Spread:
        return Spread.of([time_us * factor for factor in self.factors])


def _by_stream(state: SteadyState) -> dict[int, list[Interval]]:
    """Return what happens in a round of each stream, by chunk."""
    found: dict[int, list[Interval]] = {}
    for event in sorted(state.events, key=lambda event: (event.stream, event.chunk)):
        found.setdefault(event.stream, []).append(event)
    return found


def _joint_period_us(runs: Sequence[_Run]) -> float:
    """Return the time between two outputs of streams side by side: their rates add up."""
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
        requests=sum(len(run.factors) * len(run.streams) for run in runs),
        seconds=max(run.window_us for run in runs) / 1e6,
        streams=tuple(_stream_times(deployment, run, stream) for run in runs for stream in run.streams),
        chunks=tuple(times for run in runs for times in _chunk_times(deployment, run)),
        units=tuple(_unit_use(deployment, runs, unit, period_us) for unit in deployment.units),
        receipts=tuple(simulated_receipt(chunk) for stream in deployment.streams for chunk in stream.chunks),
        device=device,
        simulated=True,
        makespan_us=runs[0].spread(runs[0].steady.period_us) if deployment.is_batch else None,
    )


def _stream_times(deployment: Deployment, run: _Run, stream: int) -> StreamTimes:
    events, rounds = run.streams[stream], deployment.rounds
    # A round of a batch begins at 0, and its requests arrive when they do.
    begin_us = (
        rounds.arrivals_us[stream]
        if rounds is not None and deployment.is_batch
        else min(event.start_us for event in events)
    )
    return StreamTimes(
        stream=deployment.streams[stream].name,
        requests=len(run.factors),
        period_us=run.period_us,
        latency_us=run.spread(max(event.end_us for event in events) - begin_us),
    )


def _chunk_times(deployment: Deployment, run: _Run) -> Iterator[ChunkTimes]:
    for stream, events in run.streams.items():
        for event in events:
            if is_message(event, deployment.streams):
                continue
            copy_in, running, copy_out = map(run.spread, event.parts_us)
            yield ChunkTimes(
                stream=deployment.streams[stream].name,
                chunk=event.chunk,
                unit=event.unit,
                busy_us=run.spread((event.end_ns - event.start_ns) / 1000),
                copy_in_us=copy_in,
                run_us=running,
                copy_out_us=copy_out,
            )


def _unit_use(deployment: Deployment, runs: Sequence[_Run], unit: str, period_us: float) -> UnitUse:
    """Return the use of one unit, for each period of the deployment."""
    run, events = next(
        (run, found) for run in runs if (found := [e for e in run.steady.events if e.unit == unit])
    )
    round_us = run.steady.period_us
    busy_us = sum(event.end_ns - event.start_ns for event in events) / 1000
    span_us = (max(event.end_ns for event in events) - min(event.start_ns for event in events)) / 1000
    idle_us = max(0.0, (span_us if deployment.is_batch else round_us) - busy_us)
    return UnitUse(
        unit=unit,
        busy_us=period_us * busy_us / round_us,
        bubble_us=period_us * idle_us / round_us,
        rss_bytes=0,
    )

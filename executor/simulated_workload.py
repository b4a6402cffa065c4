"""A simulated device that serves workloads: rounds are played as the judge plays them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from statistics import fmean

from ..formulations.deployment import Deployment
from ..formulations.errors import ExecutionError, InvalidPlanError
from ..formulations.flow_shop.play import Run
from ..formulations.flow_shop.tables import shop_of, workload_in
from ..formulations.flow_shop.values import WorkloadValues
from ..formulations.judge import check
from ..formulations.problem import Problem
from .deployment import deploy
from .measurement import ChunkTimes, MeasuredEvent, MeasuredTrace, Measurement, Spread, StreamTimes, UnitUse
from .runner import Budget, Verification
from .simulation import BLOCKS, IMPOSSIBLE, Noise, device_name, requests_within, simulated_receipt

STEADY_ROUND = 7
"""Round of a stream that stands for all: what came before has filled the pipeline."""


class SimulatedWorkloadRunner:
    """Plays deployments of one workload on the cost table of a problem; implements `Runner`.

    Chunks slow each other down as the interference of the problem says. There are no numbers to verify, and
    receipts say that nothing was granted.

    Parameters
    ----------
    problem
        With a workload; its costs and interference are the truth.
    noise_permille, seed
        Random variation of every execution (see `Noise`).
    real_time
        Take the time that the device would take.

    Raises
    ------
    InvalidInputError
        The noise is out of range.
    """

    def __init__(
        self, problem: Problem, *, noise_permille: int = 0, seed: int = 0, real_time: bool = False
    ) -> None:
        self._problem = problem
        self._noise = Noise(noise_permille, seed=seed)
        self._real_time = real_time
        self._device = device_name(problem)

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        """Play a deployment.

        Raises
        ------
        ExecutionError
            It is for another workload, or the device cannot run it; the message says why.
        """
        play = self._play(deployment)
        count = requests_within(budget, play.period_us)
        factors = tuple(islice(self._noise.visit(deployment.deployment_id), count))
        if self._real_time:
            time.sleep(play.period_us * (sum(factors) + budget.warm_up_requests) / 1e6)
        return _measurement(play, factors, self._device)

    def trace(self, deployment: Deployment, *, requests: int) -> MeasuredTrace:
        """Return when everything happens by the table, without noise; errors as for `measure`."""
        play = self._play(deployment)
        if deployment.is_batch:
            rounds = [_shifted(play.round, number * play.period_us) for number in range(requests)]
        else:
            rounds = _by_round(play.values, requests)
        return MeasuredTrace(
            deployment=deployment,
            events=tuple(sorted(_events(play, rounds))),
        )

    def verify(self, deployment: Deployment) -> Verification | None:
        """Return None: nothing is computed."""
        return None

    def close(self) -> None:
        """Do nothing."""

    def _play(self, deployment: Deployment) -> _Play:
        plan, workload = deployment.plan, workload_in(self._problem)
        try:
            if plan is None or deploy(plan, workload=workload).rounds != deployment.rounds:
                raise InvalidPlanError("it serves another workload")
            wrong = [v.message for v in check(self._problem, plan) if v.rule in IMPOSSIBLE]
            if wrong:
                raise InvalidPlanError("; ".join(wrong))
        except InvalidPlanError as error:
            raise ExecutionError(f"the {self._device} cannot run [{deployment}]: {error}") from error
        shop = shop_of(self._problem)
        values = WorkloadValues(shop, shop.schedule(plan))
        batch = deployment.is_batch
        return _Play(
            deployment=deployment,
            values=values,
            period_us=values.makespan_us if batch else values.period_us,
            round=_by_round(values, 1)[0] if batch else _by_round(values, STEADY_ROUND + 1)[STEADY_ROUND],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Play:
    """One round that stands for all, without noise; `values` has everything else."""

    deployment: Deployment
    values: WorkloadValues
    period_us: int
    round: Sequence[Run]

    def spans(self) -> list[tuple[int, int]]:
        """Return the first start and the last end of each request, by place in the order."""
        found = [
            [run for run in self.round if run.position == place]
            for place in range(len(self.deployment.streams))
        ]
        return [(min(run.start_us for run in runs), max(run.end_us for run in runs)) for runs in found]

    def copies_us(self, run: Run) -> tuple[int, int]:
        """Return how long the copies of a chunk take: in, out."""
        shop, request = self.values.shop, self.values.schedule.order[run.position]
        chain, cuts = shop.chain(request), self.values.schedule.cuts[request]
        start, stop = cuts[run.unit], cuts[run.unit + 1]
        return chain.transfer_in_us[start][run.unit], chain.transfer_out_us[stop][run.unit]


def _by_round(values: WorkloadValues, rounds: int) -> list[list[Run]]:
    """Return what runs in each of several rounds that follow each other without waiting, by place."""
    count = values.shop.request_count
    found: list[list[Run]] = [[] for _ in range(rounds)]
    for run in values.play(rounds):
        found[run.position // count].append(replace(run, position=run.position % count))
    return [sorted(runs, key=lambda run: (run.position, run.unit)) for runs in found]


def _shifted(runs: Sequence[Run], by_us: int) -> list[Run]:
    return [replace(run, start_us=run.start_us + by_us, end_us=run.end_us + by_us) for run in runs]


def _events(play: _Play, rounds: Sequence[Sequence[Run]]) -> Iterator[MeasuredEvent]:
    units = play.values.shop.units
    for number, runs in enumerate(rounds):
        for place, own in groupby(runs, key=lambda run: run.position):
            for chunk, run in enumerate(own):
                copy_in, copy_out = play.copies_us(run)
                yield MeasuredEvent(
                    start_ns=1000 * run.start_us,
                    run_ns=1000 * (run.start_us + copy_in),
                    copied_ns=1000 * (run.end_us - copy_out),
                    end_ns=1000 * run.end_us,
                    stream=play.deployment.streams[place].name,
                    request=number,
                    chunk=chunk,
                    unit=units[run.unit],
                )


def _measurement(play: _Play, factors: Sequence[float], device: str) -> Measurement:
    deployment = play.deployment
    period_us = play.period_us * fmean(factors)
    blocks = min(BLOCKS, len(factors))
    return Measurement(
        deployment=deployment,
        period_us=period_us,
        period_blocks_us=tuple(
            play.period_us
            * fmean(factors[number * len(factors) // blocks : (number + 1) * len(factors) // blocks])
            for number in range(blocks)
        ),
        requests=len(factors) * len(deployment.streams),
        seconds=play.period_us * sum(factors) / 1e6,
        streams=tuple(_stream_times(play, factors)),
        chunks=tuple(_chunk_times(play, factors)),
        units=tuple(_unit_uses(play, fmean(factors))),
        receipts=tuple(simulated_receipt(chunk) for stream in deployment.streams for chunk in stream.chunks),
        device=device,
        makespan_us=_spread(play.period_us, factors) if deployment.is_batch else None,
    )


def _spread(time_us: float, factors: Sequence[float]) -> Spread:
    return Spread.of([time_us * factor for factor in factors])


def _stream_times(play: _Play, factors: Sequence[float]) -> Iterator[StreamTimes]:
    rounds = play.deployment.rounds
    assert rounds is not None
    streams = zip(play.deployment.streams, play.spans(), rounds.arrivals_us, strict=True)
    for stream, (start, end), arrival in streams:
        yield StreamTimes(
            stream=stream.name,
            requests=len(factors),
            period_us=play.period_us * fmean(factors),
            latency_us=_spread(end - (arrival if play.deployment.is_batch else start), factors),
        )


def _chunk_times(play: _Play, factors: Sequence[float]) -> Iterator[ChunkTimes]:
    for event in _events(play, [play.round]):
        yield ChunkTimes(
            stream=event.stream,
            chunk=event.chunk,
            unit=event.unit,
            busy_us=_spread((event.end_ns - event.start_ns) / 1000, factors),
            copy_in_us=_spread((event.run_ns - event.start_ns) / 1000, factors),
            run_us=_spread((event.copied_ns - event.run_ns) / 1000, factors),
            copy_out_us=_spread((event.end_ns - event.copied_ns) / 1000, factors),
        )


def _unit_uses(play: _Play, factor: float) -> Iterator[UnitUse]:
    for unit in play.deployment.units:
        runs = [run for run in play.round if play.values.shop.units[run.unit] == unit]
        busy_us = sum(run.end_us - run.start_us for run in runs)
        span_us = max(run.end_us for run in runs) - min(run.start_us for run in runs)
        idle_us = (span_us if play.deployment.is_batch else play.period_us) - busy_us
        yield UnitUse(unit=unit, busy_us=factor * busy_us, bubble_us=factor * max(0, idle_us), rss_bytes=0)

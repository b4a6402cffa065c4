"""A plan for a workload at work: its requests share the units, as the judge plays them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain as joined

from ..deployment import Deployment
from ..errors import InvalidPlanError
from ..history import History, Interval, SteadyState, executed, simulated
from ..plan import Plan
from ..play import Run
from ..problem import Problem
from .deployment import deploy
from .tables import shop_of, workload_of
from .values import ROUNDS, WorkloadValues


def history(problem: Problem, plan: Plan) -> History:
    """Play a plan for a workload, as the judge does; see `simulate_workload`."""
    shop = shop_of(problem)
    values = WorkloadValues(shop, shop.schedule(plan))
    return simulated(
        plan,
        _intervals(values, values.runs, values.schedule.order),
        units=shop.units,
        arrivals_us=tuple(request.arrival_us for request in shop.workload.requests),
        names=shop.workload.names,
    )


def check_deployment(problem: Problem, deployment: Deployment) -> None:
    """Do nothing for what serves the workload of the problem."""
    workload = workload_of(problem)
    if deployment.plan is None or deploy(deployment.plan, workload).rounds != deployment.rounds:
        raise InvalidPlanError("it serves another workload")


def play(problem: Problem, deployment: Deployment, rounds: int) -> History:
    """Play rounds of a workload: in a batch one after the other, in a stream without waiting."""
    values = _values(problem, deployment)
    places = range(len(deployment.streams))
    if not deployment.is_batch:
        played = _intervals(values, values.play(rounds), places, parts=True)
        return executed(deployment, map(_recorded, played))
    first = list(map(_recorded, _intervals(values, values.runs, places, parts=True)))
    return executed(
        deployment,
        joined.from_iterable(
            _later(first, number, number * 1000 * values.makespan_us) for number in range(rounds)
        ),
    )


def steady(problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
    """Return the one steady state of a workload: a round of it.

    Of a stream it is the last round that its period is taken over.
    """
    values = _values(problem, deployment)
    runs, number = (values.runs, 0) if deployment.is_batch else (values.stream, ROUNDS - 1)
    events = _intervals(values, runs, range(len(deployment.streams)), parts=True)
    return (
        SteadyState(
            period_us=values.makespan_us if deployment.is_batch else values.period_us,
            events=tuple(sorted(event for event in events if event.request == number)),
        ),
    )


def _values(problem: Problem, deployment: Deployment) -> WorkloadValues:
    assert deployment.plan is not None
    shop = shop_of(problem)
    return WorkloadValues(shop, shop.schedule(deployment.plan))


def _recorded(event: Interval) -> Interval:
    """Return an interval as a device records it: nobody knows what slowdown took."""
    return replace(event, slowdown_ns=0)


def _later(events: Iterable[Interval], number: int, by_ns: int) -> Iterator[Interval]:
    for event in events:
        yield replace(event.moved(by_ns), request=number)


def _intervals(
    values: WorkloadValues, runs: Iterable[Run], streams: Sequence[int], *, parts: bool = False
) -> Iterator[Interval]:
    """Yield what has run.

    `runs`: what ran when, in order of the ends; positions count on from round to round.
    """
    shop, schedule = values.shop, values.schedule
    served: Counter[int] = Counter()
    for run in runs:
        number, place = divmod(run.position, shop.request_count)
        engine_us: tuple[int, ...] = ()
        if parts:
            chain, cuts = shop.chain(schedule.order[place]), schedule.cuts[schedule.order[place]]
            copy_in = chain.transfer_in_us[cuts[run.unit]][run.unit]
            copy_out = chain.transfer_out_us[cuts[run.unit + 1]][run.unit]
            engine_us = (run.start_us + copy_in, run.end_us - copy_out)
        yield Interval(
            start_ns=1000 * run.start_us,
            end_ns=1000 * run.end_us,
            stream=streams[place],
            request=number,
            chunk=served[run.position],
            unit=shop.units[run.unit],
            slowdown_ns=1000 * (run.end_us - run.start_us - run.work_us),
            engine_ns=tuple(1000 * at for at in engine_us),
        )
        served[run.position] += 1

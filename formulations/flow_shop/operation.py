"""How plans for a workload run, and what a run leaves: one stream for each request, in rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain as joined

from ..deployment import Deployment, Mode, Rounds
from ..errors import InvalidPlanError
from ..history import History, Interval, SteadyState, executed
from ..plan import Plan
from ..play import Run
from ..problem import Problem
from ..requests import RequestOperation, stream_of
from ..schedules import as_schedules, free_schedules, orders_chunks
from ..usage import Usage
from ..workload import Execution, LoadPolicy, Workload
from .memory import memory_usage
from .tables import shop_of, workload_of
from .values import ROUNDS, WorkloadValues


class FlowShopOperation(RequestOperation):
    """Rounds of all requests: one after the other in a batch, without waiting in a stream."""

    def pace(self, problem: Problem) -> str:
        """Return the makespan of a batch, the period of a stream: nothing else can a race compare."""
        return "makespan" if workload_of(problem).mode is Mode.BATCH else "period"

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream for each request, in their order."""
        return deploy(plan, workload_of(problem), task_slots=task_slots)

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return the same for workloads that the runtime cannot serve, too."""
        return arrange(plan, workload_of(problem))

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the requests as schedules, which may come back to units."""
        found = free_schedules(problem)
        yield from () if found is None else (found,)

    def matching(self, problem: Problem, plans: Iterable[Plan]) -> Problem:
        """Return the requests as schedules where a plan orders chunks and not requests."""
        return as_schedules(problem) if any(orders_chunks(plan) for plan in plans) else problem

    def ran(self, problem: Problem, plan: Plan) -> Iterator[Interval]:
        """Yield what has run."""
        shop = shop_of(problem)
        values = WorkloadValues(shop, shop.schedule(plan))
        return _intervals(values, values.runs, values.schedule.order)

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time."""
        assert history.plan is not None
        shop = shop_of(problem)
        schedule = shop.schedule(history.plan)
        position = {shop.workload.names[request]: place for place, request in enumerate(schedule.order)}
        runs = []
        for event in history.events:
            start_us, end_us = event.span_us
            runs.append(
                Run(
                    position=position[history.streams[event.stream].name],
                    unit=shop.units.index(event.unit),
                    start_us=start_us,
                    end_us=end_us,
                    work_us=end_us - start_us - event.slowdown_ns // 1000,
                )
            )
        return memory_usage(shop, schedule, runs)

    def check_deployment(self, problem: Problem, deployment: Deployment) -> None:
        """Refuse what does not serve the workload."""
        workload = workload_of(problem)
        if deployment.plan is None or deploy(deployment.plan, workload).rounds != deployment.rounds:
            raise InvalidPlanError("it serves another workload")

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play rounds: in a batch one after the other, in a stream without waiting."""
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

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what one round does; of a stream, the last round that its period is taken over."""
        values = _values(problem, deployment)
        runs, number = (values.runs, 0) if deployment.is_batch else (values.stream, ROUNDS - 1)
        events = _intervals(values, runs, range(len(deployment.streams)), parts=True)
        return (
            SteadyState(
                period_us=values.makespan_us if deployment.is_batch else values.period_us,
                events=tuple(sorted(event for event in events if event.request == number)),
            ),
        )


_NOT_RUN = {
    Execution.COLUMNS: "columns are a way to score plans; it runs chunks as soon as they can: plan with the "
    "execution asynchronous",
    LoadPolicy.RUNNING: "it keeps all weights in memory: plan with the load policy resident",
}
"""What a workload can ask that units do not do, and why."""


def deploy(plan: Plan, workload: Workload, *, task_slots: int | None = None) -> Deployment:
    """Return a plan for a workload as a deployment.

    `task_slots`: of each stream; None: one in a batch, which has one request of each, else as `Stream` says.
    """
    asks = [text for value, text in _NOT_RUN.items() if value in (workload.execution, workload.load_policy)]
    if asks:
        raise InvalidPlanError("the runtime cannot serve this workload:", asks)
    return arrange(plan, workload, task_slots=task_slots)


def arrange(plan: Plan, workload: Workload, *, task_slots: int | None = None) -> Deployment:
    """Return a plan as `deploy` does, also for a workload that the runtime cannot serve: to be looked at."""
    arrivals = {request.name: request.arrival_us for request in workload.requests}
    if sorted(plan.order) != sorted(arrivals):
        raise InvalidPlanError(f"[{plan}] is no plan for the requests {', '.join(workload.names)}")
    if workload.mode is Mode.BATCH and task_slots is None:
        task_slots = 1
    return Deployment(
        streams=tuple(stream_of(plan, name, task_slots) for name in plan.order),
        rounds=Rounds(
            mode=workload.mode,
            arrivals_us=tuple(arrivals[name] for name in plan.order),
            task_slots=workload.task_slots,
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

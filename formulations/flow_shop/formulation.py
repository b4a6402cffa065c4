"""The flow shop as a formulation, and how its plans run: one stream for each request, in rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import ClassVar

from ..branches import order_words
from ..demands import Demand
from ..deployment import Deployment, Mode, Rounds
from ..energy import unknown_energy
from ..errors import InvalidPlanError
from ..formulation import of_tables
from ..history import History, SteadyState, Usage, executed
from ..limits import LIMIT_NAMES, OF_ONE_NETWORK
from ..model import Encoded
from ..plan import Plan
from ..play import Run
from ..problem import Problem
from ..requests import RequestFormulation, RequestOperation, stream_of
from ..schedules import as_schedules, free_schedules, orders_chunks
from ..scores import Violation
from ..terms import PlanNumbers
from ..workload import Execution, LoadPolicy, RequestOrder, Workload
from .encoding import encode_workload
from .quantities import QUANTITIES, TERMS
from .space import DIFFERENCE, all_schedules, count_schedules, near_schedules
from .tables import FlowShop, Schedule, build_shop, shop_of, workload_of
from .values import ROUNDS, WorkloadValues, memory_usage
from .view import WorkloadView

_MOST_WIDER = 20
"""Most requests of a workload beside whose answer a wider class of plans is looked at."""


class WorkloadFeature(StrEnum):
    """What a problem with a workload asks of a backend beyond `Feature`."""

    FREE_ORDER = "free_order"
    INTERFERENCE = "interference"
    COLUMNS = "columns"
    STREAM = "stream"
    ARRIVALS = "arrivals"
    DEADLINES = "deadlines"
    TASK_SLOTS = "task_slots"
    RUNNING_WEIGHTS = "running_weights"


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

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time."""
        assert history.plan is not None
        shop = shop_of(problem)
        parts = shop.chunked(shop.schedule(history.plan)).parts
        runs = []
        for event in history.events:
            request = shop.index[history.streams[event.stream].name]
            (start_us, end_us), part = event.span_us, parts[request][event.chunk]
            work_us = end_us - start_us - event.slowdown_ns // 1000
            runs.append(Run(request, event.chunk, part, start_us, end_us, work_us))
        return memory_usage(shop, parts, runs)

    def check_deployment(self, problem: Problem, deployment: Deployment) -> None:
        """Refuse what does not serve the workload."""
        workload = workload_of(problem)
        if deployment.plan is None or deploy(deployment.plan, workload).rounds != deployment.rounds:
            raise InvalidPlanError("it serves another workload")

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play rounds: in a batch one after the other, in a stream without waiting."""
        if deployment.is_batch:
            return super().play(problem, deployment, rounds)
        values = _values(problem, deployment)
        names = [stream.name for stream in deployment.streams]
        played = values.tables.intervals(values.play(rounds), names)
        return executed(deployment, (replace(event, slowdown_ns=0) for event in played))  # nobody measures it

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what one round does; of a stream, the last round that its period is taken over."""
        if deployment.is_batch:
            return super().steady(problem, deployment)
        values = _values(problem, deployment)
        names = [stream.name for stream in deployment.streams]
        last = (run for run in values.stream if run.round == ROUNDS - 1)
        events = sorted(values.tables.intervals(last, names))
        return (SteadyState(period_us=values.period_us, events=tuple(events)),)


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


class FlowShopFormulation(RequestFormulation[FlowShop, Schedule]):
    """Requests of several networks pass the units in one order, which every unit keeps."""

    name: ClassVar[str] = "flow_shop"
    label: ClassVar[str] = "problems with a workload"
    data_key: ClassVar[str | None] = "workload"
    data_type: ClassVar[type | None] = Workload
    terms = TERMS
    quantities = QUANTITIES
    difference = DIFFERENCE
    operation = FlowShopOperation()
    features: ClassVar[frozenset[str]] = frozenset(map(str, WorkloadFeature))
    limits: ClassVar[tuple[str, ...]] = tuple(name for name in LIMIT_NAMES if name not in OF_ONE_NETWORK)
    incomplete: ClassVar[str] = (
        "every layer can run somewhere, but no sequence of chunks, at most one on each unit and in the order "
        "of the units, covers the network"
    )
    unknown = staticmethod(unknown_energy)
    tables = staticmethod(build_shop)
    view = of_tables(WorkloadView)
    code = of_tables(FlowShop.schedule)
    plan = of_tables(FlowShop.plan)
    numbers = of_tables(WorkloadValues)
    count = of_tables(count_schedules)
    codes = of_tables(all_schedules)
    neighbours = of_tables(near_schedules)

    def needs(self, problem: Problem) -> frozenset[str]:
        """Return what the workload asks of a backend."""
        workload = workload_of(problem)
        running = workload.load_policy is LoadPolicy.RUNNING
        present = {
            WorkloadFeature.FREE_ORDER: workload.order is RequestOrder.FREE and len(workload.requests) > 1,
            WorkloadFeature.INTERFERENCE: shop_of(problem).losses.contended,
            WorkloadFeature.COLUMNS: workload.execution is Execution.COLUMNS,
            WorkloadFeature.STREAM: workload.mode is Mode.STREAM,
            WorkloadFeature.ARRIVALS: any(request.arrival_us for request in workload.requests),
            WorkloadFeature.DEADLINES: any(request.deadline_us for request in workload.requests),
            WorkloadFeature.TASK_SLOTS: workload.task_slots is not None,
            WorkloadFeature.RUNNING_WEIGHTS: running and problem.platform.memory_bytes is not None,
        }
        return frozenset(str(feature) for feature, there in present.items() if there)

    def demands(self, problem: Problem) -> list[Demand]:
        """Return deadlines and the order."""
        workload = workload_of(problem)
        found = [
            Demand(
                name=f"deadline of {request.name}",
                text=f"request {request.name!r} takes at most {request.deadline_us} us",
                without=_without_deadline(request.name),
            )
            for request in workload.requests
            if request.deadline_us is not None
        ]
        if workload.order is RequestOrder.FIXED:
            text = f"the requests are served in the order {', '.join(workload.names)}"
            found.append(Demand(name="order", text=text, without=_without_order))
        return found

    def broken(self, problem: Problem, code: Schedule, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield cuts, conflicts, capacities, deadlines and the order, as far as a plan breaks them."""
        assert isinstance(numbers, WorkloadValues)
        for request, parts in enumerate(numbers.code.parts):
            for start, stop, unit in parts:
                if stop not in numbers.tables.chain(request).cuts:
                    name, on = numbers.tables.asked.names[request], numbers.tables.units[unit]
                    text = f"request {name!r}, chunk [{start}, {stop}) on {on!r} ends where no cut is allowed"
                    yield Violation(rule="cut", message=text)
        yield from numbers.conflicts()
        requests, order = numbers.tables.workload.requests, code.order
        if not numbers.tables.order_is_free and list(order) != sorted(order):
            names = [requests[request].name for request in order]
            yield Violation(rule="order", message=f"the order is fixed, the plan has {names}")
        yield from _deadlines(numbers)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return load, bubble and bytes by unit, and the latency of each request."""
        assert isinstance(numbers, WorkloadValues)
        busy, units = numbers.busy_us, range(numbers.tables.unit_count)
        bubbles, needs = numbers.unit_bubble_us, numbers.memory_bytes
        return {
            "busy_us": tuple(busy.get(unit) for unit in units),
            "bubble_us": tuple(bubbles.get(unit) if unit in busy else None for unit in units),
            "memory_bytes": tuple(needs.get(unit) for unit in units),
            "request_latency_us": numbers.request_latency_us,
        }

    def rate(self, numbers: PlanNumbers) -> float:
        """Return requests per second: of a batch from start to end, of a stream in its steady state."""
        assert isinstance(numbers, WorkloadValues)
        endless = numbers.tables.workload.mode is Mode.STREAM
        round_us = numbers.period_us if endless else numbers.makespan_us
        return 1e6 * numbers.tables.request_count / round_us

    def key(self, problem: Problem, code: Schedule) -> tuple[int, ...]:
        """Return the order, then the cuts."""
        return (*code.order, *(cut for cuts in code.cuts for cut in cuts))

    def plan_class(self, problem: Problem) -> str:
        """Return in which order requests pass the units, and units serve requests."""
        workload = workload_of(problem)
        layers = order_words(self.placed(problem))
        request = f"every request{layers}," if layers else "every request"
        units = ", ".join(problem.platform.unit_names)
        words = f"plans in which {request} passes the units once, in the order {units}"
        if len(workload.requests) > 1:
            fixed = workload.order is RequestOrder.FIXED
            words += f", and all units serve them in {'the given' if fixed else 'one'} order"
            words += ", in columns" if workload.execution is Execution.COLUMNS else ", as soon as they can"
        return f"{words}, alike in every round" if workload.mode is Mode.STREAM else words

    def outside(self, problem: Problem) -> str:
        """Return that the order of the units could be another one."""
        if len(problem.platform.units) == 1:
            return ""
        return (
            "Another order of the units, or several passes, may have a plan (--passage once, --passage any)."
        )

    def wider(self, problem: Problem) -> tuple[str, Problem] | None:
        """Return the problem whose requests may come back to units; None: too large, or of another kind."""
        few = len(workload_of(problem).requests) <= _MOST_WIDER
        found = free_schedules(problem) if few else None
        return None if found is None else ("--passage any", found)

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Schedule | None = None
    ) -> Encoded[Schedule]:
        """Return the formulation that suits what is asked (`encoding.py`)."""
        return encode_workload(problem, top=top, known=known)


def _deadlines(values: WorkloadValues) -> Iterator[Violation]:
    pairs = zip(values.tables.workload.requests, values.request_latency_us, strict=True)
    for request, took in pairs:
        if request.deadline_us is not None and took > request.deadline_us:
            text = f"request {request.name!r} takes {took} us, its deadline is {request.deadline_us} us"
            yield Violation(rule="deadline", message=text)


def _without_deadline(name: str) -> Callable[[Problem], Problem]:
    def drop(problem: Problem) -> Problem:
        workload = workload_of(problem)
        requests = tuple(
            replace(request, deadline_us=None) if request.name == name else request
            for request in workload.requests
        )
        return replace(problem, data=replace(workload, requests=requests))

    return drop


def _without_order(problem: Problem) -> Problem:
    return replace(problem, data=replace(workload_of(problem), order=RequestOrder.FREE))


FORMULATION = FlowShopFormulation()

"""The flow shop as a formulation: what the rest of gapless knows about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise
from typing import ClassVar

from ..branches import order_words
from ..demands import Demand
from ..deployment import Mode
from ..energy import unknown_energy
from ..formulation import of_tables
from ..limits import LIMIT_NAMES, OF_ONE_NETWORK
from ..model import Encoded
from ..problem import Problem
from ..requests import RequestFormulation
from ..schedules import free_schedules
from ..scores import Violation, shared_cores
from ..terms import PlanNumbers
from ..workload import Execution, LoadPolicy, RequestOrder, Workload
from .encoding import encode_workload
from .operation import FlowShopOperation
from .quantities import QUANTITIES, TERMS
from .space import DIFFERENCE, all_schedules, count_schedules, near_schedules
from .tables import FlowShop, Schedule, build_shop, shop_of, workload_of
from .values import WorkloadValues
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
        yield from _structure(numbers.shop, numbers)
        requests, order = numbers.shop.workload.requests, code.order
        if not numbers.shop.order_is_free and list(order) != sorted(order):
            names = [requests[request].name for request in order]
            yield Violation(rule="order", message=f"the order is fixed, the plan has {names}")
        yield from _deadlines(numbers)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return load, bubble and bytes by unit, and the latency of each request."""
        assert isinstance(numbers, WorkloadValues)
        busy, units = numbers.busy_us, range(numbers.shop.unit_count)
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
        endless = numbers.shop.workload.mode is Mode.STREAM
        round_us = numbers.period_us if endless else numbers.makespan_us
        return 1e6 * numbers.shop.request_count / round_us

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
    pairs = zip(values.shop.workload.requests, values.request_latency_us, strict=True)
    for request, took in pairs:
        if request.deadline_us is not None and took > request.deadline_us:
            text = f"request {request.name!r} takes {took} us, its deadline is {request.deadline_us} us"
            yield Violation(rule="deadline", message=text)


def _structure(shop: FlowShop, values: WorkloadValues) -> Iterator[Violation]:
    first = shop.chains[0]
    yield from shared_cores(values.busy_us, first.exclusive, shop.units)
    for request, cuts in enumerate(values.schedule.cuts):
        chain, name = shop.chain(request), shop.workload.requests[request].name
        for unit, (start, stop) in enumerate(pairwise(cuts)):
            if start < stop and stop not in chain.cuts:
                where = f"request {name!r}, chunk [{start}, {stop}) on {shop.units[unit]!r}"
                yield Violation(rule="cut", message=f"{where} ends where no cut is allowed")
            if start < stop:
                yield from shop.too_large(request, start, stop, unit)
    if first.device_memory is not None and values.peak_bytes > first.device_memory:
        message = f"the plan needs {values.peak_bytes} bytes, the device has {first.device_memory}"
        yield Violation(rule="device_memory", message=message)


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

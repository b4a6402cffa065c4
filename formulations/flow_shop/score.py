"""The judge of plans for a workload: checks and scores in exact integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ..errors import InvalidPlanError
from ..plan import Plan
from ..scores import Score, Violation, limit_violations
from .quantities import WorkloadValues
from .tables import FlowShop

if TYPE_CHECKING:
    from ..problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadScore(Score):
    """What a plan for a workload is worth; the fields of `Score` as `Term` explains for workloads.

    Attributes
    ----------
    makespan_us, bottleneck_us, work_us, contention, displacement
        The further objective terms (`Term`).
    request_latency_us
        Arrival to exit of each request, in the order of the workload.
    """

    makespan_us: int
    bottleneck_us: int
    work_us: int
    contention: int
    displacement: int
    request_latency_us: tuple[int, ...]

    @property
    def throughput(self) -> float:
        """Requests per second, from the start to the end of the last one (times the batch)."""
        return 1e6 * len(self.request_latency_us) / self.makespan_us


def workload_score(problem: Problem, plan: Plan) -> WorkloadScore:
    """Check and score one plan for a workload.

    Raises
    ------
    InvalidPlanError
        The plan is not well formed, so that it has no score.
    """
    shop = problem.flow_shop
    values = WorkloadValues(shop, shop.schedule(plan))
    units = range(shop.unit_count)
    return WorkloadScore(
        period_us=values.period_us,
        latency_us=values.latency_us,
        gapness_us=values.gapness_us,
        paper_gapness_us=values.gapness_us,
        bubbles_us=values.bubbles_us,
        peak_bytes=values.peak_bytes,
        idle_permille=values.idle_permille,
        makespan_us=values.makespan_us,
        bottleneck_us=values.bottleneck_us,
        work_us=values.work_us,
        contention=values.contention,
        displacement=values.displacement,
        request_latency_us=values.request_latency_us,
        busy_us=tuple(values.busy_us.get(unit) for unit in units),
        bubble_us=tuple(
            values.unit_bubble_us.get(unit) if unit in values.busy_us else None for unit in units
        ),
        memory_bytes=tuple(values.memory_bytes.get(unit) for unit in units),
        violations=tuple(violations_of(problem, plan, values)),
    )


def malformed_workload_plan(problem: Problem, plan: Plan) -> tuple[Violation, ...]:
    """Return what keeps a plan from having a score at all."""
    try:
        problem.flow_shop.schedule(plan)
    except InvalidPlanError as error:
        split = (text.partition(": ") for text in error.problems)
        return tuple(Violation(rule=rule, message=message) for rule, _, message in split)
    return ()


def violations_of(problem: Problem, plan: Plan, values: WorkloadValues) -> Iterator[Violation]:
    """Yield everything that a well-formed plan breaks."""
    yield from _structure(values.shop, values)
    if not values.shop.order_is_free and list(values.schedule.order) != sorted(values.schedule.order):
        yield Violation(rule="order", message=f"the order is fixed, the plan has {list(plan.order)}")
    yield from _deadlines(values)
    yield from limit_violations(problem.limits, values)
    for rule in problem.expression_rules:
        if not rule.holds(values):
            yield Violation(rule=rule.name, message=rule.text or "the rule does not hold")
    for opaque in problem.opaque_rules:
        if not opaque.holds(plan):
            yield Violation(rule=opaque.name, message=opaque.text or "the predicate is false")


def _deadlines(values: WorkloadValues) -> Iterator[Violation]:
    pairs = zip(values.shop.workload.requests, values.request_latency_us, strict=True)
    for request, took in pairs:
        if request.deadline_us is not None and took > request.deadline_us:
            text = f"request {request.name!r} takes {took} us, its deadline is {request.deadline_us} us"
            yield Violation(rule="deadline", message=text)


def _structure(shop: FlowShop, values: WorkloadValues) -> Iterator[Violation]:
    first = shop.chains[0]
    used = set(values.busy_us)
    for unit in sorted(used):
        for other in sorted(first.exclusive[unit] & used):
            if other > unit:
                names = f"{shop.units[unit]!r} and {shop.units[other]!r}"
                yield Violation(rule="conflict", message=f"units {names} share cores")
    for request, cuts in enumerate(values.schedule.cuts):
        chain, name = shop.chain(request), shop.workload.requests[request].name
        for unit, (start, stop) in enumerate(pairwise(cuts)):
            where = f"request {name!r}, chunk [{start}, {stop}) on {shop.units[unit]!r}"
            if start < stop and stop not in chain.cuts:
                yield Violation(rule="cut", message=f"{where} ends where no cut is allowed")
            if start < stop and not chain.fits(start, stop, unit):
                needs, has = chain.memory_bytes(start, stop), chain.unit_memory[unit]
                yield Violation(rule="unit_memory", message=f"{where} needs {needs} bytes, has {has}")
    if first.device_memory is not None and values.peak_bytes > first.device_memory:
        message = f"the plan needs {values.peak_bytes} bytes, the device has {first.device_memory}"
        yield Violation(rule="device_memory", message=message)

"""Workloads as schedules: the requests of a workload, each in chunks on whatever units its passage allows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .deployment import Mode
from .errors import InvalidInputError
from .expr import Const, Expr, Variable, as_bool, rewritten
from .job_requests import Cuts, JobRequest, Jobs, passage_defects
from .limits import capped
from .objective import Objective
from .plan import Plan
from .problem import Problem
from .rules import Rule
from .workload import Execution, LoadPolicy, Request, RequestOrder, Workload


def as_schedules(problem: Problem, passage: str = "any") -> Problem:
    """Return the problem of serving the requests of a workload with another passage, cut anywhere.

    A deadline of a request stays what has to be kept: it becomes a rule. Where only weights of running chunks
    are in memory, whatever can run at once has to fit.

    `problem`: a problem with a workload: a batch whose units run freely; `passage`: as for `Jobs`.
    Raises InvalidInputError: the passage is not known, or the problem asks what has no meaning for schedules.
    """
    workload = problem.data
    assert isinstance(workload, Workload)
    defects = [*passage_defects(passage), *_without_meaning(problem, workload)]
    if defects:
        raise InvalidInputError(f"a workload with passage {passage[:60]!r}:", defects)
    requests = tuple(
        JobRequest(
            name=request.name,
            network=request.network,
            release_us=request.arrival_us,
            deadline_us=request.deadline_us,
        )
        for request in workload.requests
    )
    platform, limits = problem.platform, problem.limits
    if workload.load_policy is LoadPolicy.RUNNING:  # what runs at once fits in any case
        platform, limits = replace(platform, memory_bytes=None), replace(limits, max_memory_bytes=None)
    data = Jobs(requests=requests, cuts=Cuts.ALL, passage=passage)
    found = replace(problem, platform=platform, limits=limits, data=data)
    return found.with_rules(
        *(
            Rule(
                name=f"deadline of {request.name}",
                text=f"request {request.name!r} is done {request.deadline_us} us after it came",
                expr=~found.view.is_late(request.name),
            )
            for request in requests
            if request.deadline_us is not None
        )
    )


def free_schedules(problem: Problem) -> Problem | None:
    """Return a workload as schedules with any passage; None: it asks what they do not know."""
    try:
        return as_schedules(problem)
    except InvalidInputError:
        return None


def as_workload(problem: Problem) -> Problem:
    """Return the requests of schedules as a workload of least makespan.

    Left out is what workloads do not know: deadlines that may be missed, weights, waiting and rules about
    them; where requests have weights, the limit on latencies, too.
    """
    jobs = problem.data
    assert isinstance(jobs, Jobs)
    requests = tuple(
        Request(name=request.name, network=request.network, arrival_us=request.release_us)
        for request in jobs.requests
    )
    limits = problem.limits
    if any(request.weight != 1 for request in jobs.requests):  # that of a workload is about the plain sum
        limits = replace(limits, max_latency_us=None)
    objective = Objective(terms=("makespan",))
    found = replace(problem, limits=limits, data=Workload(requests=requests), objective=objective, rules=())
    return replace(found, rules=tuple(_rules_in_order(problem, jobs, found.view)))


_SHARED = frozenset(("on", "uses", "busy_us", "start_us", "finish_us", "makespan_us"))
"""Quantities that workloads and schedules call by the same names and indices."""


def _rules_in_order(problem: Problem, jobs: Jobs, view: Any) -> Iterator[Rule]:
    """Yield the rules of schedules that mean something for a workload, whose view is given."""

    def atom(variable: Variable) -> Expr:
        if variable.name in _SHARED:
            return variable
        request = jobs.requests[variable.args[0]]
        if variable.name == "chunks":
            found: Expr = view.chunks(request.name)
        elif variable.name == "is_late":
            due_us = request.deadline_us
            found = Const(0) if due_us is None else view.latency_us(request.name) > due_us
        else:
            raise LookupError(variable.name)
        return found

    for rule in problem.expression_rules:
        with suppress(LookupError):
            yield replace(rule, expr=as_bool(rewritten(rule.expr, atom)))


def from_workload(plan: Plan) -> Plan:
    """Return a plan for a workload (`as_workload`) as one for the schedules that it was made of."""
    return replace(plan, order=tuple(name for name in plan.order for _ in plan.of(name)))


def orders_chunks(plan: Plan) -> bool:
    """Return whether a plan is one of schedules in which a request has several chunks.

    Their order has a request once per chunk; where none has two chunks, it is that of a workload, too.
    """
    return len(set(plan.order)) < len(plan.order)


def _without_meaning(problem: Problem, workload: Workload) -> Iterator[str]:
    """Yield what a problem asks that schedules do not know."""
    if workload.mode is Mode.STREAM:
        yield "a stream repeats its requests, schedules serve them once: leave the stream out"
    if workload.execution is Execution.COLUMNS:
        yield "columns need all requests to pass the units in one order: use asynchronous execution"
    if workload.task_slots is not None:
        yield "task slots mean nothing for schedules: leave them out"
    if workload.order is RequestOrder.FIXED and len(workload.requests) > 1:
        yield "in schedules each unit has an order of its own: leave the fixed order out"
    most, has = _most_running_bytes(problem, workload), capped(problem.platform, problem.limits).memory_bytes
    if workload.load_policy is LoadPolicy.RUNNING and has is not None and most > has:
        yield (
            "schedules keep all chunks loaded, the workload only those that run, which may be "
            f"{most} bytes at once; there are {has}: use the load policy resident"
        )
    if problem.rules:
        names = ", ".join(repr(rule.name) for rule in problem.rules)
        yield f"rules of the problem are about plans of a workload: {names}; give them again with the passage"


def _most_running_bytes(problem: Problem, workload: Workload) -> int:
    """Return an upper bound on the bytes in use at an instant if only running chunks are loaded."""
    networks = {network.name: network for network in problem.networks}
    asked = [networks[request.network] for request in workload.requests]
    whole = sorted((each.weights.whole + max(each.working_bytes) for each in asked), reverse=True)
    waiting = sum(max(each.boundary_bytes) for each in asked)
    return sum(whole[: len(problem.platform.units)]) + waiting

"""Requests whose chunks the planner places freely, and workloads as such schedules.

Requests whose chunks the planner places freely: the data of the formulation of single requests. A frame or a
recorded stretch of a scenario, with everything known beforehand: what an all-knowing planner would do with it
bounds what policies reach (coordination, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

from .deployment import Mode
from .errors import InvalidInputError, InvalidProblemError
from .expr import Const, Expr, Variable, as_bool, rewritten
from .limits import capped
from .plan import Plan
from .problem import Problem
from .rules import Rule
from .terms import Objective
from .validation import Defects, FileContent, meant, shown
from .workload import Execution, LoadPolicy, Request, RequestOrder, Workload

MOST_JOB_REQUESTS = 10_000
"""Most requests of one problem."""


ORDERED = "ordered"
PASSAGES = ("any", "once", ORDERED)
"""How requests may pass the units; `ordered` can name the units: "ordered:gpu,npu"."""


class Cuts(StrEnum):
    """Where requests may be cut.

    SECTIONS
        Where other units can run the layers, and at the given borders.
    ALL
        At every legal cut. Two chunks in a row may be on one unit: a break at which others may go first.
    """

    SECTIONS = "sections"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest(FileContent):
    """One inference of one network.

    Attributes
    ----------
    name
        Unique among the requests.
    network
        Name of the network.
    release_us
        Nothing of it starts before; its latency and its deadline count from here.
    deadline_us
        By when after its release it has to be done, or it is late; None: it never is.
    weight
        How much it counts where requests are added up.
    after
        Names of requests before it in the list that have to be done before it can start. Its latency and
        its deadline count from its own release all the same.
    """

    name: str
    network: str
    release_us: int = 0
    deadline_us: int | None = None
    weight: int = 1
    after: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        defects = Defects(f"request {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_name("network", self.network)
        defects.check_count("release_us", self.release_us)
        if self.deadline_us is not None:
            defects.check_count("deadline_us", self.deadline_us, least=1)
        defects.check_count("weight", self.weight)
        defects.check_unique("after", self.after)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionBorders(FileContent):
    """Cuts of a network at which a section ends although the same units can run both sides.

    Attributes
    ----------
    network
        Name of the network.
    cuts
        Legal cuts of it.
    """

    network: str
    cuts: tuple[int, ...]

    def __post_init__(self) -> None:
        defects = Defects(f"borders of {self.network!r}")
        defects.check_name("network", self.network)
        defects.check_counts("cuts", self.cuts)
        defects.check_unique("cuts", self.cuts)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs(FileContent):
    """Requests, each in one chunk or several, on whatever units and in whatever order suit them.

    Attributes
    ----------
    requests
        The requests; those that wait for others stand behind them.
    borders
        Further borders between sections, at most one entry for each network.
    cuts
        Where requests may be cut.
    passage
        "any": a request may come back to a unit. "once": each unit has at most one chunk of it. "ordered":
        the same, and the units come in the order of the platform; "ordered:UNIT,UNIT,...": in this order.
    """

    data_key: ClassVar[str] = "jobs"

    requests: tuple[JobRequest, ...]
    borders: tuple[SectionBorders, ...] = ()
    cuts: Cuts = Cuts.SECTIONS
    passage: str = "any"

    def __post_init__(self) -> None:
        defects = Defects("jobs")
        defects.check_size("requests", len(self.requests), most=MOST_JOB_REQUESTS)
        defects.check_unique("request names", self.names)
        defects.check_unique("networks with borders", [each.network for each in self.borders])
        for text in (*self._strange_waits(), *passage_defects(self.passage)):
            defects.add(text)
        if self.cuts is Cuts.ALL and self.borders:
            defects.add('borders add nothing where cuts are "all"; leave one of them out')
        defects.raise_as(InvalidProblemError)

    def _strange_waits(self) -> Iterator[str]:
        before: set[str] = set()
        for request in self.requests:
            for name in request.after:
                if name not in before:
                    yield f"request {request.name!r} waits for {name!r}, which no request before it is called"
            before.add(request.name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the requests."""
        return tuple(request.name for request in self.requests)

    @property
    def entered_us(self) -> tuple[int, ...]:
        """When each request is released."""
        return tuple(request.release_us for request in self.requests)

    def unit_order(self, units: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the order in which requests pass the units of a platform; None: any."""
        kind, _, named = self.passage.partition(":")
        if kind != ORDERED:
            return None
        return tuple(named.split(",")) if named else units


def passage_defects(passage: str) -> Iterator[str]:
    """Yield what is wrong with the text of a passage."""
    kind, colon, named = passage.partition(":")
    if kind not in PASSAGES or (colon and kind != ORDERED):
        yield f"passage is {shown(passage)}; {meant(kind, (*PASSAGES, 'ordered:UNIT,UNIT,...'))}"
        return
    units = named.split(",") if colon else []
    if "" in units:
        yield f"passage {shown(passage)} names no units; write them between commas"
    elif len(set(units)) != len(units):
        yield f"passage {shown(passage)} names a unit twice"


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

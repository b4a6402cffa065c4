"""Single requests as a formulation, and how their plans run: in rounds, each unit in an order of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import ClassVar

from ..demands import Demand
from ..deployment import Deployment, Mode, Rounds
from ..errors import InvalidInputError, InvalidPlanError, MalformedPlanError
from ..formulation import Formulation, TablesT, of_tables
from ..history import History, Usage, usage_of
from ..limits import OF_ONE_NETWORK
from ..model import Encoded
from ..plan import Plan
from ..problem import Problem
from ..requests import RequestFormulation, RequestOperation, stream_of
from ..schedules import Cuts, Jobs
from ..scores import Violation
from ..terms import PlanNumbers
from .encoding import JobsModel, ScheduleModel
from .quantities import QUANTITIES, TERMS, JobValues
from .space import DIFFERENCE, all_plans, count_plans
from .tables import JobPlan, JobTables, build_tables, jobs_of, tables_of
from .view import JobView


class JobFeature(StrEnum):
    """What a problem of single requests asks of a backend beyond `Feature`."""

    INTERFERENCE = "interference"


_WAITS = (
    "requests that wait for others are only simulated (`gapless simulate`): the runtime lets each request in "
    "when it arrives; leave out `after`"
)


class JobsOperation(RequestOperation):
    """Requests that are served once."""

    def pace(self, problem: Problem) -> str:
        """Return the makespan."""
        return "makespan"

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream for each request, in rounds in which each unit has its order of chunks."""
        if any(request.after for request in jobs_of(problem).requests):
            raise InvalidPlanError(_WAITS)
        if task_slots not in (None, 1):
            raise InvalidPlanError(
                f"{task_slots} task slots: each request comes once in a round, in one slot"
            )
        return self.arrange(problem, plan)

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return one stream for each request."""
        jobs = jobs_of(problem)
        return Deployment(
            streams=tuple(stream_of(plan, name, 1) for name in jobs.names),
            rounds=Rounds(mode=Mode.BATCH, arrivals_us=jobs.entered_us, order=plan.order),
        )

    def check_executable(self, problem: Problem) -> None:
        """Refuse requests that wait for others."""
        if any(request.after for request in jobs_of(problem).requests):
            raise InvalidInputError(_WAITS)

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time: all chunks in use stay loaded."""
        assert history.plan is not None
        values = JobValues(tables_of(problem), problem.formulation.code(problem, history.plan))
        return usage_of(
            [(0, 0)],
            ((event.stream, *event.span_us) for event in history.events),
            base=values.loaded_bytes,
            requests=len(history.streams),
        )

    def check_deployment(self, problem: Problem, deployment: Deployment) -> None:
        """Refuse what does not serve the requests."""
        if deployment.plan is None or deployment != self.arrange(problem, deployment.plan):
            raise InvalidPlanError("it serves other requests")


class ScheduleFormulation(Formulation[TablesT, JobPlan]):
    """What is served once, in chunks on units: requests, or the tasks of one."""

    model: ClassVar[type[ScheduleModel]]
    """The model for exact solvers."""

    codes = of_tables(all_plans)

    def key(self, problem: Problem, code: JobPlan) -> tuple[int, ...]:
        """Return the chunks, then the order."""
        return (*(number for parts in code.parts for part in parts for number in part), *code.order)

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: JobPlan | None = None
    ) -> Encoded[JobPlan]:
        """Return the model by optional chunks (`encoding.py`)."""
        return self.model(problem, top=top, known=known).encoded()


class JobsFormulation(ScheduleFormulation[JobTables], RequestFormulation[JobTables, JobPlan]):
    """Requests of several networks, each in chunks of sections, on any units in any order."""

    name: ClassVar[str] = "jobs"
    label: ClassVar[str] = "problems of single requests"
    data_key: ClassVar[str | None] = "jobs"
    data_type: ClassVar[type | None] = Jobs
    terms = TERMS
    quantities = QUANTITIES
    difference = DIFFERENCE
    limits: ClassVar[tuple[str, ...]] = (
        "min_units",
        "max_units",
        "max_makespan_us",
        "max_latency_us",
        "max_request_latency_us",
        "max_memory_bytes",
        "max_unit_memory_bytes",
    )
    operation = JobsOperation()
    features: ClassVar[frozenset[str]] = frozenset(map(str, JobFeature))
    incomplete: ClassVar[str] = (
        "every layer can run somewhere, but no chunks of sections cover the network: memory or cuts are in "
        "the way"
    )
    model = JobsModel
    tables = staticmethod(build_tables)
    view = of_tables(JobView)
    plan = of_tables(JobTables.plan)
    numbers = of_tables(JobValues)
    count = of_tables(count_plans)

    def hint_on_limits(self, names: Sequence[str]) -> str:
        """Return that plans in one order know a limit, if they do."""
        known = [name for name in names if name not in OF_ONE_NETWORK]
        return f"a workload in one order (--passage ordered) knows {', '.join(known)}" if known else ""

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield networks and units that are not there, and borders that are no cuts."""
        jobs, networks = jobs_of(problem), {network.name: network for network in problem.networks}
        yield from super().defects(problem)
        for borders in jobs.borders:
            if borders.network not in networks:
                yield f"borders are given for network {borders.network!r}, the problem has {sorted(networks)}"
            elif strange := sorted(set(borders.cuts) - set(networks[borders.network].legal_cuts)):
                yield f"network {borders.network!r} cannot be cut at {', '.join(map(str, strange))}"
        units = problem.platform.unit_names
        if sorted(jobs.unit_order(units) or units) != sorted(units):
            yield f"passage {jobs.passage!r} has to name every unit once; there are {', '.join(units)}"

    def needs(self, problem: Problem) -> frozenset[str]:
        """Return whether chunks slow each other down."""
        contended = tables_of(problem).losses.contended
        return frozenset({str(JobFeature.INTERFERENCE)} if contended else ())

    def demands(self, problem: Problem) -> list[Demand]:
        """Return which requests wait for which, and how they pass the units."""
        found = [
            Demand(
                name=f"order of {request.name}",
                text=f"request {request.name!r} waits for {', '.join(request.after)}",
                without=partial(_without_waiting, request.name),
            )
            for request in jobs_of(problem).requests
            if request.after
        ]
        if tables_of(problem).visits.once:
            words = _passage_words(problem)
            found.append(Demand(name="passage", text=f"requests pass {words}", without=_any_passage))
        return found

    def code(self, problem: Problem, plan: Plan) -> JobPlan:
        """Return chunks and order by index."""
        tables = tables_of(problem)
        parts, wrong = tables.parted(plan)
        wrong += _disorder(tables, plan)
        if wrong:
            raise MalformedPlanError(plan, wrong)
        return tables.ordered([tables.index[name] for name in plan.order], parts)

    def broken(self, problem: Problem, code: JobPlan, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield conflicts and capacities that a plan breaks."""
        assert isinstance(numbers, JobValues)
        tables = numbers.tables
        for request, parts in enumerate(code.parts):
            if not tables.visits.allows(part[2] for part in parts):
                units = ", ".join(tables.units[part[2]] for part in parts)
                text = f"request {tables.jobs.names[request]!r} is on {units}; passage {tables.jobs.passage}"
                yield Violation(rule="passage", message=f"{text} forbids that")
        yield from numbers.conflicts()

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return the load by unit, and by request its latency and what it misses its deadline by."""
        assert isinstance(numbers, JobValues)
        return {
            "busy_us": tuple(map(numbers.busy_us.get, range(numbers.tables.unit_count))),
            "request_latency_us": numbers.request_latency_us,
            "request_late_us": tuple(
                None if due_us is None else late_us
                for due_us, late_us in zip(numbers.tables.due_us, numbers.request_late_us, strict=True)
            ),
        }

    def rate(self, numbers: PlanNumbers) -> float:
        """Return requests per second, from time 0 to the end of the last one."""
        assert isinstance(numbers, JobValues)
        return 1e6 * numbers.tables.request_count / max(1, numbers.makespan_us)

    def plan_class(self, problem: Problem) -> str:
        """Return when chunks start, where requests are cut, and how they pass the units."""
        jobs, words = jobs_of(problem), "schedules whose chunks start as soon as order and units allow"
        if jobs.cuts is Cuts.SECTIONS:
            borders = " or at the given borders" if jobs.borders else ""
            words += f", which cut requests only where other units can run the layers{borders}"
        if tables_of(problem).visits.once:
            words += f", and in which every request passes {_passage_words(problem)}"
        return words

    def outside(self, problem: Problem) -> str:
        """Return that there are other cuts and passages."""
        jobs, more = jobs_of(problem), []
        if jobs.cuts is Cuts.SECTIONS:
            more.append('plans with other cuts ("cuts": "all" in the problem file, or borders of sections)')
        if tables_of(problem).visits.once and len(problem.platform.units) > 1:
            more.append("requests that come back to units (passage any)")
        words = " and ".join(more)
        return f"Not looked at are {words}." if words else ""


def _passage_words(problem: Problem) -> str:
    """Return which units every request passes how, where it does not come back to them."""
    order = jobs_of(problem).unit_order(problem.platform.unit_names)
    return "each unit at most once" if order is None else f"the units once, in the order {', '.join(order)}"


def _any_passage(problem: Problem) -> Problem:
    return replace(problem, data=replace(jobs_of(problem), passage="any"))


def _without_waiting(name: str, problem: Problem) -> Problem:
    jobs = jobs_of(problem)
    requests = tuple(replace(each, after=()) if each.name == name else each for each in jobs.requests)
    return replace(problem, data=replace(jobs, requests=requests))


def _disorder(tables: JobTables, plan: Plan) -> Iterator[Violation]:
    named = Counter(plan.order)
    for name in sorted({*named, *(chunk.request for chunk in plan.chunks)}):
        count = len(plan.of(name))
        if named[name] != count:
            text = f"the order names {name!r} {named[name]} times, it has {count} chunks"
            yield Violation(rule="order", message=text)
    last = {name: place for place, name in enumerate(plan.order)}
    first = {name: place for place, name in reversed(list(enumerate(plan.order)))}
    for request in tables.jobs.requests:
        for other in request.after:
            if first.get(request.name, len(plan.order)) < last.get(other, 0):
                text = f"the order has {request.name!r} before the last chunk of {other!r}"
                yield Violation(rule="order", message=f"{text}, which it waits for")


FORMULATION = JobsFormulation()

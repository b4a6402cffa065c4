"""What others make of requests: online policies, as backends and first plans; plans that keep one order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from ...formulations.coordination.play import play_jobs
from ...formulations.coordination.record import Record
from ...formulations.coordination.setting import Setting
from ...formulations.jobs.formulation import FORMULATION, JobFeature
from ...formulations.jobs.tables import JobPlan, JobTables, jobs_of, tables_of
from ...formulations.judge import malformations
from ...formulations.problem import Problem
from ...formulations.schedules import as_workload, from_workload
from ..coordination.policies import SHIPPED, make_policy
from ..placing import PLAIN, Placement
from ..protocol import LEAST_S, Capabilities, Clock, Deadline, SolveOptions, Support

_STARTS = ("sel", "lst", "heft", "shortest")
"""Policies whose plans searches start from."""


def dispatched(problem: Problem, tables: JobTables) -> Iterator[JobPlan]:
    """Yield what each of some policies does with the requests of a problem, cut at sections."""
    for name in _STARTS:
        found = _dispatched_by(name, problem, tables)
        if found is not None:
            yield found


def ordered(problem: Problem, tables: JobTables, deadline: Deadline) -> Iterator[JobPlan]:
    """Yield the best plan, found within a time, that passes the units once and in order.

    Nothing is yielded where requests wait for others, or where there is no such plan.
    """
    from ..session import solve

    if any(tables.after):
        return
    workload, left_s = as_workload(problem), deadline.left_s
    limit_s = None if left_s is None else max(LEAST_S, left_s)
    found = solve(workload, "native", SolveOptions(time_limit_s=limit_s, clock=Clock(deadline.now))).plan
    if found is not None:
        plan = from_workload(found)
        if not malformations(problem, plan):
            yield problem.formulation.code(problem, plan)


def _dispatched_by(name: str, problem: Problem, tables: JobTables) -> JobPlan | None:
    """Return what a policy does, slowdown left out; None: not all requests could run."""
    jobs = jobs_of(problem)
    ideal = replace(problem, interference=None, rules=(), co_run_costs=None)
    borders = {each.network: each.cuts for each in jobs.borders}
    setting = replace(Setting.of(ideal), borders=borders)
    return _plan(play_jobs(setting, jobs, make_policy(name)), setting, tables)


def _plan(record: Record, setting: Setting, tables: JobTables) -> JobPlan | None:
    """Return what has run as a plan; None: not all of it could."""
    if any(request.end_us is None for request in record.requests):
        return None
    coarse = [setting.sections[setting.index(chain.network)] for chain in tables.chains]
    places = [{section.start: place for place, section in enumerate(own)} for own in tables.sections]
    ran = sorted(record.ran, key=lambda each: (each.start_us, each.request))
    parts: list[list[tuple[int, int, int]]] = [[] for _ in record.requests]
    for each in ran:
        chain = tables.chain_of[each.request]
        start, stop = coarse[chain][each.first].start, coarse[chain][each.last - 1].stop
        end = places[chain].get(stop, len(tables.sections[chain]))
        parts[each.request].append((places[chain][start], end, each.unit))
    return tables.ordered(tuple(each.request for each in ran), tuple(map(tuple, parts)))


class PolicyBackend(Placement):
    """A policy of Band, or another one, which decides when a request comes or a chunk ends.

    It expects the times of the table without slowdown; the judge plays what it has decided with slowdown.
    """

    def place(self, problem: Problem) -> Iterator[JobPlan]:
        """Yield its plan, or none where it leaves a request undone."""
        found = _dispatched_by(self.name, problem, tables_of(problem))
        if found is not None:
            yield found


def _can(name: str) -> Capabilities:
    """Return what a policy can do: it knows no limits and no rules."""
    features = (PLAIN.features or frozenset()) | {str(JobFeature.INTERFERENCE)}
    words = "the plan of an online policy, which sees only what has come and cuts at sections"
    support: Support = replace(PLAIN, features=features, searches=words)
    return Capabilities(
        summary=f"online policy: {SHIPPED[name].text}", formulations={FORMULATION.name: support}
    )


class LeastSlackBackend(PolicyBackend):
    """Band's default."""

    name: ClassVar[str] = "lst"
    capabilities: ClassVar[Capabilities] = _can("lst")


class LongestFirstBackend(PolicyBackend):
    """Band's policy for short frames."""

    name: ClassVar[str] = "sel"
    capabilities: ClassVar[Capabilities] = _can("sel")


class ShortestFirstBackend(PolicyBackend):
    """The shortest expected latency first."""

    name: ClassVar[str] = "shortest"
    capabilities: ClassVar[Capabilities] = _can("shortest")


class EarliestFinishBackend(PolicyBackend):
    """HEFT on what has come."""

    name: ClassVar[str] = "heft"
    capabilities: ClassVar[Capabilities] = _can("heft")


class EarliestDeadlineBackend(PolicyBackend):
    """The earliest deadline first."""

    name: ClassVar[str] = "edf"
    capabilities: ClassVar[Capabilities] = _can("edf")

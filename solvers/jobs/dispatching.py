"""Plans that the policies make of requests when they see only what has come: good ones to start from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...formulations.coordination.record import Record
from ...formulations.coordination.setting import Setting
from ...formulations.coordination.stretch import play_jobs
from ...formulations.jobs.tables import JobPlan, JobTables, jobs_of
from ...formulations.problem import Problem
from ..coordination.policies import make_policy

_POLICIES = ("sel", "lst", "heft", "shortest")


def dispatched(problem: Problem, tables: JobTables) -> Iterator[JobPlan]:
    """Yield what each of some policies does with the requests of a problem."""
    jobs = jobs_of(problem)
    ideal = replace(problem, interference=None, rules=(), co_run_costs=None)
    borders = {each.network: each.cuts for each in jobs.borders}
    setting = replace(Setting.of(ideal), borders=borders)
    for name in _POLICIES:
        found = _plan(play_jobs(setting, jobs, make_policy(name)), tables)
        if found is not None:
            yield found


def _plan(record: Record, tables: JobTables) -> JobPlan | None:
    """Return what has run as a plan; None: not all of it could."""
    if any(request.end_us is None for request in record.requests):
        return None
    ran = sorted(record.ran, key=lambda each: (each.start_us, each.request))
    parts: list[list[tuple[int, int, int]]] = [[] for _ in record.requests]
    for each in ran:
        parts[each.request].append((each.first, each.last, each.unit))
    return tables.ordered(tuple(each.request for each in ran), tuple(map(tuple, parts)))

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
    """Yield what each of some policies does with the requests of a problem, cut at sections."""
    jobs = jobs_of(problem)
    ideal = replace(problem, interference=None, rules=(), co_run_costs=None)
    borders = {each.network: each.cuts for each in jobs.borders}
    setting = replace(Setting.of(ideal), borders=borders)
    for name in _POLICIES:
        found = _plan(play_jobs(setting, jobs, make_policy(name)), setting, tables)
        if found is not None:
            yield found


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

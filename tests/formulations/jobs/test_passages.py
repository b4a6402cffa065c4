"""Where requests may be cut, and how they may pass the units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, permutations, product

import pytest

from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.space import Route, all_routes
from gapless.formulations.jobs.tables import JobTables, tables_of
from gapless.formulations.judge import check, examined
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.schedules import Cuts, JobRequest, Jobs, SectionBorders
from gapless.formulations.workload import Request, Workload
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.jobs.annealing import Play
from tests.jobs_instances import drawn_jobs, jobs_problem, passing

TABLES: dict[str, list[list[int | None]]] = {
    "net": [[4, 2, 3], [3, None, 4], [5, 1, 1]],
    "small": [[6, 2, 5], [1, 1, 2]],
}
REQUESTS = (JobRequest(name="n", network="net"), JobRequest(name="s", network="small"))
PROBLEM = jobs_problem(TABLES, REQUESTS)


def legal_routes(tables: JobTables, chain: int) -> Iterator[Route]:
    """Yield all ways through a network whose every layer may be a chunk, from the words of `Jobs` alone."""
    layers = tables.chains[chain].layer_count
    kind, _, named = tables.jobs.passage.partition(":")
    order = named.split(",") if named else list(tables.units)
    for cut in product((False, True), repeat=layers - 1):
        bounds = (0, *(place + 1 for place, there in enumerate(cut) if there), layers)
        for units in product(range(len(tables.units)), repeat=len(bounds) - 1):
            parts = [(a, b, unit) for (a, b), unit in zip(pairwise(bounds), units, strict=True)]
            places = [order.index(tables.units[unit]) for unit in units]
            once = len(set(units)) == len(units)
            if all(tables.chains[chain].runs(*part) for part in parts) and (
                kind == "any" or (once and (kind == "once" or places == sorted(places)))
            ):
                yield tuple(parts)


@pytest.mark.parametrize("passage", ["any", "once", "ordered", "ordered:u2,u0,u1"])
def test_routes_are_those_of_the_passage(passage: str) -> None:
    tables = tables_of(passing(PROBLEM, passage))
    play = Play(passing(PROBLEM, passage), tables, frozenset(range(3)))
    for chain in range(2):
        legal = sorted(legal_routes(tables, chain))
        assert sorted(all_routes(tables, chain)) == legal
        assert sorted(play.routes[chain]) == legal


def test_breaks_are_routes() -> None:
    """Two chunks in a row may be on one unit, where every cut is a border and requests may come back."""
    assert ((0, 1, 0), (1, 3, 0)) in all_routes(tables_of(passing(PROBLEM, "any")), 0)
    assert ((0, 1, 0), (1, 3, 0)) not in all_routes(tables_of(passing(PROBLEM, "once")), 0)


@pytest.mark.parametrize("passage", ["any", "once", "ordered"])
@pytest.mark.parametrize("cuts", list(Cuts))
def test_the_count_is_an_upper_bound(passage: str, cuts: Cuts) -> None:
    for seed in range(3):
        problem = passing(drawn_jobs(seed, requests=2), passage, cuts=cuts)
        codes = list(problem.formulation.codes(problem))
        assert len(set(codes)) == len(codes) <= problem.formulation.count(problem)
        assert all(
            tables_of(problem).visits.allows(p[2] for p in own) for code in codes for own in code.parts
        )


def test_counts_of_one_request_are_exact() -> None:
    for passage in ("any", "once", "ordered"):
        problem = passing(jobs_problem(TABLES, REQUESTS[:1]), passage)
        assert problem.formulation.count(problem) == len(list(problem.formulation.codes(problem)))


def part(start: int, stop: int, unit: str) -> Chunk:
    return Chunk(network="net", start=start, stop=stop, unit=unit, request="n")


@pytest.mark.parametrize(
    ("passage", "units", "valid"),
    [
        ("any", ("u2", "u0", "u2"), True),
        ("once", ("u2", "u0", "u2"), False),
        ("once", ("u2", "u0", "u1"), True),
        ("ordered", ("u2", "u0", "u1"), False),
        ("ordered:u2,u0,u1", ("u2", "u0", "u1"), True),
        ("ordered:u2,u0,u1", ("u1", "u0", "u2"), False),
    ],
)
def test_the_judge_knows_the_passage(passage: str, units: tuple[str, ...], valid: bool) -> None:
    problem = passing(jobs_problem(TABLES, REQUESTS[:1]), passage)
    plan = Plan(chunks=tuple(part(at, at + 1, unit) for at, unit in enumerate(units)), order=("n",) * 3)
    found = check(problem, plan)
    assert [each.rule for each in found] == ([] if valid else ["passage"])
    if not valid:
        assert f"'n' is on {', '.join(units)}; passage {passage} forbids that" in found[0].message


def test_files_come_back() -> None:
    for passage in ("once", "ordered:u1,u0,u2"):
        problem = passing(PROBLEM, passage)
        again = parse_problem(dump_problem(problem).encode(), name="problem")
        assert again == problem
        assert again.data.cuts is Cuts.ALL
        assert again.fingerprint == problem.fingerprint != PROBLEM.fingerprint


@pytest.mark.parametrize(
    ("passage", "text"),
    [
        ("twice", "passage is 'twice'"),
        ("once:u0", "passage is 'once:u0'"),
        ("ordered:", "names no units"),
        ("ordered:u0,u0,u1", "names a unit twice"),
        ("ordered:u0,u1", "has to name every unit once; there are u0, u1, u2"),
        ("ordered:u0,u1,u9", "has to name every unit once"),
    ],
)
def test_strange_passages_are_refused(passage: str, text: str) -> None:
    with pytest.raises(InvalidProblemError, match=text):
        passing(PROBLEM, passage)


def test_borders_beside_all_cuts_are_refused() -> None:
    with pytest.raises(InvalidProblemError, match="borders add nothing"):
        Jobs(requests=REQUESTS, borders=(SectionBorders(network="net", cuts=(1,)),), cuts=Cuts.ALL)


def test_the_class_says_cuts_and_passage() -> None:
    words = "schedules whose chunks start as soon as order and units allow"
    assert passing(PROBLEM, "any").plan_class == words
    assert passing(PROBLEM, "once").plan_class == (
        f"{words}, and in which every request passes each unit at most once"
    )
    assert passing(PROBLEM, "ordered:u2,u0,u1").plan_class.endswith("the units once, in the order u2, u0, u1")
    assert passing(PROBLEM, "any").formulation.outside(passing(PROBLEM, "any")) == ""
    assert "come back to units" in PROBLEM.formulation.outside(passing(PROBLEM, "once"))


def test_the_passage_is_a_demand() -> None:
    problem = passing(PROBLEM, "ordered")
    demands = {demand.name: demand for demand in problem.formulation.demands(problem)}
    assert demands["passage"].text == "requests pass the units once, in the order u0, u1, u2"
    assert demands["passage"].without(problem) == passing(PROBLEM, "any")


@pytest.mark.parametrize("seed", range(5))
def test_ordered_schedules_hold_the_plans_of_a_workload(seed: int) -> None:
    """Where all units serve requests in one order they are its plans; with orders of their own, not worse."""
    problem = passing(drawn_jobs(seed, requests=3, units=2), "ordered")
    free_requests = tuple(replace(r, after=(), deadline_us=None) for r in problem.data.requests)
    data = replace(problem.data, requests=free_requests)
    problem = replace(problem, data=data)
    tables = tables_of(problem)
    served = tuple(Request(name=r.name, network=r.network, arrival_us=r.release_us) for r in data.requests)
    workload = replace(problem, data=Workload(requests=served))
    least = min(
        examined(workload, workload.formulation.code(workload, plan))[0].term("makespan")
        for plan in all_plans(workload)
    )
    orders = list(permutations(range(3)))
    alike, free = [], []
    for code in problem.formulation.codes(problem):
        values = JobValues(tables, code)
        free.append(values.makespan_us)
        queues = [[run.request for run in values.runs if run.part[2] == unit] for unit in range(2)]
        if any(all(queue == [r for r in order if r in queue] for queue in queues) for order in orders):
            alike.append(values.makespan_us)
    assert min(alike) == least
    assert min(free) <= least

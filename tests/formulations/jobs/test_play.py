"""Single requests that slow each other down, played: microsecond by microsecond, and by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from benchmarks.schedule_instances import sliced
from gapless.formulations.costs import Interference
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.tables import JobPlan, JobTables, tables_of
from gapless.formulations.judge import score
from gapless.formulations.losses import MOST_LOSS_PERMILLE
from gapless.formulations.play import play
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest
from gapless.formulations.simulate import simulate
from tests.jobs_instances import drawn_jobs, jobs_problem, longer, slowed

Chunk = tuple[int, int]
"""Request, and place among its chunks."""

Spans = list[tuple[int, int, int, int]]
"""Request, place among its chunks, start and end of each chunk."""


def microseconds(tables: JobTables, code: JobPlan) -> Spans:
    """Return what runs when, found microsecond by microsecond."""
    queues: list[list[Chunk]] = [[] for _ in tables.units]
    place = [0] * tables.request_count
    for request in code.order:
        queues[unit_of(code, (request, place[request]))].append((request, place[request]))
        place[request] += 1
    done = [0] * tables.request_count
    running: dict[Chunk, int] = {}
    met: dict[Chunk, dict[Chunk, int]] = {}
    spared: dict[Chunk, int] = {}
    found: Spans = []
    now = 0

    def loss(victim: Chunk, other: Chunk) -> int:
        marks = [tables.mark(request, code.parts[request][place]) for request, place in (victim, other)]
        return tables.losses.loss(unit_of(code, victim), marks[0], unit_of(code, other), marks[1])

    while any(queues) or running:
        busy = {unit_of(code, chunk) for chunk in running}
        for unit, queue in enumerate(queues):
            if unit in busy or not queue:
                continue
            request, index = queue[0]
            waits = any(done[other] < len(code.parts[other]) for other in tables.after[request])
            if done[request] == index and not waits and tables.jobs.requests[request].release_us <= now:
                chunk = queue.pop(0)
                running[chunk], met[chunk], spared[chunk] = now, {}, 0
        now += 1
        for chunk in running:
            others = [other for other in running if other != chunk]
            for other in others:
                met[chunk][other] = met[chunk].get(other, 0) + 1
            spared[chunk] += max(0, sum(loss(chunk, other) for other in others) - MOST_LOSS_PERMILLE)
        for chunk, start in list(running.items()):
            request, index = chunk
            work = tables.time_us[tables.chain_of[request]][code.parts[request][index]]
            lost = sum(loss(chunk, other) * time // 1000 for other, time in met[chunk].items())
            if now - start >= work + lost - spared[chunk] // 1000:
                found.append((request, index, start, now))
                del running[chunk]
                done[request] += 1
    return sorted(found)


def unit_of(code: JobPlan, chunk: Chunk) -> int:
    """Return where a chunk runs."""
    request, index = chunk
    return code.parts[request][index][2]


@pytest.mark.parametrize("by_slice", [False, True])
@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_play_of_each_microsecond(seed: int, strong: bool, by_slice: bool) -> None:
    problem = longer(slowed(drawn_jobs(seed, requests=3), seed, strong=strong), 1 + 7 * (seed % 2))
    problem = sliced(problem, seed) if by_slice else problem
    tables = tables_of(problem)
    for code in islice(problem.formulation.codes(problem), 0, 300, 23):
        runs = JobValues(tables, code).runs
        assert sorted((r.request, r.place, r.start_us, r.end_us) for r in runs) == microseconds(tables, code)
        assert max(run.end_us for run in runs) <= tables.horizon_us


@pytest.mark.parametrize("seed", range(8))
def test_without_slowdown_both_plays_agree(seed: int) -> None:
    problem = drawn_jobs(seed)
    tables = tables_of(problem)
    for code in islice(problem.formulation.codes(problem), 0, 200, 40):
        events = play(tables.jobs_of(code.parts), code.order, tables.unit_count, None)
        assert sorted(events) == sorted(JobValues(tables, code).runs)


@pytest.mark.parametrize("seed", range(6))
def test_slowdown_makes_no_other_plans(seed: int) -> None:
    """Plans are chunks and the order of each unit, which no time changes; each is there once."""
    problem = drawn_jobs(seed, requests=2 + seed % 2)
    slow = slowed(problem, seed, strong=True)

    def served(given: Problem) -> list[object]:
        found: list[object] = []
        tables = tables_of(given)
        for code in given.formulation.codes(given):
            assert tables.ordered(code.order, code.parts) == code
            queues: list[list[tuple[int, int]]] = [[] for _ in tables.units]
            for run in JobValues(tables, code).runs:
                queues[run.part[2]].append((run.request, run.place))
            found.append((code.parts, tuple(map(tuple, queues))))
        assert len(set(found)) == len(found)
        return found

    assert set(served(slow)) == set(served(problem))


def pair(slowdown: tuple[tuple[int, ...], ...]) -> Problem:
    """Return two requests, one of which comes back to u0, with given slowdowns between two units."""
    requests = (JobRequest(name="n", network="net"), JobRequest(name="s", network="small"))
    tables: dict[str, list[list[int | None]]] = {
        "net": [[40, 90], [None, 30], [50, 90]],
        "small": [[100, 100]],
    }
    return replace(
        jobs_problem(tables, requests),
        interference=Interference(units=("u0", "u1"), slowdown_permille=slowdown),
    )


def test_values_by_hand() -> None:
    # u1 beside u0 takes twice as long, so it loses 500 permille; u0 loses nothing.
    problem = pair(((0, 0), (1000, 0)))
    tables = tables_of(problem)
    parts = (((0, 1, 0), (1, 2, 1), (2, 3, 0)), ((0, 1, 0),))
    # u0: n [0, 40), s [40, 140), n [140, 190); u1: n [40, 99), 30 us of work and floor(59 / 2) lost to s.
    code = tables.ordered((0, 1, 0, 0), parts)
    judged = score(problem, problem.formulation.plan(problem, code))
    assert judged.terms["makespan_us"] == 190
    assert judged.columns["busy_us"] == (190, 59)
    assert judged.terms["work_us"] == 40 + 30 + 50 + 100
    history = simulate(problem, problem.formulation.plan(problem, code))
    assert sorted((e.start_ns, e.unit, e.slowdown_ns) for e in history.events if e.slowdown_ns) == [
        (40_000, "u1", 29_000)
    ]


def test_the_order_of_starts_is_that_with_slowdown() -> None:
    """Alone, the last chunk of n would start at 70, before that of s at 72; beside s, n is later."""
    tables_us: dict[str, list[list[int | None]]] = {
        "net": [[40, None, None, None], [None, 30, None, None], [None, None, 50, None]],
        "small": [[32, None, None, None], [None, None, None, 100]],
    }
    requests = (JobRequest(name="n", network="net"), JobRequest(name="s", network="small"))
    problem = jobs_problem(tables_us, requests)
    units = problem.platform.unit_names
    slowdown = tuple(tuple(1000 * ((u, v) == (1, 0)) for v in range(4)) for u in range(4))
    slow = replace(problem, interference=Interference(units=units, slowdown_permille=slowdown))
    parts = (((0, 1, 0), (1, 2, 1), (2, 3, 2)), ((0, 1, 0), (1, 2, 3)))
    order = (0, 1, 0, 0, 1)
    assert tables_of(problem).ordered(order, parts).order == (0, 0, 1, 0, 1)
    code = tables_of(slow).ordered(order, parts)
    assert code.order == (0, 0, 1, 1, 0)
    # n on u1 runs beside s on u0 from 40 to 72, which takes 16 us: it ends at 86.
    starts = [(run.request, run.start_us) for run in JobValues(tables_of(slow), code).runs]
    assert starts == [(0, 0), (0, 40), (1, 40), (1, 72), (0, 86)]

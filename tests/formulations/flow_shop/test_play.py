"""The event simulation: against the flow-shop recursion, the fluid model and small cases by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.judge import check, score
from gapless.formulations.losses import MOST_LOSS_PERMILLE, Loss, LossTable
from gapless.formulations.play import Job, Run, play, play_columns
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate_workload
from gapless.solvers.exhaustive import all_plans
from tests.workload_instances import workload_problem, workload_problems


def jobs_from(rows: list[list[int]]) -> list[Job]:
    """Return jobs with these times on each unit; each job is a chain of its own."""
    used = [[(unit, time) for unit, time in enumerate(row) if time] for row in rows]
    return [
        Job(
            chunks=tuple((place, place + 1, unit) for place, (unit, _) in enumerate(own)),
            works_us=tuple(time for _, time in own),
            marks=((index, index),) * len(own),
        )
        for index, own in enumerate(used)
    ]


def freely(
    jobs: list[Job],
    units: int,
    loss: Loss | None = None,
    slots: int | None = None,
    *,
    rounds: int = 1,
    endless: bool = False,
) -> list[Run]:
    """Play jobs that all units serve in the given order."""
    order = [index for index, job in enumerate(jobs) for _ in job.chunks]
    return play(jobs, order, units, loss, slots, rounds=rounds, endless=endless)


def in_columns(jobs: list[Job], units: int, loss: Loss | None = None) -> list[Run]:
    return play_columns(jobs, range(len(jobs)), units, loss)


def losses_of(jobs: int, units: int, loss: dict[tuple[int, int], int]) -> LossTable:
    """Return losses between jobs, the same on all pairs of units."""
    return tuple(
        tuple(
            tuple(tuple(loss.get((a, b), 0) if u != v else 0 for v in range(units)) for b in range(jobs))
            for u in range(units)
        )
        for a in range(jobs)
    )


def by_job(loss: LossTable) -> Loss:
    """Return a table as what a play asks; marks are numbers of jobs."""
    return lambda unit, mine, other, theirs: loss[mine[0]][unit][theirs[0]][other]


def makespan(runs: list[Run]) -> int:
    return max(run.end_us for run in runs)


TIMES = st.lists(
    st.lists(st.one_of(st.just(0), st.integers(1, 60)), min_size=3, max_size=3).filter(any),
    min_size=1,
    max_size=5,
)


def fluid_makespan(rows: list[list[int]], loss: LossTable) -> Fraction:
    """Return the makespan of the exact fluid model: rates change at events only."""
    jobs = jobs_from(rows)
    done = [0] * len(jobs)
    queues = [
        [(p, i) for p, job in enumerate(jobs) for i, (*_, u) in enumerate(job.chunks) if u == unit]
        for unit in range(3)
    ]
    running: dict[int, tuple[int, Fraction]] = {}
    now = Fraction(0)
    while any(queues) or running:
        for unit, queue in enumerate(queues):
            if queue and unit not in running and done[queue[0][0]] == queue[0][1]:
                p, i = queue.pop(0)
                running[unit] = (p, Fraction(jobs[p].works_us[i]))
        rates = {
            u: Fraction(1000 - sum(loss[a][u][b][v] for v, (b, _) in running.items() if v != u), 1000)
            for u, (a, _) in running.items()
        }
        step = min(left / rates[u] for u, (_, left) in running.items())
        now += step
        running = {u: (p, left - step * rates[u]) for u, (p, left) in running.items()}
        for u, (p, left) in list(running.items()):
            if left == 0:
                done[p] += 1
                del running[u]
    return now


@given(rows=TIMES)
def test_without_slowdown_it_is_the_flow_shop_recursion(rows: list[list[int]]) -> None:
    jobs = jobs_from(rows)
    played = freely(jobs, 3)
    free = [0, 0, 0]
    for row in rows:
        at = 0
        for unit, time in enumerate(row):
            if time:
                at = free[unit] = max(at, free[unit]) + time
    assert makespan(played) == max(free)


@given(rows=TIMES, rates=st.lists(st.integers(0, 370), min_size=25, max_size=25))
def test_with_slowdown_it_is_the_fluid_model_to_a_few_microseconds(
    rows: list[list[int]], rates: list[int]
) -> None:
    count = len(rows)
    scaled = [[1000 * time for time in row] for row in rows]
    loss = losses_of(count, 3, {(a, b): rates[5 * a + b] for a in range(count) for b in range(count)})
    played = makespan(freely(jobs_from(scaled), 3, by_job(loss)))
    fluid = fluid_makespan(scaled, loss)
    assert abs(played - fluid) <= 40  # up to a microsecond for each time two chunks meet, passed on


def microseconds(rows: list[list[int]], loss: LossTable) -> list[tuple[int, int, int, int]]:
    """Return (position, unit, start, end) of all chunks, found microsecond by microsecond."""
    jobs, now = jobs_from(rows), 0
    done, found = [0] * len(jobs), []
    queues = [
        [(p, i) for p, job in enumerate(jobs) for i, (*_, u) in enumerate(job.chunks) if u == unit]
        for unit in range(3)
    ]
    running: dict[int, tuple[int, int, int]] = {}
    met: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
    while any(queues) or running:
        for unit, queue in enumerate(queues):
            if queue and unit not in running and done[queue[0][0]] == queue[0][1]:
                p, i = queue.pop(0)
                running[unit] = (p, now, jobs[p].works_us[i])
                met[p, unit] = {(0, -1): 0}
        now += 1
        for unit, (p, _, _) in running.items():
            beside = [(q, other) for other, (q, _, _) in running.items() if other != unit]
            taken = sum(loss[p][unit][q][other] for q, other in beside)
            met[p, unit][0, -1] += max(0, taken - MOST_LOSS_PERMILLE)
            for pair in beside:
                met[p, unit][pair] = met[p, unit].get(pair, 0) + 1
        for unit, (p, start, work) in list(running.items()):
            spared, *overlaps = met[p, unit].items()
            lost = sum(loss[p][unit][q][other] * time // 1000 for (q, other), time in overlaps)
            if now - start >= work + lost - spared[1] // 1000:
                found.append((p, unit, start, now))
                done[p] += 1
                del running[unit]
    return sorted(found)


@given(rows=TIMES, rates=st.lists(st.sampled_from([0, 130, 500, 750]), min_size=25, max_size=25))
def test_the_cap_holds_at_each_instant(rows: list[list[int]], rates: list[int]) -> None:
    count = len(rows)
    loss = losses_of(count, 3, {(a, b): rates[5 * a + b] for a in range(count) for b in range(count)})
    played = freely(jobs_from(rows), 3, by_job(loss))
    assert sorted((r.request, r.unit, r.start_us, r.end_us) for r in played) == microseconds(rows, loss)


def test_every_chunk_keeps_its_equation() -> None:
    loss = losses_of(3, 3, {(0, 1): 200, (1, 0): 100, (2, 0): 300, (1, 2): 50, (0, 2): 10})
    runs = freely(jobs_from([[50, 70, 20], [33, 90, 41], [60, 10, 75]]), 3, by_job(loss))
    for run in runs:
        lost = 0
        for other in runs:
            overlap = min(run.end_us, other.end_us) - max(run.start_us, other.start_us)
            if other is not run and overlap > 0:
                lost += loss[run.request][run.unit][other.request][other.unit] * overlap // 1000
        assert run.end_us - run.start_us == run.work_us + lost


def test_a_barrier_can_be_faster_than_running_freely() -> None:
    """The anomaly of formulations, section 4: free 56, with barriers 50."""
    jobs = jobs_from([[5, 20], [2, 20], [20, 5]])
    loss = losses_of(3, 2, {(0, 2): 250, (2, 0): 250})
    assert makespan(freely(jobs, 2, by_job(loss))) == pytest.approx(56, abs=1)
    assert makespan(in_columns(jobs, 2, by_job(loss))) == pytest.approx(50, abs=1)


def test_columns_wait_and_bypassing_requests_do_not() -> None:
    jobs = jobs_from([[10, 50, 0], [10, 0, 10]])
    assert makespan(in_columns(jobs, 3)) == 70
    assert makespan(freely(jobs, 3)) == 60


@given(rows=TIMES)
def test_columns_are_never_faster_and_at_most_k_times_slower_without_slowdown(rows: list[list[int]]) -> None:
    jobs = jobs_from(rows)
    free, columns = makespan(freely(jobs, 3)), makespan(in_columns(jobs, 3))
    assert free <= columns <= 3 * free


def test_task_slots_hold_requests_back() -> None:
    jobs = jobs_from([[10, 10, 10]] * 3)
    assert makespan(freely(jobs, 3, None, 1)) == 90
    assert makespan(freely(jobs, 3, None, 2)) == 60
    assert makespan(freely(jobs, 3, None, 3)) == 50


@pytest.mark.slow
@given(problem=workload_problems())
def test_traces_and_scores_agree(problem: Problem) -> None:
    for plan in islice(all_plans(problem), 0, 40, 7):
        judged = score(problem, plan)
        trace = simulate_workload(problem, plan)
        assert trace.makespan_us == judged.makespan_us
        assert sum(trace.latency_us) == judged.latency_us
        assert not {v.rule for v in check(problem, plan)} & {"names", "coverage", "support", "unit_order"}
        for unit in trace.units:
            for before, after in pairwise(trace.on(unit)):
                assert before.end_us <= after.start_us


def test_memory_counts_weights_tensors_and_waiting() -> None:
    problem = workload_problem({"a": [[10, 10], [10, 10]]}, ["a", "a"], memory_bytes=39)
    plans = {str(plan): score(problem, plan) for plan in all_plans(problem)}
    whole = plans["a0: 0-1 npu; a1: 0-1 npu"]
    apart = plans["a0: 0-1 npu; a1: 0-1 big"]
    assert (whole.peak_bytes, apart.peak_bytes) == (20, 40)
    assert whole.valid
    assert [violation.rule for violation in apart.violations] == ["device_memory"]


def test_in_rounds_a_unit_with_little_to_do_waits_for_the_others() -> None:
    jobs = jobs_from([[50, 100]])
    runs = freely(jobs, 2, None, rounds=20)
    entered = [run.start_us for run in runs if run.unit == 0]
    left = [run.end_us for run in runs if run.unit == 1]
    assert left == [50 + 100 * number for number in range(1, 21)]
    # Four task slots: two for each chunk.
    assert entered[:4] == [0, 50, 100, 150]
    assert entered[5:] == left[1:16]


def test_the_last_of_endless_rounds_have_company() -> None:
    """The unit in front slows the other down by half, and works half of the time: 100 + 50 / 2."""
    jobs = jobs_from([[50, 100]])
    loss = ((((0, 0),), ((500, 0),)),)  # of the second unit beside the first
    ended, endless = (
        [
            run.end_us
            for run in freely(jobs, 2, by_job(loss), rounds=16, endless=more)
            if run.unit == 1 and run.round < 16
        ]
        for more in (False, True)
    )
    assert ended[-1] - ended[-2] == 100
    assert {after - before for before, after in pairwise(endless[8:])} == {125}

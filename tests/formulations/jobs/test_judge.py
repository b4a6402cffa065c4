"""What plans of single requests are worth, worked out by hand, and what is no plan."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.files import dump_plan, dump_problem, load_plan, parse_problem
from gapless.formulations.jobs.encoding import Alike
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.tables import tables_of
from gapless.formulations.judge import check, score
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest, Jobs, SectionBorders
from tests.jobs_instances import drawn_jobs, jobs_problem

TABLES: dict[str, list[list[int | None]]] = {"net": [[4, 2], [3, None], [5, 1]], "small": [[6, 2]]}
"""The second unit cannot run the middle of `net`: three sections."""

REQUESTS = (
    JobRequest(name="n", network="net", deadline_us=5),
    JobRequest(name="s", network="small", release_us=1, weight=3),
    JobRequest(name="t", network="small", after=("s",), deadline_us=20),
)
PROBLEM = jobs_problem(TABLES, REQUESTS)


def part(request: str, start: int, stop: int, unit: str) -> Chunk:
    network = "net" if request == "n" else "small"
    return Chunk(network=network, start=start, stop=stop, unit=unit, request=request)


CHUNKS = (
    part("n", 0, 1, "u1"),
    part("n", 1, 2, "u0"),
    part("n", 2, 3, "u1"),
    part("s", 0, 1, "u1"),
    part("t", 0, 1, "u0"),
)
PLAN = Plan(chunks=CHUNKS, order=("n", "s", "n", "t", "n"))


def test_values_by_hand() -> None:
    # u1: n [0, 2), s [2, 4), n [5, 6); u0: n [2, 5), t [5, 11), which waits for s.
    judged = score(PROBLEM, PLAN)
    assert judged.valid
    assert judged.terms == {
        "makespan_us": 11,
        "late": 1,
        "lateness_us": 1,
        "latency_us": 6 + 3 * 3 + 11,
        "work_us": 14,
    }
    assert judged.columns["busy_us"] == (9, 5)
    assert judged.columns["request_latency_us"] == (6, 3, 11)
    assert judged.columns["request_late_us"] == (1, None, 0)
    assert judged.throughput == pytest.approx(3e6 / 11)


def test_the_order_is_that_of_units() -> None:
    later = replace(PLAN, order=("s", "n", "t", "n", "n"))  # u1: s [1, 3), n [3, 5); u0: t [3, 9), n [9, 12)
    assert score(PROBLEM, later).values(("makespan", "latency")) == (13, 13 + 3 * 2 + 9)


def test_orders_that_no_unit_notices_are_one_plan() -> None:
    tables = tables_of(PROBLEM)
    same = replace(PLAN, order=("n", "n", "s", "t", "n"))
    code = PROBLEM.formulation.code(PROBLEM, PLAN)
    assert PROBLEM.formulation.code(PROBLEM, same) == code
    assert [tables.jobs.names[request] for request in code.order] == ["n", "n", "s", "n", "t"]
    assert PROBLEM.formulation.code(PROBLEM, tables.plan(code)) == code


def test_a_plan_in_words_names_each_request_once() -> None:
    assert str(PLAN) == "n: 0-0 u1 | 1-1 u0 | 2-2 u1; s: 0-0 u1; t: 0-0 u0"


@pytest.mark.parametrize(
    ("changes", "rule", "text"),
    [
        ({"order": ("n", "n", "n", "s")}, "order", "names 't' 0 times, it has 1 chunks"),
        (
            {"order": ("n", "n", "n", "t", "s")},
            "order",
            "'t' before the last chunk of 's', which it waits for",
        ),
        ({"order": (*PLAN.order, "x")}, "order", "names 'x' 1 times"),
        ({"chunks": (*CHUNKS[1:],)}, "coverage", "does not start at layer 0"),
        ({"chunks": CHUNKS[:4]}, "coverage", "'t': its chunks end at layer 0"),
        ({"chunks": (part("n", 0, 3, "u1"), *CHUNKS[3:])}, "support", "cannot run layers"),
        ({"chunks": (*CHUNKS[:4], part("t", 0, 1, "u9"))}, "names", "no such unit"),
        ({"chunks": (*CHUNKS, part("q", 0, 1, "u0"))}, "names", "'q' is no request"),
        ({"chunks": (*CHUNKS[:4], replace(CHUNKS[4], network="net"))}, "names", "not 'small'"),
    ],
)
def test_what_is_no_plan(changes: dict[str, object], rule: str, text: str) -> None:
    found = check(PROBLEM, replace(PLAN, **changes))  # type: ignore[arg-type]
    assert any(each.rule == rule and text in each.message for each in found), found


def test_chunks_end_where_sections_do() -> None:
    whole = jobs_problem({"net": [[4, 2], [3, 1]]}, (JobRequest(name="n", network="net"),))
    plan = Plan(chunks=(part("n", 0, 1, "u1"), part("n", 1, 2, "u0")), order=("n", "n"))
    assert [each.rule for each in check(whole, plan)] == ["sections"]
    cut = replace(whole, data=replace(whole.data, borders=(SectionBorders(network="net", cuts=(1,)),)))
    assert check(cut, plan) == ()


def test_facts_of_the_device() -> None:
    shared = jobs_problem(TABLES, REQUESTS, cores=((0, 1), (1,)))
    assert [each.rule for each in check(shared, PLAN)] == ["conflict"]
    # Loaded are three chunks of `net`, and `small` on both units.
    platform = replace(PROBLEM.platform, memory_bytes=49)
    assert [each.rule for each in check(replace(PROBLEM, platform=platform), PLAN)] == ["device_memory"]
    units = tuple(replace(unit, memory_bytes=9) for unit in PROBLEM.platform.units)
    tight = replace(PROBLEM, platform=replace(PROBLEM.platform, units=units))
    assert [each.rule for each in check(tight, PLAN)] == ["unit_memory"] * 5


def wrong(**changes: object) -> Jobs:
    return replace(Jobs(requests=REQUESTS), **changes)  # type: ignore[arg-type]


def test_what_is_no_problem() -> None:
    with pytest.raises(InvalidProblemError, match="'s' waits for 'x', which no request before it is called"):
        wrong(requests=(replace(REQUESTS[1], after=("x",)),))
    with pytest.raises(InvalidProblemError, match="unique"):
        wrong(requests=(REQUESTS[0], REQUESTS[0]))
    with pytest.raises(InvalidProblemError, match="is of network 'other'"):
        replace(PROBLEM, data=wrong(requests=(JobRequest(name="a", network="other"),)))
    with pytest.raises(InvalidProblemError, match="network 'small' cannot be cut at 1"):
        replace(PROBLEM, data=wrong(borders=(SectionBorders(network="small", cuts=(1,)),)))
    with pytest.raises(InvalidProblemError, match="deadline_us is 0"):
        JobRequest(name="a", network="net", deadline_us=0)


def test_files_come_back(tmp_path: Path) -> None:
    data = replace(PROBLEM.data, borders=(SectionBorders(network="net", cuts=(1, 2)),))
    problem = replace(PROBLEM, data=data)
    again = parse_problem(dump_problem(problem).encode(), name="problem")
    assert again == problem
    assert again.fingerprint == problem.fingerprint
    path = tmp_path / "plan.json"
    path.write_text(dump_plan(PLAN, PROBLEM))
    assert load_plan(path) == PLAN


def test_every_plan_is_there_once() -> None:
    formulation = PROBLEM.formulation
    codes = list(formulation.codes(PROBLEM))
    assert len(set(codes)) == len(codes) <= formulation.count(PROBLEM)
    assert formulation.code(PROBLEM, PLAN) in codes
    for code in codes[::37]:
        assert formulation.code(PROBLEM, formulation.plan(PROBLEM, code)) == code


def alike_problem() -> Problem:
    """Return two equal requests, each with two that wait for it, of which only the first pair is equal."""
    follow = [
        JobRequest(name=f"{before}{index}", network="small" if index < 2 else "net", after=(before,))
        for before in "pq"
        for index in range(3)
    ]
    first = tuple(JobRequest(name=name, network="net") for name in "pq")
    return jobs_problem(TABLES, (*first, *follow))


def test_equal_requests_swap_with_what_waits_for_them() -> None:
    problem = alike_problem()
    tables = tables_of(problem)
    alike = Alike(tables)
    assert sorted(alike.groups) == [(0, 1), (2, 3), (5, 6)]
    draw = random.Random(1)
    for code in random.Random(2).sample(range(10_000), 30):
        draw.seed(code)
        parts = tuple(
            draw.choice([((0, 1, 0), (1, 3, 0)), ((0, 1, 1), (1, 2, 0), (2, 3, 1))])
            if request.network == "net"
            else ((0, 1, draw.randint(0, 1)),)
            for request in tables.jobs.requests
        )
        order = [0] * len(parts[0]) + [1] * len(parts[1])
        draw.shuffle(order)
        rest = [request for request in range(2, 8) for _ in parts[request]]
        draw.shuffle(rest)
        plan = tables.ordered((*order, *rest), parts)
        before = JobValues(tables, plan)
        after = JobValues(tables, tables.ordered(*alike.settled(before.finish_us, plan.parts, plan.order)))
        assert sorted(after.finish_us) == sorted(before.finish_us)
        for group in alike.groups:
            ends = [after.finish_us[request] for request in group]
            assert ends == sorted(ends)


def test_without_waiting() -> None:
    demands = {demand.name: demand for demand in PROBLEM.formulation.demands(PROBLEM)}
    assert list(demands) == ["order of t"]
    assert demands["order of t"].without(PROBLEM).data.requests[2].after == ()


def test_drawn_problems_have_plans() -> None:
    assert all(next(iter(problem.formulation.codes(problem))) for problem in map(drawn_jobs, range(30)))

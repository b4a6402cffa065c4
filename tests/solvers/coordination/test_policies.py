"""Policies: what each of them decides, mappings, a budget of power, and policies of users."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

import pytest

from gapless.formulations.coordination.behaviour import Behaviour, UnitBehaviour
from gapless.formulations.coordination.play import play, play_jobs
from gapless.formulations.coordination.policy import Conduct, UnitState, Waiting
from gapless.formulations.coordination.times import NetworkTimes, Times
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.schedules import JobRequest, Jobs
from gapless.solvers.coordination.budget import PowerBudget
from gapless.solvers.coordination.fixed import Planned, followed, spread
from gapless.solvers.coordination.policies import SHIPPED, make_policy, policy_names

from ...formulations.coordination.cases import setting
from ...formulations.coordination.test_play import at, ran, scenario

IDLE, BUSY = UnitState(), UnitState(running=1, wait_us=500)


def times(*tables: dict[tuple[int, int, int], float], units: int = 2) -> Times:
    return Times(
        [f"u{index}" for index in range(units)],
        [NetworkTimes(sections=max(stop for _, stop, _ in table), chunk_us=table) for table in tables],
    )


def test_least_slack_counts_age_and_expected_latency() -> None:
    """Slack is deadline - now - latency: a long request with a later deadline can be the more urgent one."""
    known = times({(0, 1, 0): 100}, {(0, 1, 0): 900})
    queue = [
        Waiting(number=1, network=0, application=0, arrival_us=0, deadline_us=1_000),
        Waiting(number=2, network=1, application=1, arrival_us=0, deadline_us=1_500),
    ]
    names = ("lst", "sel", "edf", "shortest")
    first = {name: make_policy(name).next(0, queue, [IDLE, IDLE], known) for name in names}
    assert (first["lst"], first["sel"]) == ((2, 1, 0), (2, 1, 0))
    assert (first["edf"], first["shortest"]) == ((1, 1, 0), (1, 1, 0))


def test_a_request_waits_for_the_unit_that_is_better_for_it() -> None:
    known = times({(0, 1, 0): 900, (0, 1, 1): 100})
    queue = [Waiting(number=1, network=0, application=0, arrival_us=0)]
    for name in ("lst", "sel", "heft", "edf", "shortest"):
        policy = make_policy(name)
        assert policy.next(0, queue, [IDLE, UnitState(running=1, wait_us=500)], known) is None
        assert policy.next(0, queue, [IDLE, UnitState(running=1, wait_us=850)], known) == (1, 1, 0)
        assert policy.next(0, queue, [IDLE, UnitState(available=False)], known) == (1, 1, 0)
    assert make_policy("round-robin").next(0, queue, [IDLE, BUSY], known) == (1, 1, 0)


def test_those_ahead_count_where_they_wait() -> None:
    """Two requests want the busy unit; for the second one the wait is too long then."""
    known = times({(0, 1, 0): 700, (0, 1, 1): 300})
    queue = [Waiting(number=n, network=0, application=0, arrival_us=0) for n in (1, 2)]
    units = [IDLE, UnitState(running=1, wait_us=200)]
    assert make_policy("lst").next(0, queue[:1], units, known) is None
    assert make_policy("lst").next(0, queue, units, known) == (2, 1, 0)


def largest(mapping: Sequence[int], tables: Sequence[dict[int, float]], demand: Sequence[float]) -> float:
    """Return the load of the fullest unit."""
    loads: dict[int, float] = {}
    for network, unit in enumerate(mapping):
        loads[unit] = loads.get(unit, 0.0) + demand[network] * tables[network][unit]
    return max(loads.values())


def test_spread_has_the_least_largest_load() -> None:
    random = Random(5)
    for _ in range(60):
        networks, units = random.randint(1, 4), random.randint(1, 4)
        tables = [{unit: float(random.randint(1, 50)) for unit in range(units)} for _ in range(networks)]
        demand = [float(random.randint(1, 6)) for _ in range(networks)]

        best = min(largest(mapping, tables, demand) for mapping in product(range(units), repeat=networks))
        assert largest(spread(tables, demand), tables, demand) == best
    assert len(spread([{unit: 1.0 + unit for unit in range(8)}] * 30, [1.0] * 30)) == 30


def test_tensorflow_lite_has_one_unit_for_each_network_and_shares_it() -> None:
    rows = {"a": ((900, 300),), "b": ((800, 350),)}
    board = setting(("cpu", "npu"), rows)
    asked = scenario(at("a", 0, 0), at("b", 0))
    spreads = play(board, asked, make_policy("tflite"))
    fastest = play(board, asked, make_policy("tflite-fastest"))
    assert {each[0] for each in ran(spreads)} == {"cpu", "npu"}
    # Side by side each takes twice as long; the second request of a comes when the first is done.
    assert [each[:3] for each in ran(fastest)] == [("npu", 0, 600), ("npu", 0, 700), ("npu", 600, 950)]


def test_a_plan_is_followed_by_every_request() -> None:
    board = setting(("cpu", "npu"), {"a": ((500, 300), (400, None))})
    policy = Planned("plan", {0: [(1, 1), (2, 0)]})
    record = play(board, scenario(at("a", 0, 0)), policy)
    assert ran(record) == [
        ("npu", 0, 300, 0, 1),
        ("npu", 300, 600, 0, 1),
        ("cpu", 300, 700, 1, 2),
        ("cpu", 700, 1100, 1, 2),
    ]


def test_a_power_budget_keeps_units_idle() -> None:
    powers = tuple(UnitBehaviour(unit=unit, busy_mw=1_000, idle_mw=100) for unit in ("cpu", "npu"))
    board = setting(
        ("cpu", "npu"),
        {"a": ((500, 400),)},
        behaviour=Behaviour(platform="board", units=powers, base_mw=1_000),
    )
    asked = scenario(at("a", 0, 0, 0, 0))
    free = play(board, asked, make_policy("sel"))
    capped = play(board, asked, PowerBudget(make_policy("sel"), board, 2_500))
    assert free.end_us < capped.end_us
    both = [
        min(one.end_us, other.end_us) - max(one.start_us, other.start_us)
        for one in capped.ran
        for other in capped.ran
        if one.unit < other.unit
    ]
    assert max(both, default=0) <= 0
    with pytest.raises(
        InvalidInputError, match=r"is too small for 'board': with one unit at work it takes 2\.1 W"
    ):
        PowerBudget(make_policy("sel"), board, 1_500)


def test_policies_by_name_and_from_a_file(tmp_path: Path) -> None:
    for name in policy_names():
        assert make_policy(name).name == name
        assert make_policy(name) is not make_policy(name)
        assert SHIPPED[name].text
    assert make_policy("sel-whole").conduct is Conduct.WHOLE
    file = tmp_path / "mine.py"
    file.write_text(
        "from gapless.formulations.coordination.policy import Decision, Policy\n"
        "class First(Policy):\n"
        "    def next(self, now_us, queue, units, times):\n"
        "        for option in times.options(queue[0].network, queue[0].done):\n"
        "            if units[option.unit].idle:\n"
        "                return Decision(queue[0].number, option.stop, option.unit)\n"
    )
    policy = make_policy(f"{file}:First")
    assert policy.name == f"{file}:First"
    record = play(setting(("cpu",), {"a": ((10,),)}), scenario(at("a", 0, 0)), policy)
    assert [request.end_us for request in record.requests] == [10, 20]
    with pytest.raises(InvalidInputError, match=r"no policy is called 'last'; .*lst"):
        make_policy("last")
    with pytest.raises(InvalidInputError, match="name the class in the file"):
        make_policy(str(file))


def test_a_plan_of_a_workload_is_followed_in_its_order() -> None:
    """b goes first although a came first, and its second half waits for its turn on the other unit."""
    place = setting(("cpu", "npu"), {"net": ((300, 100), (200, 100))})
    plan = Plan(
        chunks=(
            Chunk(network="net", start=0, stop=2, unit="npu", request="a"),
            Chunk(network="net", start=0, stop=1, unit="npu", request="b"),
            Chunk(network="net", start=1, stop=2, unit="cpu", request="b"),
        ),
        order=("b", "a"),
    )
    divided, policy = followed(place, plan, "mine")
    assert [(section.start, section.stop) for section in divided.sections[0]] == [(0, 1), (1, 2)]
    jobs = Jobs(requests=tuple(JobRequest(name=name, network="net") for name in plan.order))
    record = play_jobs(divided, jobs, policy)
    assert [(each.request, each.unit, each.start_us, each.end_us) for each in record.ran] == [
        (0, 1, 0, 100),
        (0, 0, 100, 300),
        (1, 1, 100, 300),
    ]
    strange = Plan(chunks=(Chunk(network="other", start=0, stop=2, unit="npu", request="a"),), order=("a",))
    with pytest.raises(InvalidInputError, match="other"):
        followed(place, strange, "mine")

"""A static plan that adapts: it decides where requests pile up, is left when it is wrong, and is back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gapless.formulations.coordination.behaviour import Behaviour, UnitBehaviour
from gapless.formulations.coordination.play import play
from gapless.formulations.coordination.policy import Decision, UnitState, Waiting
from gapless.formulations.coordination.record import Record
from gapless.formulations.coordination.scenario import UnitChange, UnitEvent
from gapless.formulations.coordination.times import NetworkTimes, Times
from gapless.formulations.errors import InvalidInputError
from gapless.solvers.coordination import adaptive
from gapless.solvers.coordination.adaptive import Adaptive, Change, Why
from gapless.solvers.coordination.dynamic import LeastSlack
from gapless.solvers.coordination.paces import LEARNED
from gapless.solvers.coordination.policies import make_policy

from ...formulations.coordination.cases import setting
from ...formulations.coordination.test_play import at, scenario

TWO = {"net": ((4_000, 1_000), (1_000, 4_000))}
"""Each unit is good at one half: a request needs 1 ms of each of them."""


def crowd(policy: Adaptive, *events: UnitEvent, count: int = 1_000) -> Record:
    """Play requests that come every 1.25 ms: the plan keeps up with that, others do not."""
    board = setting(("cpu", "npu"), TWO, borders={"net": (1,)})
    return play(board, scenario(at("net", *range(0, 1_250 * count, 1_250)), events=events), policy)


def waiting(count: int) -> list[Waiting]:
    return [Waiting(number=n, network=0, application=0, arrival_us=0) for n in range(count)]


def whys(policy: Adaptive) -> list[Why | None]:
    return [change.why for change in policy.changes]


def test_the_plan_decides_where_requests_pile_up() -> None:
    """Requests that all come at once: two halves on the right units make 1 ms each; nothing is faster."""
    board = setting(("cpu", "npu"), TWO, borders={"net": (1,)})
    policy = Adaptive()
    record = play(board, scenario(at("net", *[0] * 400, *[60_000] * 600)), policy)
    assert all(request.end_us is not None for request in record.requests)
    assert whys(policy) == [None]
    assert policy.plans == 1
    assert policy.changes[0].work_us == pytest.approx(1_000, rel=0.01)
    meanwhile = [ran for ran in record.ran if 70_000 < ran.start_us < 900_000]
    assert len(meanwhile) > 1_600
    assert {(ran.unit, ran.first) for ran in meanwhile} == {(1, 0), (0, 1)}
    assert record.end_us < 0.8 * play(board, scenario(at("net", *[0] * 1_000)), make_policy("lst")).end_us


def test_few_requests_are_left_to_the_policy() -> None:
    """A plan would send some of them to the slower unit, although the faster one is free."""
    policy, board = Adaptive(), setting(("cpu", "npu"), {"net": ((1_500, 1_000),)})
    record = play(board, scenario(at("net", *range(0, 300_000, 3_000))), policy)
    assert whys(policy) == [None]
    assert {ran.unit for ran in record.ran} == {1}


def test_a_unit_that_leaves_and_returns_takes_the_plan_along() -> None:
    policy = Adaptive()
    lost = UnitEvent(at_us=300_000, unit="npu", change=UnitChange.LOST)
    back = UnitEvent(at_us=600_000, unit="npu", change=UnitChange.BACK)
    record = crowd(policy, lost, back)
    assert all(request.end_us is not None for request in record.requests)
    assert whys(policy) == [None, Why.UNITS, None, Why.UNITS, None]
    times_us = [change.at_us for change in policy.changes]
    assert times_us[2] >= times_us[1] + adaptive.PLANNING_US
    assert times_us[4] == times_us[3]  # the first plan is known, and fits again
    assert policy.plans == 2


def test_runs_that_take_long_now_and_then_are_no_reason_to_leave_a_plan() -> None:
    """As expected times go, five in a hundred that take six times as long are a drift again and again."""
    tails = Behaviour(
        platform="board",
        units=tuple(
            UnitBehaviour(unit=unit, tail_permille=6_000, tail_share_permille=50) for unit in ("cpu", "npu")
        ),
    )
    board = setting(("cpu", "npu"), TWO, borders={"net": (1,)}, behaviour=tails)
    policy = Adaptive()
    play(board, scenario(at("net", *range(0, 1_600_000, 1_600))), policy)
    assert whys(policy) == [None]


def asked(times: Times, *units: UnitState, count: int = 300) -> tuple[Adaptive, list[Waiting]]:
    """Return a policy with a plan in force, and what waits."""
    policy = Adaptive()
    queue = waiting(count)
    policy.begin(times, (1.0,))
    policy.next(0, queue, units, times)
    policy.next(adaptive.PLANNING_US, queue, units, times)
    assert whys(policy) == [None]
    return policy, queue


def halves() -> Times:
    chunks = {(0, 1, 0): 100, (1, 2, 1): 100, (0, 1, 1): 400, (1, 2, 0): 400, (0, 2, 0): 500, (0, 2, 1): 500}
    return Times(["a", "b"], [NetworkTimes(sections=2, chunk_us={k: 10 * v for k, v in chunks.items()})])


def ran(policy: Adaptive, factor: float, units: Sequence[int] = (0, 1), count: int = LEARNED) -> None:
    """Tell a policy that the chunks of `halves` ran on units, `factor` times as long as expected."""
    for _ in range(count):
        for unit in units:
            request = Waiting(number=0, network=0, application=0, arrival_us=0, done=unit)
            policy.took(request, Decision(0, unit + 1, unit), factor * 1_000, 1_000)


def test_times_that_drift_end_a_plan_and_make_another() -> None:
    times, there = halves(), (UnitState(), UnitState())
    policy, queue = asked(times, *there)
    ran(policy, 1.0)
    ran(policy, 1.2, [0], count=200)  # not enough to matter
    policy.next(60_000, queue, there, times)
    assert whys(policy) == [None]
    ran(policy, 9.0, [0], count=8)
    policy.next(60_001, queue, there, times)
    assert whys(policy) == [None, Why.DRIFT]
    policy.next(60_001 + adaptive.PLANNING_US, queue, there, times)
    assert policy.plans == 1  # not again and again where times never rest
    policy.next(adaptive.PAUSE_US, queue, there, times)
    policy.next(adaptive.PAUSE_US + adaptive.PLANNING_US, queue, there, times)
    assert whys(policy) == [None, Why.DRIFT, None]
    # The other unit does nearly all of it, also by chunks of which none has run since.
    assert policy.changes[-1].work_us > 3 * policy.changes[0].work_us


def test_a_plan_that_was_left_is_back_with_something_to_spare() -> None:
    times, there = halves(), (UnitState(), UnitState())
    policy, queue = asked(times, *there)
    ran(policy, 1.0)
    for factor, found in (
        (2.0, [None, Why.DRIFT]),
        (1.2, [None, Why.DRIFT]),
        (1.0, [None, Why.DRIFT, None]),
    ):
        ran(policy, factor, [0], count=200)
        policy.next(60_000, queue, there, times)
        assert whys(policy) == found
    policy.begin(times, (1.0,))
    assert policy._paces.now(2) == (0, 0)
    assert policy._paces.version == 0


def test_the_other_policy_is_told_what_chunks_take() -> None:
    told: list[tuple[int, Decision, float, float]] = []

    class Told(LeastSlack):
        def took(self, request: Waiting, decision: Decision, took_us: float, expected_us: float) -> None:
            told.append((request.done, decision, took_us, expected_us))

    board = setting(("cpu", "npu"), TWO, borders={"net": (1,)})
    play(board, scenario(at("net", 0)), Adaptive(Told()))
    assert told == [(0, Decision(0, 1, 1), 1_000, 1_000), (1, Decision(0, 2, 0), 1_000, 1_000)]


def test_one_slow_request_is_no_drift() -> None:
    times, there = halves(), (UnitState(), UnitState())
    policy, queue = asked(times, *there)
    ran(policy, 1.0)
    for _ in range(10):
        ran(policy, 50.0, [0], count=3)
        ran(policy, 1.0, [0], count=20)
        policy.next(60_000, queue, there, times)
    assert whys(policy) == [None]


def test_units_that_are_slower_alike_keep_the_plan() -> None:
    times, there = halves(), (UnitState(), UnitState())
    policy, queue = asked(times, *there)
    ran(policy, 1.0)
    ran(policy, 3.0)
    policy.next(60_000, queue, there, times)
    assert whys(policy) == [None]
    ran(policy, 1.0, [0])
    policy.next(60_001, queue, there, times)
    assert whys(policy) == [None, Why.DRIFT]


def test_what_a_plan_takes_while_it_is_followed_is_no_drift() -> None:
    """From the first runs it is learned, unless one chunk takes twice as much more than another."""
    times, there = halves(), (UnitState(), UnitState())
    for factor, why in ((1.9, [None]), (2.1, [None, Why.DRIFT])):
        policy, queue = asked(times, *there)
        ran(policy, 1.0, [1])
        ran(policy, factor, [0], count=LEARNED - 1)
        policy.next(60_000, queue, there, times)
        assert whys(policy) == [None]
        ran(policy, factor, [0], count=1)
        policy.next(60_001, queue, there, times)
        assert whys(policy) == why


def test_other_requests_than_it_was_made_for_end_a_plan() -> None:
    network = NetworkTimes(sections=1, chunk_us={(0, 1, 0): 1_000, (0, 1, 1): 1_000})
    times, there = Times(["a", "b"], [network, network]), (UnitState(), UnitState())
    policy = Adaptive()
    policy.begin(times, (1.0, 1.0))
    queue = [Waiting(number=n, network=n % 2, application=0, arrival_us=0) for n in range(300)]
    policy.next(0, queue, there, times)
    policy.next(adaptive.PLANNING_US, queue, there, times)
    for _ in range(100):  # a chunk that is lost runs again
        policy.ended(queue[0])
    policy.next(59_000, queue, there, times)
    assert whys(policy) == [None]
    for request in waiting(100):
        policy.ended(request)
        policy.ended(request._replace(network=1, done=1))  # only its first chunk counts
    policy.next(60_000, queue, there, times)
    assert whys(policy) == [None, Why.MIX]


def test_networks_that_come_while_a_plan_is_made_do_not_get_it() -> None:
    network = NetworkTimes(sections=1, chunk_us={(0, 1, 0): 1_000, (0, 1, 1): 1_000})
    times, there = Times(["a", "b"], [network]), (UnitState(), UnitState())
    policy, queue = Adaptive(), waiting(300)
    policy.begin(times, (1.0,))
    policy.next(0, queue, there, times)
    times.add(network)
    policy.begin(times, (1.0, 0.1))
    late = [*queue, Waiting(number=300, network=1, application=0, arrival_us=0)]
    assert policy.next(adaptive.PLANNING_US, late, there, times) is not None
    assert policy.plans == 0
    policy.next(2 * adaptive.PLANNING_US, late, there, times)
    assert (policy.plans, whys(policy)) == (1, [None])


def test_a_plan_that_cannot_be_made_leaves_it_to_the_policy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(adaptive, "_planned", broken)
    times, there = halves(), (UnitState(), UnitState())
    policy, queue = Adaptive(), waiting(300)
    policy.begin(times, (1.0,))
    for now_us in (0, 60_000, 120_000):
        assert policy.next(now_us, queue, there, times) is not None
    assert caplog.messages == ["no plan could be made; a policy decides"]


def test_networks_that_nothing_can_run_leave_it_to_the_policy() -> None:
    times = Times(["a", "b"], [NetworkTimes(sections=1, chunk_us={(0, 1, 1): 1_000})])
    policy, there = Adaptive(), (UnitState(), UnitState(available=False))
    queue = waiting(300)
    for now_us in (0, 60_000, 2_000_000):
        assert policy.next(now_us, queue, there, times) is None
    assert policy.plans == 0
    assert policy._planning.may_begin(2_000_000, (0,))  # it is not tried again
    assert policy.next(3_000_000, queue, (UnitState(), UnitState()), times) == (0, 1, 1)


def test_requests_that_units_can_run_again_are_planned() -> None:
    one = NetworkTimes(sections=1, chunk_us={(0, 1, 1): 1_000})
    other = NetworkTimes(sections=1, chunk_us={(0, 1, 0): 1_000, (0, 1, 1): 1_000})
    times, there = Times(["a", "b"], [one, other]), (UnitState(), UnitState(available=False))
    policy, queue = Adaptive(), [request._replace(network=1) for request in waiting(300)]
    policy.begin(times, (1.0, 1.0))
    for now_us in (0, 60_000):
        policy.next(now_us, queue, there, times)
    for request in queue[:100]:  # the one that nothing can run comes no more
        policy.ended(request)
    for now_us in (2_000_000, 2_000_000 + adaptive.PLANNING_US):
        policy.next(now_us, queue, there, times)
    assert (policy.plans, whys(policy)) == (1, [None])


def test_a_given_plan_is_followed_from_the_first_request() -> None:
    times, there = halves(), [UnitState(), UnitState()]
    policy, one = Adaptive(), [Waiting(number=7, network=0, application=0, arrival_us=0)]
    policy.begin(times, (1.0,))
    policy.follow({0: [((1, 1), (2, 1))]}, times)  # not what anybody else would do
    assert policy.next(0, one, there, times) == Decision(7, 1, 1)
    assert policy.next(0, [replace_done(one[0], 1)], there, times) == Decision(7, 2, 1)
    busy = [UnitState(), UnitState(running=1, wait_us=100)]
    assert policy.next(0, one, busy, times) is None
    gone = [UnitState(), UnitState(available=False)]
    policy.changed(gone)
    assert policy.next(10, one, gone, times) == Decision(7, 2, 0)
    policy.changed(there)
    assert policy.next(20, one, there, times) == Decision(7, 1, 1)
    assert whys(policy) == [None, Why.UNITS, None]


def test_requests_take_the_routes_of_a_given_plan_in_turn() -> None:
    times, there = halves(), [UnitState(), UnitState()]
    policy = Adaptive()
    policy.begin(times, (1.0,))
    policy.follow({0: [((2, 0),), ((2, 1),)]}, times)
    units = []
    for request in waiting(40):
        decision = policy.next(0, [request], there, times)
        assert decision is not None
        units.append(decision.unit)
    assert units.count(0) in {19, 20, 21}


def following() -> tuple[Times, tuple[UnitState, UnitState], Adaptive, list[Waiting]]:
    """Return a policy that follows a plan that was given, when its chunks have run as expected."""
    times, there = halves(), (UnitState(), UnitState())
    policy, queue = Adaptive(), waiting(300)
    policy.begin(times, (1.0,))
    policy.follow({0: [((1, 0), (2, 1))]}, times)
    policy.next(0, queue, there, times)
    ran(policy, 1.0)
    return times, there, policy, queue


def test_a_given_plan_that_has_drifted_makes_room_for_another_and_is_back() -> None:
    times, there, policy, queue = following()
    ran(policy, 5.0, [0])
    for now_us in (1, 2, 60_000, 60_001):
        policy.next(now_us, queue, there, times)
    assert whys(policy) == [None, Why.DRIFT, None]
    assert policy.plans == 1
    ran(policy, 1.2, [0])  # a plan that is in force would not be left for this
    policy.next(60_002, queue, there, times)
    assert policy.changes[-1].work_us or policy.changes[-1].why
    ran(policy, 1.0, [0], count=100)
    policy.next(60_003, queue, there, times)
    assert (policy.changes[-1].why, policy.changes[-1].work_us) == (None, 0.0)
    assert policy.next(60_004, queue[:1], there, times) == Decision(0, 1, 0)  # whatever waits
    policy.begin(times, (1.0,))
    assert policy._given is None  # of other networks


def test_a_given_plan_comes_before_one_that_was_made() -> None:
    """Also where the units have come together again without leaving that one."""
    times, there, policy, queue = following()
    ran(policy, 1.35, [0])
    for now_us in (1, 60_001):
        policy.next(now_us, queue, there, times)
    assert whys(policy) == [None, Why.DRIFT, None]
    ran(policy, 1.1, [0], count=200)
    policy.next(60_002, queue, there, times)
    assert whys(policy) == [None, Why.DRIFT, None, None]
    assert policy.changes[-1].work_us == 0.0


def replace_done(request: Waiting, done: int) -> Waiting:
    return request._replace(done=done)


@pytest.mark.parametrize("every", [1, 13, 21])
def test_requests_are_dealt_evenly(every: int) -> None:
    """Also where those of another network come in between."""
    first = NetworkTimes(sections=1, chunk_us={(0, 1, 0): 1_000, (0, 1, 1): 3_000})
    times, there = Times(["a", "b"], [first, first]), (UnitState(), UnitState())
    policy, units = Adaptive(), list[int]()
    policy.begin(times, (1.0, 0.0))
    queue = [request._replace(number=every * request.number) for request in waiting(280)]
    policy.next(0, queue, there, times)
    policy.next(adaptive.PLANNING_US, queue, there, times)
    while len(units) < 200:  # as long as enough wait for the plan to decide
        decision = policy.next(60_000, queue, there, times)
        assert decision is not None
        units.append(decision.unit)
        queue = [request for request in queue if request.number != decision.request]
    for start in range(0, 200, 20):
        assert units[start : start + 20].count(1) in {4, 5, 6}


def test_it_is_told_what_it_says() -> None:
    assert str(Change(0, None, 1_234.0)) == "a plan is in force: units need 1.23 ms per request"
    assert str(Change(0, Why.DRIFT)) == "the plan is left (drift); a policy decides"
    with pytest.raises(InvalidInputError, match="'lst' follows no plan"):
        make_policy("lst").follow({}, halves())


@pytest.mark.parametrize("backlog", [10, 300])
def test_a_thread_makes_plans_of_live_policies(backlog: int) -> None:
    times, there = halves(), (UnitState(), UnitState())
    policy = Adaptive()
    policy.live()
    policy.begin(times, (1.0,))
    queue = waiting(backlog)
    policy.next(0, queue, there, times)
    policy._planning._made.result(10)
    policy.next(1, queue, there, times)
    assert [replace(change, work_us=0.0) for change in policy.changes] == [Change(1, None)]

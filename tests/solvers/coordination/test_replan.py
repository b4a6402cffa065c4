"""The policy that plans: it keeps its plan, makes a new one when it has to, and loses nothing."""

from __future__ import annotations

import pytest

from gapless.formulations.coordination.play import play
from gapless.formulations.coordination.policy import UnitState, Waiting
from gapless.formulations.coordination.scenario import UnitChange, UnitEvent
from gapless.formulations.coordination.times import NetworkTimes, Times
from gapless.solvers.coordination.policies import make_policy
from gapless.solvers.coordination.replan import Replan

from ...formulations.coordination.cases import setting
from ...formulations.coordination.test_play import at, latency, scenario

ROWS = {
    "long": ((900, 400), (900, None), (900, 400)),
    "short": ((300, 200),),
}


@pytest.mark.usefixtures("counted_time")
def test_one_plan_serves_what_is_known() -> None:
    board = setting(("cpu", "npu"), ROWS)
    policy = Replan(time_limit_s=0.5)
    record = play(board, scenario(at("long", 0), at("short", 0, 0)), policy)
    assert policy.plans == 1
    # The NPU runs both short requests while the CPU has the middle of the long one.
    assert record.end_us == 400 + 900 + 400
    assert all(request.end_us is not None for request in record.requests)


def test_it_plans_again_when_something_comes_or_a_unit_leaves() -> None:
    board = setting(("cpu", "npu"), ROWS)
    policy = Replan()
    lost = UnitEvent(at_us=100, unit="npu", change=UnitChange.LOST)
    record = play(board, scenario(at("long", 0), at("short", 50), events=(lost,)), policy)
    assert policy.plans >= 3
    assert all(request.end_us is not None for request in record.requests)
    assert {ran.unit for ran in record.ran if not ran.cut_off} == {0}
    assert latency(record, 1) >= 300


def test_it_plans_again_when_times_have_drifted() -> None:
    times = Times(
        ["a", "b"], [NetworkTimes(sections=1, chunk_us={(0, 1, 0): 100, (0, 1, 1): 900})], smoothing=0.1
    )
    policy, units = Replan(), [UnitState(), UnitState(running=1, wait_us=10)]
    queue = [Waiting(number=n, network=0, application=0, arrival_us=0) for n in range(3)]
    first = policy.next(0, queue, units, times)
    assert first is not None
    left = [request for request in queue if request.number != first.request]
    times.expect(0, 0, 1, 0, 110)
    policy.next(100, left, [UnitState(), UnitState(running=1, wait_us=60)], times)
    assert policy.plans == 1
    policy.ended(queue[first.request])
    times.expect(0, 0, 1, 0, 400)
    policy.next(100, left, [UnitState(), UnitState(running=1, wait_us=60)], times)
    assert policy.plans == 2


def test_without_a_plan_least_slack_decides() -> None:
    """A section that no unit which is there can run leaves nothing to plan; others go on."""
    known = Times(
        ["a", "b"],
        [
            NetworkTimes(sections=1, chunk_us={(0, 1, 1): 100}),
            NetworkTimes(sections=1, chunk_us={(0, 1, 0): 100}),
        ],
    )
    queue = [Waiting(number=n, network=n, application=0, arrival_us=0) for n in range(2)]
    units = [UnitState(), UnitState(available=False)]
    policy = make_policy("replan")
    assert policy.next(0, queue, units, known) == (1, 1, 0)

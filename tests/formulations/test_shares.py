"""Shares of time in which units work: one account for terminal and page."""

from __future__ import annotations

from dataclasses import replace

import gapless
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.deployment import Mode, replicas
from gapless.formulations.history import Interval, SteadyState
from gapless.formulations.judge import score
from gapless.formulations.operation import operation_of
from gapless.formulations.shares import UnitShare, shares_of, unit_shares, utilisation


def test_shares_of_a_pipeline_are_those_of_the_judge() -> None:
    problem = gapless.table_problem({"conv": [9, 2], "fc": [1, 8]}, ["cpu", "gpu"], network="net")
    plan = gapless.plan(problem).plan
    assert plan is not None
    found, judged = unit_shares(problem, deploy(plan)), score(problem, plan)
    assert {one.whole_us for one in found.values()} == {judged.period_us}
    assert sorted(one.busy_us for one in found.values()) == sorted(judged.busy_us)
    assert utilisation(problem, found) == judged.utilisation_permille / 1000


def test_replicas_are_never_busier_than_all_of_their_common_period() -> None:
    problem = gapless.table_problem({"conv": [9, 2], "fc": [1, 8]}, ["cpu", "gpu"], network="net")
    found = unit_shares(problem, replicas("net", 2, ("cpu", "gpu")))
    assert {unit: one.permille for unit, one in found.items()} == {"cpu": 1000, "gpu": 1000}
    assert utilisation(problem, found) == 1


def test_of_units_that_share_cores_one_counts() -> None:
    problem = gapless.load_problem("pixel7a/alexnet-sparse")

    units = problem.platform.units
    shared = replace(problem.platform, units=(replace(units[0], cores=(0,)), *units[1:]))
    assert shared.most_at_once == 4
    both = replace(shared, units=(shared.units[0], replace(units[1], cores=(0, 1)), *units[2:]))
    busy = {"Little": UnitShare(whole_us=10, busy_us=10), "GPU": UnitShare(whole_us=10, busy_us=5)}
    assert utilisation(replace(problem, platform=both), busy) == 0.5


def test_a_stream_has_the_period_and_rate_of_its_steady_state() -> None:
    problem = gapless.load_workload("yolov4,bert,mobilenetv2", platform="kirin990", mode=Mode.STREAM)
    plan = gapless.plan(problem, time_limit_s=1).plan
    assert plan is not None
    judged, found = score(problem, plan), unit_shares(problem, operation_of(problem).arrange(problem, plan))
    assert {one.whole_us for one in found.values()} == {judged.period_us}
    assert judged.throughput == 1e6 * 3 / judged.period_us
    assert all(one.busy_us <= one.whole_us for one in found.values())


def test_a_window_repeats_a_round_and_cuts_what_reaches_beyond_it() -> None:
    ahead = Interval(start_ns=0, end_ns=4_000, stream=0, request=7, chunk=0, unit="a")
    late = Interval(start_ns=26_000, end_ns=34_000, stream=0, request=7, chunk=1, unit="b", slowdown_ns=2_000)
    state = SteadyState(period_us=10, events=(ahead, late))
    found = sorted(state.window(2))
    of_a = [(e.start_ns, e.end_ns) for e in found if e.unit == "a"]
    of_b = [(e.start_ns, e.end_ns) for e in found if e.unit == "b"]
    assert of_a == [(0, 4_000), (10_000, 14_000)]
    assert of_b == [(0, 4_000), (6_000, 14_000), (16_000, 20_000)]
    assert min(event.request for event in found) == 0
    assert [one.busy_us for one in shares_of([state]).values()] == [4, 8]

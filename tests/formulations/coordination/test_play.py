"""Scenarios in simulated time: exact times, frames, deadlines, units that come and go, heat, noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from gapless.formulations.coordination.behaviour import Behaviour, HeatModel, UnitBehaviour
from gapless.formulations.coordination.play import play
from gapless.formulations.coordination.policy import Decision, Policy, UnitState, Waiting
from gapless.formulations.coordination.record import Record, percentile
from gapless.formulations.coordination.scenario import (
    Application,
    Arrivals,
    FrameStep,
    Scenario,
    UnitChange,
    UnitEvent,
    Workflow,
    demand_of,
    poisson,
)
from gapless.formulations.coordination.simulation import Conditions, Late
from gapless.formulations.coordination.times import Times
from gapless.formulations.coordination.truth import Noise
from gapless.formulations.costs import Interference
from gapless.formulations.errors import InvalidInputError, InvalidProblemError
from gapless.solvers.coordination.policies import SHIPPED, make_policy

from .cases import FIGURE_6, setting


def at(network: str, *times_us: int, **more: object) -> Application:
    return Application(name=network, network=network, arrivals=Arrivals(at_us=times_us), **more)  # type: ignore[arg-type]


def scenario(*applications: Application, duration_us: int = 1_000_000, **more: object) -> Scenario:
    return Scenario(name="test", duration_us=duration_us, applications=applications, **more)  # type: ignore[arg-type]


def latency(record: Record, number: int) -> float:
    """Return the latency of a request that was answered."""
    found = record.requests[number].latency_us
    assert found is not None
    return found


def ran(record: Record) -> list[tuple[str, float, float, int, int]]:
    """Return (unit, start, end, first section, last section) of what ran, in the order of its start."""
    found = [(record.units[r.unit], r.start_us, r.end_us, r.first, r.last) for r in record.ran]
    return sorted(found, key=lambda each: each[1:])


def test_figure_6_fallback_with_and_without_notice() -> None:
    """Sections let MobileNetV1 use the NPU while EfficientDet is on the CPU."""
    board = setting(("cpu", "npu"), FIGURE_6)
    asked = scenario(at("efficientdet", 0), at("mobilenetv1", 100))
    whole = play(board, asked, make_policy("lst-whole"))
    parts = play(board, asked, make_policy("lst"))
    # Whole, it takes the CPU at once; from 7 ms on the layers that fell back share it: each has half of it.
    late = latency(whole, 1)
    assert late == pytest.approx(16_000 + (16_000 - 6_900))
    assert next(each for each in ran(whole) if each[0] == "npu") == ("npu", 0, 7_000, 0, 1)
    # By sections, it waits for 7 ms and takes the NPU.
    assert latency(parts, 1) == 7_000 - 100 + 4_000
    assert 1 - latency(parts, 1) / late > 0.5
    assert [(r.silent, whole.units[r.unit]) for r in whole.ran if r.silent] == [(True, "cpu")]


def test_a_lone_request_takes_what_the_table_says() -> None:
    board = setting(("cpu", "npu"), FIGURE_6)
    for name in ("lst", "sel", "heft", "edf", "shortest"):
        record = play(board, scenario(at("efficientdet", 50)), make_policy(name))
        assert latency(record, 0) == 7_000 + 15_000 + 3_000
        assert record.end_us == 25_050


def test_frames_wait_for_each_other_and_obey_their_graph() -> None:
    board = setting(("cpu", "npu"), {"detect": ((900, 300),), "crop": ((200, 100),)})
    steps = (
        FrameStep(name="find", network="detect", mean=2, exact=True),
        FrameStep(name="look", network="crop", mean=3, exact=True, after="find"),
    )
    asked = Scenario(
        name="frames", duration_us=20_000, workflows=(Workflow(name="flow", steps=steps),), seed=3
    )
    record = play(board, asked, make_policy("sel"))
    ends = {request.number: request.end_us or 0.0 for request in record.requests}
    starts = {each.request: each.start_us for each in record.ran}
    assert len(record.requests) == 8 * len(record.frames)
    for request in record.requests:
        assert all(ends[before] <= starts[request.number] for before in request.after)
    for before, after in pairwise(record.frames):
        assert before.end_us == after.start_us
    assert record.frames[-1].start_us < 20_000 <= record.end_us
    assert demand_of(asked) == {"detect": 2.0, "crop": 6.0}


def test_the_most_crowded_frames() -> None:
    steps = (FrameStep(name="find", network="a", mean=5),)
    board = setting(("cpu",), {"a": ((100,),)})
    sizes = {}
    for permille in (1000, 100):
        flow = Workflow(name="flow", steps=steps, crowded_permille=permille)
        record = play(board, Scenario(name="s", duration_us=100_000, workflows=(flow,)), make_policy("lst"))
        sizes[permille] = [
            sum(request.frame == frame.frame for request in record.requests) for frame in record.frames
        ]
    assert min(sizes[100]) >= 8 > sum(sizes[1000]) / len(sizes[1000])


def test_late_requests_are_kept_or_dropped() -> None:
    board = setting(("cpu",), {"a": ((1000,),)})
    asked = scenario(at("a", 0, 0, 0, 0, deadline_us=2_500))
    kept = play(board, asked, make_policy("lst"))
    dropped = play(board, asked, make_policy("lst"), Conditions(late=Late.DROP))
    assert [request.end_us for request in kept.requests] == [1000, 2000, 3000, 4000]
    assert [request.end_us for request in dropped.requests] == [1000, 2000, None, None]
    assert kept.share_in_time() == dropped.share_in_time() == 0.5
    assert (kept.dropped(), dropped.dropped()) == (0, 2)


def test_a_deadline_can_be_a_multiple_of_the_99th_percentile_alone() -> None:
    behaviour = Behaviour(
        platform="board",
        units=(UnitBehaviour(unit="npu", tail_permille=1500, tail_share_permille=20),),
    )
    board = setting(("cpu", "npu"), {"a": ((900, 400),)}, behaviour=behaviour)
    record = play(board, scenario(at("a", 10, deadline_permille=2000)), make_policy("lst"))
    assert record.requests[0].deadline_us == 10 + 2 * 600


def test_a_lost_unit_gives_its_request_back() -> None:
    board = setting(("cpu", "npu"), {"a": ((5_000, 1_000),)})
    events = (
        UnitEvent(at_us=400, unit="npu", change=UnitChange.LOST),
        UnitEvent(at_us=7_000, unit="npu", change=UnitChange.BACK),
    )
    record = play(board, scenario(at("a", 0, 8_000), events=events), make_policy("lst"))
    assert ran(record) == [
        ("npu", 0, 400, 0, 1),
        ("cpu", 400, 5_400, 0, 1),
        ("npu", 8_000, 9_000, 0, 1),
    ]
    assert [each.cut_off for each in sorted(record.ran, key=lambda r: r.start_us)] == [True, False, False]
    assert [(span.unit, span.start_us, span.end_us, span.cause) for span in record.away] == [
        (1, 400, 7_000, "event")
    ]


def test_a_hot_unit_leaves_and_returns_and_rest_avoids_that() -> None:
    heat = HeatModel(kelvin_per_w=20, time_s=1.0, limit_c=55, back_c=40)
    npu = UnitBehaviour(unit="npu", busy_mw=2_000, idle_mw=0, heat=heat)
    board = setting(
        ("cpu", "npu"), {"a": ((90_000, 30_000),)}, behaviour=Behaviour(platform="board", units=(npu,))
    )
    asked = Scenario(
        name="heat",
        duration_us=6_000_000,
        applications=(Application(name="a", network="a", arrivals=Arrivals(period_us=31_000)),),
    )
    late = play(board, asked, make_policy("lst"))
    early = play(board, asked, make_policy("lst"), Conditions(rest_kelvin=3.0))
    first = late.away[0]
    assert first.cause == "heat"
    # T(t) = 25 + 40 (1 - exp(-t)) reaches 55 at ln 4 = 1.39 s of work; it is idle for 1 of 31 ms.
    assert 1.38e6 < first.start_us < 1.55e6
    assert any(each.cut_off for each in late.ran)
    assert {span.cause for span in early.away} == {"rest"}
    assert not any(each.cut_off for each in early.ran)
    low = play(board, asked, make_policy("lst"), Conditions(rest_kelvin=20.0))  # below `back_c`
    assert 1 < len(low.away) < 20
    for record in (late, early, low):
        assert all(request.end_us is not None for request in record.requests)


def test_company_on_a_unit_and_beside_it() -> None:
    class Two(Policy):
        """Starts whatever comes on the unit of its network."""

        name = "two"
        conduct = make_policy("tflite").conduct

        def next(
            self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
        ) -> Decision:
            return Decision(queue[0].number, 1, min(queue[0].network, len(units) - 1))

    shared = Behaviour(platform="board", units=(UnitBehaviour(unit="npu", sharing_permille=(1000, 1400)),))
    rows = {"a": ((1000, 1000),), "b": ((1000, 1000),), "c": ((1000, 1000),)}
    slow = Interference(units=("cpu", "npu"), slowdown_permille=((0, 250), (0, 0)))
    alone = play(setting(("cpu", "npu"), rows, behaviour=shared), scenario(at("b", 0), at("c", 0)), Two())
    assert {request.end_us for request in alone.requests} == {1400}
    beside = play(setting(("cpu", "npu"), rows, interference=slow), scenario(at("a", 0), at("b", 0)), Two())
    # For 1000 us both run: a does 800 of its 1000 us of work, the rest alone.
    assert [request.end_us for request in beside.requests] == [1200, 1000]
    of_three = dict.fromkeys(rows, ((1000, 1000, 1000),))
    units = ("cpu", "npu", "gpu")
    slow = Interference(units=units, slowdown_permille=((0, 250, 250), (0, 0, 0), (0, 0, 0)))
    asked = scenario(at("a", 0), at("b", 0), at("c", 0))
    # Losses of speed add up, as in workloads: a loses 1/5 to each, and does 600 us of its work in 1000.
    both = play(setting(units, of_three, interference=slow), asked, Two())
    assert [request.end_us for request in both.requests] == pytest.approx([1400, 1000, 1000])


def test_noise_of_estimates_and_of_times_are_two_things() -> None:
    board = setting(("cpu", "npu"), {"a": ((900, 400),)})
    asked = scenario(at("a", *range(0, 90_000, 1_000)))
    exact = play(board, asked, make_policy("lst"))
    wrong = play(board, asked, make_policy("lst"), Conditions(noise=Noise(estimates_permille=300)))
    varied = play(board, asked, make_policy("lst"), Conditions(noise=Noise(times_permille=300)))
    assert set(exact.latencies_us()) == set(wrong.latencies_us()) == {400}
    assert min(varied.latencies_us()) < 330
    assert max(varied.latencies_us()) > 470
    again = play(board, asked, make_policy("edf"), Conditions(noise=Noise(times_permille=300)))
    assert again.latencies_us() == varied.latencies_us()  # the same luck under every policy


def test_a_cold_unit_is_slower() -> None:
    cold = UnitBehaviour(unit="cpu", cold_permille=2600, cold_after_us=10_000)
    board = setting(("cpu",), {"a": ((1000,),)}, behaviour=Behaviour(platform="board", units=(cold,)))
    record = play(board, scenario(at("a", 0, 1_000, 6_000, 50_000)), make_policy("lst"))
    assert [request.latency_us for request in record.requests] == pytest.approx([1000, 1000, 1640, 2600])


@pytest.mark.parametrize("name", SHIPPED)
def test_every_policy_answers_everything_once(name: str) -> None:
    random = Random(11)
    networks = {
        f"net{index}": tuple(
            (random.randint(500, 900), random.randint(300, 500), None if random.random() < 0.3 else 200)
            for _ in range(6)
        )
        for index in range(3)
    }
    board = setting(("cpu", "gpu", "npu"), networks)
    events = tuple(
        UnitEvent(at_us=at_us, unit=unit, change=change)
        for at_us, unit, change in (
            (9_000, "npu", UnitChange.LOST),
            (20_000, "gpu", UnitChange.LOST),
            (30_000, "npu", UnitChange.BACK),
            (40_000, "gpu", UnitChange.BACK),
        )
    )
    asked = scenario(
        *(
            Application(name=net, network=net, arrivals=Arrivals(rate_per_s=150), deadline_permille=4000)
            for net in networks
        ),
        duration_us=100_000,
        events=events,
    )
    record = play(board, asked, make_policy(name))
    assert len(record.requests) > 30
    assert all(request.end_us is not None for request in record.requests)
    for request in record.requests:
        mine = [r for r in record.ran if r.request == request.number and not r.cut_off]
        parts = sorted((r.first, r.last) for r in mine)
        # Work that was cut off may have run again: every section has run to its end at least once.
        assert {s for first, last in parts for s in range(first, last)} == set(
            range(len(board.sections[request.network]))
        )
    if make_policy(name).conduct == "chunks":
        spans = sorted((r.unit, r.start_us, r.end_us) for r in record.ran)
        for (unit, _, end), (other, start, _) in pairwise(spans):
            assert unit != other or end <= start + 1e-6


def test_a_policy_that_decides_what_cannot_be_is_named() -> None:
    class Wild(Policy):
        name = "wild"

        def next(
            self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
        ) -> Decision:
            return Decision(99, 1, 0)

    with pytest.raises(InvalidInputError, match=r"policy 'wild' decided .*no such request waits"):
        play(setting(("cpu",), {"a": ((9,),)}), scenario(at("a", 0)), Wild())


def test_scenarios_say_what_is_wrong() -> None:
    with pytest.raises(InvalidProblemError, match="exactly one of period_us, rate_per_s and at_us"):
        Arrivals()
    with pytest.raises(InvalidProblemError, match="no step before it is called"):
        Workflow(name="w", steps=(FrameStep(name="a", network="n", mean=1, after="b"),))
    with pytest.raises(InvalidInputError, match="no network is called 'b'"):
        play(setting(("cpu",), {"a": ((9,),)}), scenario(at("b", 0)), make_policy("lst"))
    lost = UnitEvent(at_us=1, unit="tpu", change=UnitChange.LOST)
    with pytest.raises(InvalidInputError, match="no unit is called 'tpu'"):
        play(setting(("cpu",), {"a": ((9,),)}), scenario(at("a", 0), events=(lost,)), make_policy("lst"))


def test_a_scenario_is_the_same_each_time_and_another_with_another_seed() -> None:
    board = setting(("cpu", "npu"), {"a": ((900, 400),)})
    asked = scenario(
        Application(name="a", network="a", arrivals=Arrivals(rate_per_s=800)), duration_us=100_000
    )
    runs = [play(board, each, make_policy("lst")).requests for each in (asked, asked, replace(asked, seed=1))]
    assert runs[0] == runs[1] != runs[2]


def test_poisson_has_its_mean() -> None:
    random = Random(0)
    drawn = [poisson(2.3, random) for _ in range(4000)]
    assert sum(drawn) / 4000 == pytest.approx(2.3, rel=0.05)
    assert percentile([1.0, 2.0, 3.0, 4.0], 500) == 2.0
    assert percentile([], 500) is None

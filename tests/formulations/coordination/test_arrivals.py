"""When requests of scenarios come."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random
from statistics import mean, pvariance
from typing import Any

import pytest

from gapless.formulations.coordination.scenario import (
    Application,
    Arrivals,
    FrameStep,
    Scenario,
    UnitChange,
    UnitEvent,
    Workflow,
    at_pace,
    frames_of,
)
from gapless.formulations.errors import InvalidProblemError

STEP = FrameStep(name="s", network="n", mean=1.0)


def test_a_pace_moves_what_comes_and_nothing_else() -> None:
    how = [
        Arrivals(period_us=1000, phase_us=500),
        Arrivals(rate_per_s=20.0),
        Arrivals(at_us=(0, 30, 70)),
    ]
    scenario = Scenario(
        name="s",
        duration_us=10_000,
        applications=tuple(
            Application(name=str(index), network="n", arrivals=each, deadline_us=400)
            for index, each in enumerate(how)
        ),
        workflows=(
            Workflow(name="closed", steps=(STEP,)),
            Workflow(name="open", steps=(STEP,), arrivals=how[0], deadline_us=900),
        ),
        events=(UnitEvent(at_us=7, unit="u", change=UnitChange.LOST),),
    )
    slow = at_pace(scenario, 0.1)
    assert [each.arrivals for each in slow.applications] == [
        Arrivals(period_us=10_000, phase_us=5000),
        Arrivals(rate_per_s=2.0),
        Arrivals(at_us=(0, 300, 700)),
    ]
    assert slow.workflows[0] == scenario.workflows[0]
    assert slow.workflows[1].arrivals == Arrivals(period_us=10_000, phase_us=5000)
    assert {each.deadline_us for each in slow.applications} == {400}
    assert (slow.duration_us, slow.events) == (scenario.duration_us, scenario.events)


def sizes(workflow: Workflow, count: int) -> list[int]:
    """Return how many requests the first frames have."""
    return [len(frame) for frame in islice(frames_of(workflow, Random(1)), count)]


def test_frames_are_as_crowded_as_a_trace_says() -> None:
    steps = (
        FrameStep(name="patch", network="a", mean=50.0),
        FrameStep(name="face", network="b", mean=2.0, after="patch"),
        FrameStep(name="whole", network="c", mean=1.0, exact=True),
    )
    traced = Workflow(name="w", steps=steps, crowd=(2, 0, 20, 2))
    found = sizes(traced, 300)
    low, high = [mean(found[place::3]) for place in (0, 2)], mean(found[1::3])
    assert low == pytest.approx([1 + 3 * 50 * 2 / 8] * 2, rel=0.1)  # the frame of 0 asks for nothing
    assert high == pytest.approx(1 + 3 * 50 * 20 / 8, rel=0.1)
    assert mean(found) == pytest.approx(1 + 3 * 50, rel=0.05)


def test_a_frame_with_a_small_count_keeps_its_place_in_the_video() -> None:
    steps = (
        FrameStep(name="patch", network="a", mean=50.0),
        FrameStep(name="face", network="b", mean=1.0, after="patch"),
    )
    traced = Workflow(name="w", steps=steps, crowd=(1, 10_000))
    found = list(islice(frames_of(traced, Random(1)), 40))
    assert {len(frame) for frame in found[::2]} == {1}  # of 0.01 in the mean
    assert {frame[0].network for frame in found} == {"a"}
    assert min(len(frame) for frame in found[1::2]) > 100


def test_a_crowd_of_exact_steps_is_refused_as_it_changes_nothing() -> None:
    exact = FrameStep(name="whole", network="c", mean=2.0, exact=True)
    after = FrameStep(name="face", network="b", mean=2.0, after="whole")
    wrongs: list[dict[str, Any]] = [{"crowd": (1, 3)}, {"crowding_permille": 500}]
    for wrong in wrongs:
        with pytest.raises(InvalidProblemError, match="changes nothing here"):
            Workflow(name="w", steps=(exact, after), **wrong)
        assert Workflow(name="w", steps=(exact, STEP), **wrong).name == "w"
    assert Workflow(name="w", steps=(exact, after)).crowd == ()


def test_counts_of_a_crowd_vary_together_around_the_same_mean() -> None:
    steps = tuple(FrameStep(name=name, network=name, mean=20.0) for name in "ab")
    alone = Workflow(name="w", steps=steps)
    together = replace(alone, crowding_permille=500)
    one, other = sizes(alone, 2000), sizes(together, 2000)
    assert mean(one) == pytest.approx(40, rel=0.02)
    assert mean(other) == pytest.approx(40, rel=0.05)
    assert pvariance(one) == pytest.approx(40, rel=0.1)
    assert pvariance(other) == pytest.approx(40 + (0.5 * 40) ** 2, rel=0.15)
    wrongs: list[dict[str, Any]] = [{"crowd": (0, 0)}, {"crowding_permille": -1}]
    for wrong in [*wrongs, {"crowd": (1,), "crowding_permille": 5}]:
        with pytest.raises(InvalidProblemError, match="crowd"):
            replace(alone, **wrong)


def test_more_requests_than_anybody_waits_for_are_refused_with_their_number() -> None:
    def asked(own: Application | Workflow, duration_us: int) -> Scenario:
        if isinstance(own, Workflow):
            return Scenario(name="s", duration_us=duration_us, workflows=(own,))
        return Scenario(name="s", duration_us=duration_us, applications=(own,))

    camera = Application(name="camera", network="n", arrivals=Arrivals(period_us=10_000))
    assert asked(camera, 10**11).duration_us == 10**11
    with pytest.raises(InvalidProblemError, match=r"'camera' asks for about 1.0e\+08 requests in 1e\+06 s"):
        asked(camera, 10**12)
    steps = [FrameStep(name="a", network="n", mean=1000.0)]
    steps += [FrameStep(name=name, network="n", mean=1000.0, after=after) for name, after in ("ba", "cb")]
    assert asked(Workflow(name="w", steps=tuple(steps[:2])), 1).name == "s"
    with pytest.raises(InvalidProblemError, match=r"'w' asks for about 1.0e\+09 requests"):
        asked(Workflow(name="w", steps=tuple(steps)), 1)

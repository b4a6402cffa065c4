"""When requests of scenarios come."""

from __future__ import annotations

from gapless.formulations.coordination.arrivals import at_pace
from gapless.formulations.coordination.scenario import (
    Application,
    Arrivals,
    FrameStep,
    Scenario,
    UnitChange,
    UnitEvent,
    Workflow,
)

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

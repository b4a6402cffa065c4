"""Scenarios on units at work: the same requests as in the simulation, each answered once, frames in order."""

from __future__ import annotations

import pytest

from gapless.executor.coordination.live import LiveRequests
from gapless.formulations.coordination.play import Traffic
from gapless.formulations.coordination.record import Record
from gapless.formulations.coordination.scenario import (
    Application,
    Arrivals,
    FrameStep,
    Scenario,
    UnitChange,
    UnitEvent,
    Workflow,
)
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain


def served(scenario: Scenario) -> Record:
    """Serve a scenario on two units of the fake engine."""
    models = {
        "one": chain(("sleep", 0.002), ("add", 1.0), name="one"),
        "two": chain(("sleep", 0.004), name="two"),
    }
    with coordinator("a", "b", queue=10_000) as opened:
        for name, model in models.items():
            opened.register(model, name)
        setting = opened.setting()
        assert [network.name for network in setting.networks] == ["one", "two"]
        assert all(time is not None for costs in setting.costs.networks for time in costs.layer_us[0])
        traffic = Traffic(setting, scenario)
        inputs = {name: model.sample_inputs(0) for name, model in models.items()}
        return traffic.run(LiveRequests(opened, ("one", "two"), inputs, traffic.ended))


@pytest.mark.slow
def test_applications_and_a_unit_that_leaves() -> None:
    apps = tuple(
        Application(
            name=f"of {name}", network=name, arrivals=Arrivals(period_us=15_000), deadline_us=1_000_000
        )
        for name in ("one", "two")
    )
    events = (
        UnitEvent(at_us=60_000, unit="b", change=UnitChange.LOST),
        UnitEvent(at_us=160_000, unit="b", change=UnitChange.BACK),
    )
    record = served(Scenario(name="s", duration_us=300_000, applications=apps, events=events))
    assert [len(record.of(index)) for index in range(2)] == [20, 20]
    assert all(request.end_us is not None for request in record.requests)
    assert record.share_in_time() == 1.0
    assert len(record.decisions_ns) >= 40
    assert {ran.request for ran in record.ran} == set(range(40))
    (away,) = (one for one in record.away if one.cause == "event")
    assert record.units[away.unit] == "b"
    assert away.end_us is not None
    assert away.end_us - away.start_us >= 100_000


@pytest.mark.slow
def test_frames_follow_each_other_and_wait_for_what_they_need() -> None:
    steps = (
        FrameStep(name="find", network="two", mean=2, exact=True),
        FrameStep(name="look", network="one", mean=2, exact=True, after="find"),
    )
    flow = Workflow(name="flow", steps=steps)
    record = served(Scenario(name="s", duration_us=100_000, workflows=(flow,)))
    assert len(record.frames) >= 2
    assert len(record.requests) == 6 * len(record.frames)
    ends = {request.number: request.end_us or 0.0 for request in record.requests}
    starts = {ran.request: ran.start_us for ran in record.ran}
    for request in record.requests:
        assert all(ends[before] <= starts[request.number] for before in request.after)
    for frame in record.frames:
        assert frame.end_us is not None
        assert frame.end_us > frame.start_us

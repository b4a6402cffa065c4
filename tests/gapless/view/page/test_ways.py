"""The ways of requests: waits and company add up to what the play says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gapless.formulations.history import Interval
from gapless.view.page.played import played
from gapless.view.page.subject import Subject
from gapless.view.page.timeline import timeline
from gapless.view.page.ways import Step, steps_of
from tests.gapless.view.page import samples
from tests.gapless.view.page.markup import texts


def steps(subject: Subject) -> dict[Interval, Step]:
    return steps_of(subject, played(subject)[0])


@pytest.mark.parametrize("name", ["workload", "returning"])
def test_what_company_costs_adds_up_to_the_slowdown(name: str) -> None:
    found = steps(samples.SAMPLES[name]())
    assert any(step.beside for step in found.values())
    for event, step in found.items():
        assert sum(cost_us for _, cost_us in step.beside) == pytest.approx(event.slowdown_us)
        for other, cost_us in step.beside:
            assert other.unit != event.unit
            assert cost_us >= 0
            assert min(event.end_us, other.end_us) > max(event.start_us, other.start_us)


def test_a_loss_is_shared_by_time_together_and_by_what_each_takes() -> None:
    subject = samples.returning()
    tables, streams = subject.problem.tables, subject.deployment.streams
    found = steps(subject)
    step = max(found.values(), key=lambda step: len({other.stream for other, _ in step.beside}))
    assert len({other.stream for other, _ in step.beside}) > 1
    takes = {}
    for other, cost_us in step.beside:
        together_us = min(step.event.end_us, other.end_us) - max(step.event.start_us, other.start_us)
        mine, theirs = (streams[each.stream].chunks[each.chunk] for each in (step.event, other))
        takes[other] = 1000 * cost_us / (together_us * tables.loss_permille(mine, theirs))
    assert list(takes.values()) == pytest.approx([next(iter(takes.values()))] * len(takes))
    assert next(iter(takes.values())) == pytest.approx(1, rel=0.01)


def test_a_request_runs_or_waits_from_its_arrival_to_its_end() -> None:
    subject = samples.returning()
    found = steps(subject)
    for stream in range(len(subject.deployment.streams)):
        own = [step for step in found.values() if step.event.stream == stream]
        spent_us = sum(step.wait_us + step.event.end_us - step.event.start_us for step in own)
        assert spent_us == max(step.event.end_us for step in own)
    assert any(step.wait_us and step.event.chunk for step in found.values())


def test_a_block_of_no_length_has_no_company() -> None:
    subject = samples.returning()
    (trace,) = played(subject)
    event, step = next((event, step) for event, step in steps(subject).items() if step.beside)
    other = step.beside[0][0]
    middle_ns = (event.start_ns + event.end_ns) // 2
    short = replace(other, start_ns=middle_ns, end_ns=middle_ns, engine_ns=())
    found = steps_of(subject, replace(trace, events=tuple(sorted((event, short)))))
    assert [found[each].beside for each in (event, short)] == [(), ()]


@pytest.mark.parametrize("arrivals_us", [(0,) * 5, (50_000,) * 5, (50_000, 0, 55_000, 0, 700_000)])
def test_measured_requests_wait_from_their_arrival(arrivals_us: tuple[int, ...]) -> None:
    """The device is a simulated one which does what was predicted, so the waits are the same."""
    subject = samples.arriving(arrivals_us)
    predicted, measured = (
        {
            (event.stream, event.chunk): (event.start_us, step.wait_us)
            for event, step in steps_of(subject, trace).items()
        }
        for trace in played(subject)
    )
    assert measured == predicted
    waits_us = [wait_us for (_, chunk), (_, wait_us) in measured.items() if not chunk]
    assert any(waits_us)


def test_streams_of_one_network_have_no_company() -> None:
    assert not any(step.beside for step in steps(samples.long()).values())


def test_the_page_and_its_script_know_the_ways() -> None:
    subject = samples.returning()
    found = timeline(subject)
    assert found is not None
    assert found.requests is not None
    rows = {row[1]: row for row in texts(found.requests)}
    assert list(rows) == [stream.name for stream in subject.deployment.streams]
    assert "yolov4 " in rows["bert"][-1]
    data = json.loads(json.dumps(found.data))
    (band,) = data["bands"]
    blocks = [event for unit in data["units"] for event in played(subject)[0].on(unit)]
    for event, lost, wait, beside in zip(blocks, band["lost"], band["waits"], band["beside"], strict=True):
        step = steps(subject)[event]
        assert (lost, wait) == (event.slowdown_us, step.wait_us)
        assert [blocks[place] for place in beside[::2]] == [other for other, _ in step.beside]

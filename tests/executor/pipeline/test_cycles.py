"""Units with several chunks of one stream: their workers follow its cycle, whatever comes late."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gapless.executor.pipeline.verify import References, verify
from gapless.executor.runner import Budget
from gapless.formulations.cycles import cycle_of
from gapless.formulations.streams import Stream
from tests.executor.pipeline.fakes import chain
from tests.executor.pipeline.test_pipeline import check_map, frames, opened, stream

UNITS, TIMES_US = "abacab", (900_000, 400_000, 300_000, 700_000, 200_000, 500_000)
"""So long that nobody loses patience in a test."""

MODEL = chain("add", ("scale", 2.0), "add", "add", ("scale", 3.0), "add", name="net")


def in_cycle(slots: int | None = None) -> Stream:
    plain = stream("net", *((stop, unit) for stop, unit in enumerate(UNITS, start=1)), slots=slots)
    return replace(plain, cycle=cycle_of(TIMES_US, list(UNITS)))


@pytest.mark.parametrize("slots", [None, 1, 2, 12])
def test_numbers_come_right_and_in_order_with_few_slots_and_many(slots: int | None) -> None:
    with opened([MODEL], in_cycle(slots)) as pipeline:
        check_map(pipeline, [MODEL])
        assert pipeline.measure(Budget(requests=20, warm_up_requests=3)).requests == 20
        assert verify(pipeline, References({"net": MODEL})).worst_error == 0


def test_workers_serve_in_the_order_of_the_cycle() -> None:
    played = in_cycle()
    assert played.cycle is not None
    turns = played.cycle.order(played.slots).turns
    assert any(lag for lag, _ in turns)  # by number alone the next request would wait for the one before
    with opened([MODEL], played) as pipeline:
        trace = pipeline.trace(requests=30)
    for unit in trace.units:
        served = [(e.request + turns[e.chunk][0], turns[e.chunk][1]) for e in trace.events if e.unit == unit]
        assert len(served) == 30 * UNITS.count(unit)
        assert served == sorted(served)


def test_a_worker_is_lost_and_no_request_is_lost_or_doubled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GAPLESS_TEST_MARK", str(tmp_path / "mark"))
    model = chain("same", "same", ("crash once", 6.0), "add", "same", "add", name="net")
    with opened([model], in_cycle(), restarts=1) as pipeline:
        found = list(pipeline.map(frames(40)))
    assert [float(next(iter(output.values()))[0]) for output in found] == [number + 3 for number in range(40)]
    assert (tmp_path / "mark").exists()

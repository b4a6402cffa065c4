"""Units with several chunks of one stream: their workers follow its cycle, whatever comes late."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.executor.engines.registry import get_engine
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.verify import References, verify
from gapless.executor.progress import Step
from gapless.executor.runner import Budget
from gapless.formulations.cycles import cycle_of
from gapless.formulations.deployment import Deployment
from gapless.formulations.streams import Stream
from tests.executor.graph.models import load, residual
from tests.executor.pipeline.fakes import chain
from tests.executor.pipeline.test_pipeline import PLATFORM, check_map, frames, opened, stream

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


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["onnxruntime", "mnn"])
def test_of_300_requests_none_is_lost_or_doubled_when_a_real_worker_is_killed(
    tmp_path: Path, engine: str
) -> None:
    pytest.importorskip({"mnn": "MNN"}.get(engine, engine))
    model = load(residual(2), tmp_path, name="net")
    layers = len(model.network.layers)
    units = [UNITS[at % len(UNITS)] for at in range(layers)]  # a chunk per layer
    plain = stream("net", *((stop, unit) for stop, unit in enumerate(units, start=1)))
    played = replace(plain, cycle=cycle_of([2_000 + 100 * at for at in range(layers)], units))
    told: list[Step] = []
    samples = [model.sample_inputs(seed) for seed in range(23)]
    right = [model.reference(sample)["b2"] for sample in samples]
    deployment = Deployment(streams=(played,))
    with Pipeline(
        deployment, {"net": model}, PLATFORM, get_engine(engine), restarts=2, report=told.append
    ) as pipeline:
        found = []
        for number, outputs in enumerate(pipeline.map(samples[number % 23] for number in range(300))):
            found.append(outputs["b2"])
            if number in (70, 200):
                os.kill(pipeline._workers().pids[number % 3], signal.SIGKILL)
    assert [step.text.count("killed by SIGKILL") for step in told] == [1, 1]
    assert len(found) == 300
    for number, output in enumerate(found):
        assert np.allclose(output, right[number % 23], atol=1e-4), number

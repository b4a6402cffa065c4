"""The runner: which pipelines are open, and that it keeps the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget, Runner
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import ExecutionError, InvalidInputError, UnitLostError
from tests.executor.pipeline.fakes import FakeEngine, chain
from tests.executor.pipeline.test_pipeline import PLATFORM, left, stream

pytestmark = pytest.mark.slow


def deployment(*units: str) -> Deployment:
    return Deployment(streams=(stream("net", *((index + 1, unit) for index, unit in enumerate(units))),))


def test_it_is_a_runner() -> None:
    models = {"net": chain("add", "add", name="net")}
    with PipelineRunner(models, PLATFORM, FakeEngine(), device="this one") as pipelines:
        runner: Runner = pipelines
        measured = runner.measure(deployment("a", "b"), Budget(requests=3))
        assert (measured.requests, measured.device) == (3, "this one")
        assert len(runner.trace(deployment("a", "b"), requests=4).events) == 8
        checked = runner.verify(deployment("b", "c"))
        assert checked is not None
        assert (checked.requests, checked.worst_error, checked.tolerance) == (3, 0, 1e-3)


def test_the_latest_pipelines_stay_open() -> None:
    before = left()
    models = {"net": chain("add", "add", name="net")}
    first, second, third = deployment("a", "b"), deployment("b", "a"), deployment("a", "c")
    with PipelineRunner(models, PLATFORM, FakeEngine(), max_open=2) as runner:
        one, two = runner.pipeline(first), runner.pipeline(second)
        assert runner.pipeline(first) is one
        runner.measure(third, Budget(requests=1))
        assert one.is_open
        assert not two.is_open
        assert len(left()[2] - before[2]) == 4
    assert not one.is_open
    assert left() == before


def test_a_pipeline_that_failed_is_opened_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPLESS_TEST_MARK", str(tmp_path / "mark"))
    start = float(chain("same").sample_inputs(0)["x"][0])
    models = {"net": chain("same", ("crash once", start), name="net"), "bad": chain("fail", name="bad")}
    with PipelineRunner(models, PLATFORM, FakeEngine()) as runner:
        with pytest.raises(UnitLostError):
            runner.measure(deployment("a", "b"), Budget(requests=1))
        assert runner.measure(deployment("a", "b"), Budget(requests=1)).requests == 1
        for _ in range(2):
            with pytest.raises(ExecutionError, match="the fake engine cannot"):
                runner.verify(Deployment(streams=(stream("bad", (1, "a")),)))


def test_at_least_one_must_be_open() -> None:
    with pytest.raises(InvalidInputError, match="max_open is 0"):
        PipelineRunner({}, PLATFORM, FakeEngine(), max_open=0)

"""What goes wrong while a pipeline runs: it is named, and nothing is left behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gapless.executor.pipeline import crew
from gapless.executor.pipeline.crew import Crew
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.pipeline.shared import Hop
from gapless.executor.progress import Step
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import EngineUnavailableError, ExecutionError, PlacementError, UnitLostError
from gapless.formulations.hardware import Platform, ProcessingUnit
from tests.executor.pipeline.fakes import FakeEngine, chain, platform
from tests.executor.pipeline.test_pipeline import PLATFORM, frames, left, opened, stream
from tests.processes import alive, soon


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = left()
    yield
    soon(lambda: left() == before, within_s=5.0)  # what was killed may take a moment to be gone
    assert left() == before


@pytest.fixture
def kill_worker() -> Callable[[], None]:
    """Return what kills a process that the test has started; others of this process serve other tests."""
    before = left()[2]

    def kill() -> None:
        os.kill(int(min(left()[2] - before)), signal.SIGKILL)

    return kill


def test_a_worker_that_dies_is_named_with_its_request() -> None:
    model = chain("add", "crash", name="net")
    with opened([model], stream("net", (1, "a"), (2, "b"))) as pipeline:
        with pytest.raises(UnitLostError) as caught:
            pipeline.measure(Budget(requests=5))
        text = str(caught.value)
        assert "the worker of unit 'b'" in text
        assert "killed by SIGKILL" in text
        assert "was running request 0 of 'net' (chunk 1, layers 1 to 1)" in text
        assert not pipeline.is_open
        with pytest.raises(ExecutionError, match="is closed"):
            pipeline.measure(Budget(requests=1))


def test_a_pipe_that_closes_before_the_news_of_a_death_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    listen, take = Crew._listen, Crew.take

    def later(crew: Crew, index: int) -> None:
        if asked:
            listen(crew, index)

    def noted(crew: Crew, stream: int) -> Hop | None:
        asked.append(stream)
        return take(crew, stream)

    model = chain("crash", name="net")
    with opened([model], stream("net", (1, "a"))) as pipeline:
        monkeypatch.setattr(Crew, "_listen", later)
        monkeypatch.setattr(Crew, "take", noted)
        with pytest.raises(UnitLostError, match=r"the worker of unit 'a'.*killed by SIGKILL"):
            list(pipeline.map(frames(2)))
    assert asked


def test_a_worker_that_is_killed_between_runs_is_missed(kill_worker: Callable[[], None]) -> None:
    model = chain("add", "add", name="net")
    with opened([model], stream("net", (1, "a"), (2, "b"))) as pipeline:
        assert pipeline.measure(Budget(requests=2)).requests == 2
        kill_worker()
        with pytest.raises(UnitLostError, match="killed by SIGKILL"):
            pipeline.measure(Budget(requests=2))


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["freeze", "sleep"])
def test_a_worker_that_hangs_is_named_and_ended(fault: str) -> None:
    model = chain("add", (fault, 1000.0), "add", name="net")
    with opened([model], stream("net", (1, "a"), (2, "b"), (3, "c")), stall_limit_s=2) as pipeline:
        with pytest.raises(UnitLostError, match="no progress for 2 s") as caught:
            pipeline.measure(Budget(requests=5))
        assert "the worker of unit 'b'" in str(caught.value)
        assert "was running request 0 of 'net' (chunk 1, layers 1 to 1)" in str(caught.value)


@pytest.mark.slow
def test_a_worker_that_stops_while_it_waits_is_named() -> None:
    model = chain("add", "add", name="net")
    with opened([model], stream("net", (1, "a"), (2, "b")), stall_limit_s=2) as pipeline:
        results = pipeline.map(frames(50))
        next(results)
        victim = pipeline._crew._workers[1].pid  # type: ignore[union-attr]
        os.kill(victim, signal.SIGSTOP)
        with pytest.raises(UnitLostError, match=r"unit 'b'.* no progress .* 'net' \(chunk 1"):
            list(results)


@pytest.mark.slow
def test_a_slow_chunk_is_no_hang() -> None:
    model = chain("add", ("sleep", 0.6), name="net")
    with opened([model], stream("net", (1, "a"), (2, "b")), stall_limit_s=3) as pipeline:
        measured = pipeline.measure(Budget(requests=6, warm_up_requests=0))
    assert measured.seconds > 3  # all of them together take longer than one may


@pytest.mark.slow
def test_a_user_who_takes_his_time_is_no_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    away_s = 0.0
    monkeypatch.setattr(crew, "monotonic", lambda: time.monotonic() + away_s)
    model = chain("add", "add", name="net")
    with opened([model], stream("net", (1, "a"), (2, "b"))) as pipeline:
        for _ in pipeline.map(frames(4)):
            away_s += 10 * crew.FIRST_TASK_LIMIT_S


def test_what_an_engine_raises_is_raised_with_the_request() -> None:
    with (
        opened([chain("add", "fail", name="net")], stream("net", (1, "a"), (2, "b"))) as pipeline,
        pytest.raises(ExecutionError, match=r"request 0 of 'net' \(chunk 1, .* the fake engine cannot"),
    ):
        pipeline.measure(Budget(requests=5))
    with (
        opened([chain("stumble", name="net")], stream("net", (1, "a"))) as pipeline,
        pytest.raises(ExecutionError, match=r"request 0 of 'net' .* ZeroDivisionError: by design"),
    ):
        list(pipeline.map(frames(3)))


def test_a_session_that_does_not_open_closes_everything() -> None:
    model = chain("add", "absent", name="net")
    with pytest.raises(EngineUnavailableError, match="not here"):
        opened([model], stream("net", (1, "a"), (2, "b")))


def test_a_unit_that_is_not_there_closes_everything() -> None:
    model = chain("add", "add", name="net")
    deployment = Deployment(streams=(stream("net", (1, "a"), (2, "far")),))
    units = Platform(name="p", units=(*platform("a").units, ProcessingUnit(name="far", cores=(4000,))))
    with pytest.raises(PlacementError, match="'far' needs the cores"):
        Pipeline(deployment, {"net": model}, units, FakeEngine())


@pytest.mark.slow
def test_lost_workers_are_replaced_and_no_request_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill_worker: Callable[[], None]
) -> None:
    monkeypatch.setenv("GAPLESS_TEST_MARK", str(tmp_path / "mark"))
    model = chain("same", ("crash once", 6.0), "add", name="net")
    told: list[Step] = []
    with Pipeline(
        Deployment(streams=(stream("net", (1, "a"), (2, "b"), (3, "a"), slots=4),)),
        {"net": model},
        PLATFORM,
        FakeEngine(),
        restarts=1,
        report=told.append,
    ) as pipeline:
        found = [float(output["t2"][0]) for output in pipeline.map(frames(12))]
        assert found == [number + 2 for number in range(12)]
        assert len(told) == 1
        assert "killed by SIGKILL" in told[0].text
        assert "request 5 of 'net'" in told[0].text
        assert "started anew" in told[0].text
        assert next(iter(pipeline.map(frames(1))))["t2"][0] == 2
        kill_worker()
        with pytest.raises(UnitLostError):
            list(pipeline.map(frames(3)))


@pytest.mark.slow
def test_replicas_survive_a_lost_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPLESS_TEST_MARK", str(tmp_path / "mark"))
    model = chain(("crash once", 9.0), name="net")
    streams = [stream(unit, (1, unit), network="net") for unit in "ab"]
    with opened([model], *streams, restarts=1) as pipeline:
        assert [float(output["t0"][0]) for output in pipeline.map(frames(20))] == list(range(1, 21))


@pytest.mark.slow
def test_a_measurement_is_taken_again_with_new_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAPLESS_TEST_MARK", str(tmp_path / "mark"))
    model = chain("same", ("crash once", float(chain("same").sample_inputs(0)["x"][0])), name="net")
    with opened([model], stream("net", (1, "a"), (2, "b")), restarts=1) as pipeline:
        assert pipeline.measure(Budget(requests=4)).requests == 4


SCRIPT = """
import os, sys, time
from gapless.executor.runner import Budget
from tests.executor.pipeline.fakes import chain
from tests.executor.pipeline.test_pipeline import opened, stream
from tests.processes import workers

with opened([chain("add", ("sleep", 0.01), name="net")], stream("net", (1, "a"), (2, "b"))) as pipeline:
    print(*workers(os.getpid()), flush=True)
    pipeline.measure(Budget(seconds=60))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_parent(number: signal.Signals) -> None:
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(workers) == 2
        time.sleep(0.1)
        parent.send_signal(number)
        _, errors = parent.communicate(timeout=60)
        if number is signal.SIGINT:
            assert errors.strip().endswith("KeyboardInterrupt")
    assert soon(lambda: not any(map(alive, workers)), within_s=10)


def test_too_few_descriptors_are_an_error_of_ours() -> None:
    model = chain(*["add"] * 60, name="net")
    parts = [(index + 1, "abc"[index % 3]) for index in range(60)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        with pytest.raises(ExecutionError, match="cannot be started: Too many open files"):
            opened([model], stream("net", *parts))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_pipeline_can_be_closed_in_the_middle() -> None:
    model = chain("add", "add", name="net")
    pipeline = opened([model], stream("net", (1, "a"), (2, "b")))
    results = pipeline.map(frames(9))
    next(results)
    pipeline.close()
    pipeline.close()
    with pytest.raises(ExecutionError, match="is closed"):
        list(results)


def test_too_much_memory_is_refused() -> None:
    model = chain("add", "add", name="net", length=1 << 40)
    with pytest.raises(ExecutionError, match="fewer task slots"):
        opened([model], stream("net", (1, "a"), (2, "b")))

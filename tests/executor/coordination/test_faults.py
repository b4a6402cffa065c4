"""Units leave and return, workers are killed, engines fail: nothing is lost, nothing is answered twice."""

from __future__ import annotations

import errno
import os
import random
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.coordination.restarts import Restarts
from gapless.executor.coordination.seat import Run
from gapless.executor.coordination.tally import Fate
from gapless.executor.workers import Worker
from gapless.formulations.coordination.simulation import Late
from gapless.formulations.errors import (
    DroppedRequestError,
    EngineUnavailableError,
    ExecutionError,
    InvalidInputError,
    PlacementError,
    RefusedRequestError,
    UnitLostError,
)
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.solvers.coordination.dynamic import LeastSlack
from tests.executor.coordination.coordinators import coordinator, typed
from tests.executor.pipeline.fakes import FakeEngine, FakeModel, chain
from tests.processes import many_descriptors, soon

MODEL = chain(("add", 1.0), ("sleep", 0.002), ("scale", 2.0), name="net")


def answers_are_right(model: FakeModel, opened: Coordinator, count: int) -> None:
    """Submit requests in pairs, and look at every answer."""
    futures = [opened.submit("net", model.sample_inputs(seed)) for seed in range(count)]
    for seed, future in enumerate(futures):
        served = future.result(timeout=60)
        assert np.allclose(served.outputs["t2"], model.reference(model.sample_inputs(seed))["t2"])
        assert [(c.start, c.stop) for c in served.chunks] == _consecutive(served.chunks)


def _consecutive(chunks: tuple[object, ...]) -> list[tuple[int, int]]:
    found = [(c.start, c.stop) for c in chunks]  # type: ignore[attr-defined]
    assert found[0][0] == 0
    assert found[-1][1] == 3
    assert all(a[1] == b[0] for a, b in pairwise(found))
    return found


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_its_request_runs_again() -> None:
    with coordinator("a", "b") as opened:
        opened.register(MODEL, "net", borders=(1, 2))
        futures = [opened.submit("net", MODEL.sample_inputs(seed)) for seed in range(30)]
        os.kill(opened.pids["a"], signal.SIGKILL)
        assert all(future.result(timeout=60) for future in futures)
        assert soon(lambda: opened.statistics().units[0].available)
        answers_are_right(MODEL, opened, 10)
        statistics = opened.statistics()
    assert statistics.units[0].restarts == 1
    assert statistics.total(Fate.ANSWERED) == 40


@pytest.mark.slow
def test_a_worker_is_replaced_also_where_many_files_are_open() -> None:
    """Its pipes then have numbers that `select.select` refuses, which ended the coordinator for good."""
    with coordinator("a", "b") as opened, many_descriptors():
        opened.register(MODEL, "net")
        os.kill(opened.pids["a"], signal.SIGKILL)
        assert soon(lambda: opened.statistics().units[0].restarts == 1)
        assert soon(lambda: opened.statistics().units[0].available)
        answers_are_right(MODEL, opened, 4)
        assert opened.is_open


@pytest.mark.slow
def test_units_that_leave_and_return_under_load() -> None:
    drawn = random.Random(7)
    with coordinator("a", "b") as opened:
        opened.register(MODEL, "net", borders=(1, 2))
        futures = []
        for seed in range(60):
            futures.append(opened.submit("net", MODEL.sample_inputs(seed)))
            unit = drawn.choice("ab")
            (opened.withdraw if drawn.random() < 0.5 else opened.restore)(unit)
            opened.restore("b" if unit == "a" else "a")
        for unit in "ab":
            opened.restore(unit)
        for seed, future in enumerate(futures):
            served = future.result(timeout=60)
            assert np.allclose(served.outputs["t2"], MODEL.reference(MODEL.sample_inputs(seed))["t2"])
        assert opened.statistics().total(Fate.ANSWERED) == 60


@pytest.mark.slow
def test_what_a_withdrawn_unit_runs_is_put_back_at_once() -> None:
    model = chain(("sleep", 0.1), name="net")
    with coordinator("a", "b") as opened:
        opened.register(model, "net")
        future = opened.submit("net", model.sample_inputs(0))
        assert soon(lambda: any(seat.task for seat in opened._loop.seats))
        busy = next(seat.unit.name for seat in opened._loop.seats if seat.task)
        opened.withdraw(busy)
        served = future.result(timeout=60)
        assert [chunk.unit for chunk in served.chunks] == ["b" if busy == "a" else "a"]
        found = next(unit for unit in opened.statistics().units if unit.name == busy)
        assert not found.available
        assert found.why == ("withdrawn",)


def test_what_nothing_else_can_run_ends_where_it_is() -> None:
    model = chain(("sleep", 0.05), name="net")
    with coordinator("a") as opened:
        opened.register(model)
        futures = [opened.submit("net", model.sample_inputs(seed)) for seed in range(2)]
        assert soon(lambda: any(seat.task for seat in opened._loop.seats))
        opened.withdraw("a")
        opened.withdraw("a", why="hot")
        with pytest.raises(RefusedRequestError, match="without the units 'a'"):
            opened.submit("net", model.sample_inputs(0))
        assert futures[0].result(timeout=60)
        opened.restore("a")
        time.sleep(0.02)
        assert not futures[1].done()  # it is still too hot
        opened.restore("a", why="hot")
        assert futures[1].result(timeout=60)


def test_a_worker_that_cannot_be_replaced_is_given_up() -> None:
    model = chain(("sleep", 0.05), name="net")
    with coordinator("a", restarts=0) as opened:
        opened.register(model)
        futures = [opened.submit("net", model.sample_inputs(seed)) for seed in range(3)]
        os.kill(opened.pids["a"], signal.SIGKILL)
        for number, future in enumerate(futures, start=1):
            with pytest.raises(
                UnitLostError, match=rf"request {number} of 'net' cannot be run any more.*SIGK"
            ):
                future.result(timeout=60)
        assert not opened.can_serve("net")
        assert not opened.alive
        assert opened.outage is not None
        assert opened.outage.for_good
        with pytest.raises(RefusedRequestError):
            opened.submit("net", model.sample_inputs(0))
        assert opened.statistics().total(Fate.FAILED) == 3


def test_losses_are_counted_in_a_window_and_starts_that_fail_wait_longer_each_time() -> None:
    now_s = [1000.0]
    restarts = Restarts(3, clock=lambda: now_s[0])
    for _ in range(50):  # once in 21 s, for ever: always at once
        assert restarts.wait_s(worked=True) == 0.0
        restarts.begun()
        now_s[0] += 21.0
    now_s[0] += 60.0
    for _ in range(3):
        assert restarts.wait_s(worked=True) == 0.0
        restarts.begun()
        now_s[0] += 1.0
    assert restarts.wait_s(worked=True) == 57.0  # until the first of them is a minute ago
    now_s[0] += 1000.0
    waits_s = [restarts.wait_s(worked=False) for _ in range(2000)]
    assert waits_s[:8] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    assert set(waits_s[8:]) == {30.0}
    assert restarts.wait_s(worked=True) == 0.0
    assert Restarts(0).wait_s(worked=True) is None


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Return what the next starts of workers raise, which are tried again soon."""
    errors: list[Exception] = []

    class Failing(Worker):
        def __init__(self, *words: Any, **options: Any) -> None:
            if errors:
                raise errors.pop(0)
            super().__init__(*words, **options)

    monkeypatch.setattr("gapless.executor.coordination.workers.Worker", Failing)
    monkeypatch.setattr("gapless.executor.coordination.restarts.FIRST_WAIT_S", 0.001)
    return errors


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)),
        MemoryError(),
        RuntimeError("can't start new thread"),
    ],
)
def test_a_start_that_fails_is_tried_again(
    error: Exception, fails: list[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    with coordinator("a") as opened:
        opened.register(MODEL, "net")
        fails += [error] * 5
        os.kill(opened.pids["a"], signal.SIGKILL)
        assert soon(lambda: opened.statistics().units[0].losses == 6)
        assert soon(lambda: opened.statistics().units[0].available)
        answers_are_right(MODEL, opened, 4)
        assert opened.alive
        assert opened.statistics().units[0].restarts == 1
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len([text for text in told if text.startswith("unit 'a': ")]) == 6
    assert "killed by SIGKILL" in told[0]
    assert told[0].endswith("; another one starts")
    assert f"no worker can be started: {error}; another one starts in 0.001 s" in told[1]


def test_a_unit_that_was_lost_comes_back(
    fails: list[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests are refused while there is nothing to serve with, and answered when it is back."""
    monkeypatch.setattr("gapless.executor.coordination.seat.SOON_S", 0.0)
    with coordinator("a") as opened:
        opened.register(MODEL, "net")
        fails += [OSError(errno.EMFILE, os.strerror(errno.EMFILE))] * 5
        os.kill(opened.pids["a"], signal.SIGKILL)
        assert soon(lambda: opened.outage is not None)
        assert soon(lambda: opened.statistics().units[0].available)
        assert opened.outage is None
        assert opened.alive
        answers_are_right(MODEL, opened, 4)
    told = [record.getMessage() for record in caplog.records]
    assert "no unit is left to serve with" in told
    assert told[-1] == "unit 'a' works again"


def test_a_worker_whose_start_fails_leaves_no_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    pipes, made = os.pipe, list[int]()

    def pipe() -> tuple[int, int]:
        made.append(len(made))
        if len(made) == 2:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return pipes()

    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr("os.pipe", pipe)
    with pytest.raises(OSError, match="Too many open files"):
        Worker(ProcessingUnit(name="a"), "nobody:serve", {})
    assert os.listdir("/proc/self/fd") == before


def test_a_coordinator_that_fails_says_so(caplog: pytest.LogCaptureFixture) -> None:
    def wrong() -> None:
        int("?")

    with coordinator("a") as opened:
        opened.register(MODEL, "net")
        opened._loop._leave_word(wrong)
        assert soon(lambda: not opened.alive)
        assert opened.outage is not None
        assert opened.outage.for_good
        assert opened.outage.why == "ValueError: invalid literal for int() with base 10: '?'"
    assert "the coordinator has ended: ValueError: invalid literal" in caplog.text


def test_a_request_that_was_admitted_just_before_the_loss_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with coordinator("a", restarts=0) as opened:
        opened.register(MODEL)
        os.kill(opened.pids["a"], signal.SIGKILL)
        assert soon(lambda: not opened.can_serve("net"))
        monkeypatch.setattr(opened._loop, "can_serve", lambda _: True)  # as it was before
        with pytest.raises(UnitLostError, match=r"request 1 of 'net' cannot be run any more.*SIGKILL"):
            opened.submit("net", MODEL.sample_inputs(0)).result(timeout=60)


@pytest.mark.slow
def test_what_is_left_of_a_request_cannot_run_any_more() -> None:
    model = typed(chain(("sleep", 0.3), "add", name="net"), "Conv", "Odd")
    with coordinator("a", "b", restarts=0) as opened:
        opened.register(model, cannot={"a": ["Odd"], "b": ["Conv"]})
        future = opened.submit("net", model.sample_inputs(0))
        assert soon(lambda: isinstance(opened._loop.seats[0].task, Run))
        os.kill(opened.pids["b"], signal.SIGKILL)
        with pytest.raises(UnitLostError, match=r"request 1 of 'net' cannot be run any more.*SIGKILL"):
            future.result(timeout=60)


def test_a_request_that_kills_a_worker_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPLESS_TEST_MARK", str(tmp_path / "mark"))
    model = chain("add", ("crash once", 6.0), name="net")
    with coordinator("a", "b") as opened:
        opened.register(model, "net")
        assert opened.run("net", {"x": np.full(16, 5.0, np.float32)}).outputs["t1"][0] == 6.0
        assert sum(unit.restarts for unit in opened.statistics().units) == 1


def test_a_request_that_fails_everywhere_is_answered_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAPLESS_TEST_MARK", str(tmp_path / "no such folder" / "mark"))
    model = chain("add", ("crash once", 6.0), "add", name="net")
    with coordinator("a", "b") as opened:
        opened.register(model, "net")
        with pytest.raises(ExecutionError, match=r"request 1 of 'net' failed 3 times, .* FileNotFoundError"):
            opened.run("net", {"x": np.full(16, 5.0, np.float32)})
        answers_are_right(model, opened, 4)
        statistics = opened.statistics()
    assert statistics.total(Fate.FAILED) == 1
    assert sum(unit.restarts for unit in statistics.units) == 0


def test_numbers_that_an_engine_refuses_are_a_mistake_of_the_request() -> None:
    with coordinator("a") as opened:
        opened.register(chain("add", ("refuse", 6.0), name="net"), "net")
        assert opened.run("net", {"x": np.full(16, 2.0, np.float32)}).outputs["t1"][0] == 3.0
        with pytest.raises(InvalidInputError, match=r"request 2 of 'net' cannot be computed: 6\.0 is too"):
            opened.run("net", {"x": np.full(16, 5.0, np.float32)})


def test_what_cannot_be_opened_leaves_the_others_as_they_are() -> None:
    with coordinator("a", "b") as opened:
        opened.register(MODEL, "net")
        with pytest.raises(EngineUnavailableError, match="not here"):
            opened.register(chain("absent", name="gone"), "gone")
        assert "gone" not in opened.registered
        answers_are_right(MODEL, opened, 4)
        opened.register(chain("add", name="more"), "more")
        assert opened.run("more", MODEL.sample_inputs(0))


def test_units_that_are_not_there_are_named() -> None:
    far = Platform(name="p", units=(ProcessingUnit(name="far", cores=(4000,)),))
    with pytest.raises(PlacementError, match="'far' needs the cores"):
        Coordinator(far, FakeEngine(), LeastSlack())


def test_what_waits_for_a_unit_that_is_away_is_dropped_in_time() -> None:
    with coordinator("a", late=Late.DROP) as opened:
        opened.register(chain(("sleep", 0.05), name="net"))
        first = opened.submit("net", MODEL.sample_inputs(0))
        assert soon(lambda: any(seat.task for seat in opened._loop.seats))
        second = opened.submit("net", MODEL.sample_inputs(0), deadline_us=300_000)
        opened.withdraw("a")
        assert first.result(timeout=60)
        with pytest.raises(DroppedRequestError):
            second.result(timeout=60)


@pytest.mark.slow
def test_a_worker_that_is_killed_while_a_network_is_registered() -> None:
    with coordinator("a", "b") as opened:
        opened.register(MODEL, "net")
        with pytest.raises(UnitLostError, match="killed by SIGKILL"):
            opened.register(chain("add", "crash", name="bad"), "bad")
        answers_are_right(MODEL, opened, 6)
        assert soon(lambda: all(unit.available for unit in opened.statistics().units))
        opened.register(chain("add", name="more"), "more")
        assert opened.run("more", MODEL.sample_inputs(0))


def test_what_a_resting_unit_runs_goes_on_there() -> None:
    model = chain(("sleep", 0.1), name="net")
    with coordinator("a", "b") as opened:
        opened.register(model, "net")
        future = opened.submit("net", model.sample_inputs(0))
        assert soon(lambda: any(seat.task for seat in opened._loop.seats))
        busy = next(seat.unit.name for seat in opened._loop.seats if seat.task)
        opened.withdraw(busy, why="rests", finish=True)
        assert [chunk.unit for chunk in future.result(timeout=60).chunks] == [busy]
        other = opened.run("net", model.sample_inputs(0))
        assert [chunk.unit for chunk in other.chunks] == ["b" if busy == "a" else "a"]

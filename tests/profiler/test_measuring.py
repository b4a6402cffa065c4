"""Measuring in worker processes: inputs arrive, errors come back, load starts and ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from gapless.executor.machine.counters import CounterEvent
from gapless.executor.workers import Link, Message
from gapless.formulations.errors import PlacementError, ProfilingError, UnitLostError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.profiler.feed import Feed
from gapless.profiler.measuring import PreparedPiece, WorkerBench
from gapless.profiler.records import effort_on
from gapless.profiler.sampling import Effort
from gapless.profiler.slowdown.contention.features import EVENTS
from gapless.profiler.worker import Workbench, _count
from tests.processes import alive

from .fakes import FakeEngine, FakeModel, FakeSession

CORE = min(os.sched_getaffinity(0))
ONE_CORE = Platform(
    name="one core",
    units=tuple(ProcessingUnit(name=name, cores=(CORE,), threads=1) for name in ("a", "b", "c")),
)
EFFORT = Effort(min_repetitions=5, min_seconds=0.0, warm_up_repetitions=1)
ROLE = "tests.profiler.roles:serve_fake"


@pytest.fixture
def model() -> FakeModel:
    return FakeModel([8, 300, 2, 5, 6])


@pytest.fixture
def bench(model: FakeModel) -> Iterator[WorkerBench]:
    feed = Feed(model, seed=7)
    with WorkerBench(ONE_CORE, feed, role=ROLE) as opened:
        yield opened
    feed.close()


def prepared(model: FakeModel, start: int, stop: int) -> PreparedPiece:
    (piece,) = model.pieces(start, stop)
    (artifact,) = FakeEngine().prepare([piece])
    return PreparedPiece(piece=piece, artifact=artifact)


def test_a_piece_is_timed_with_its_receipt(model: FakeModel, bench: WorkerBench) -> None:
    timing = bench.timing("a", prepared(model, 1, 3), effort=EFFORT)
    assert timing.run.count == 5
    assert timing.busy.typical_us >= timing.run.least_us > 0
    assert timing.receipt.granted_cores == (CORE,)


def test_pieces_get_the_tensors_of_a_real_run(model: FakeModel, bench: WorkerBench) -> None:
    for start, expected in ((0, 7.0), (1, 1.0), (3, 3.0), (2, 2.0)):
        (operator,) = bench.operators("a", prepared(model, start, 4), repetitions=1) or ()
        assert operator.time_us == expected  # the fake tells what its first input holds


def test_inputs_that_are_announced_are_computed_together(model: FakeModel) -> None:
    feed = Feed(model, seed=0)
    feed.announce(piece for start in range(4) for piece in model.pieces(start, 4))
    assert model.references == 0
    for start in range(4):
        feed.places(*model.pieces(start, 4))
    feed.close()
    assert model.references == 1


def test_a_tensor_that_the_model_does_not_tell_is_named(
    model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(model, seed=0)
    (piece,) = model.pieces(0, 1)
    lost = replace(piece, inputs=(replace(piece.inputs[0], name="t3"),))
    monkeypatch.setattr(model, "reference", lambda inputs, **more: {})
    with pytest.raises(ProfilingError, match="'t3'"):
        feed.places(lost)
    feed.close()


@pytest.mark.slow
def test_units_run_pieces_beside_it(model: FakeModel, bench: WorkerBench) -> None:
    effort = replace(EFFORT, min_seconds=0.5)  # all three share a core: the load needs its turn
    load = {"b": prepared(model, 0, 4), "c": prepared(model, 3, 4)}
    timing = bench.timing("a", prepared(model, 0, 4), effort=effort, beside=load)
    assert timing.receipt.unit == "a"
    assert len(timing.load_shares) == 2
    assert all(share > 0 for share in timing.load_shares)
    assert bench.timing("b", prepared(model, 0, 4), effort=EFFORT).receipt.unit == "b"


@pytest.mark.slow
def test_a_piece_that_is_refused_leaves_the_worker_at_work(model: FakeModel, bench: WorkerBench) -> None:
    bench.timing("a", prepared(model, 0, 1), effort=EFFORT)
    for beside in ({}, {"b": prepared(model, 0, 2)}):
        with pytest.raises(PlacementError, match="not for this unit"):
            bench.timing("a", prepared(model, 0, 2), effort=EFFORT, beside=beside)
    assert bench.timing("a", prepared(model, 0, 1), effort=EFFORT).run.count == 5


@pytest.mark.slow
def test_a_worker_that_dies_is_missed_and_replaced(model: FakeModel, bench: WorkerBench) -> None:
    for start, stop, reason in ((0, 3, "exit code 9"), (1, 2, "ZeroDivisionError: a mistake")):
        with pytest.raises(UnitLostError, match=f"'a' .*{reason}"):
            bench.timing("a", prepared(model, start, stop), effort=EFFORT)
        assert bench.timing("a", prepared(model, 0, 1), effort=EFFORT).run.count == 5


def test_one_of_several_workers_is_timed_by_means_over_turns_on_its_cores(model: FakeModel) -> None:
    (unit, *_), feed = ONE_CORE.units, Feed(model, seed=7)
    one = replace(unit, name="a.2", worker_of="a")
    with WorkerBench(replace(ONE_CORE, units=(unit, one)), feed, role=ROLE) as bench:
        piece, effort = prepared(model, 1, 3), replace(EFFORT, min_repetitions=50)
        runs, block = (bench.timing(name, piece, effort=effort).busy for name in ("a", "a.2"))
    feed.close()
    assert runs.least_us < runs.p95_us
    assert block.least_us == block.p95_us == block.typical_us  # these few runs are one block
    assert effort_on(unit, EFFORT) == EFFORT
    assert effort_on(one, EFFORT).min_seconds == pytest.approx(0.24)


def test_nothing_is_left_behind(model: FakeModel) -> None:
    before = set(os.listdir("/proc/self/fd"))
    feed = Feed(model, seed=0)
    with WorkerBench(ONE_CORE, feed, role=ROLE) as bench:
        bench.timing("a", prepared(model, 0, 1), effort=EFFORT)
        pids = [worker.pid for worker in bench._workers.values()]
    feed.close()
    assert set(os.listdir("/proc/self/fd")) == before
    assert not any(map(alive, pids))


@pytest.mark.slow
@pytest.mark.parametrize(("idle_times", "factors"), [(0, [1]), (2, [1, 5, 25])])
def test_where_the_load_did_not_run_it_is_measured_for_longer(
    model: FakeModel,
    bench: WorkerBench,
    monkeypatch: pytest.MonkeyPatch,
    idle_times: int,
    factors: list[int],
) -> None:
    asked = _spied(bench, monkeypatch, idle_times)
    effort = replace(EFFORT, min_seconds=0.001, max_seconds=0.002)
    timing = bench.timing("a", prepared(model, 1, 3), effort=effort, beside={"b": prepared(model, 1, 3)})
    assert len(timing.load_shares) == 1
    assert asked == [pytest.approx(factor * 0.001) for factor in factors]


@pytest.mark.slow
def test_a_load_that_never_runs_is_named(
    model: FakeModel, bench: WorkerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    _spied(bench, monkeypatch, 3)
    piece = prepared(model, 1, 3)
    with pytest.raises(ProfilingError, match="the load on b did not run once"):
        bench.timing("a", piece, effort=EFFORT, beside={"b": piece})


def _spied(bench: WorkerBench, monkeypatch: pytest.MonkeyPatch, idle_times: int) -> list[float]:
    """Let the load have run not once so many times; return the least seconds that are asked for."""
    asked: list[float] = []
    stop, ask = bench._stop, bench._ask

    def stopped(unit: str) -> Message:
        return {**stop(unit), "runs": 0 if len(asked) <= idle_times else 7}

    def spied(unit: str, kind: str, *given: Any, **more: Any) -> Message:
        if kind == "measure":
            asked.append(more["effort"]["min_seconds"])
        return ask(unit, kind, *given, **more)

    monkeypatch.setattr(bench, "_stop", stopped)
    monkeypatch.setattr(bench, "_ask", spied)
    return asked


def test_counters_are_read_while_a_piece_runs_and_not_while_it_warms_up(model: FakeModel) -> None:
    session = FakeSession(prepared(model, 0, 1).artifact, ONE_CORE.units[0])
    before: list[int] = []

    def count(work: Callable[[], None]) -> dict[CounterEvent, float]:
        before.append(session.runs)
        work()
        return dict(zip(EVENTS, (100.0, 250.0, 40.0, 10.0, 30.0), strict=True))

    bench = SimpleNamespace(
        counters=SimpleNamespace(count=count), session=session, inputs=[np.zeros(8)], outputs=[np.zeros(300)]
    )
    answer = _count(cast(Workbench, bench), {"runs": 7}, cast(Link, None))
    assert (before, session.runs) == ([1], 8)
    assert answer["features"] == {"instructions_per_cycle": 2.5, "miss_rate": 0.25, "stall_rate": 0.3}


def test_a_worker_that_does_not_count_says_so(model: FakeModel, bench: WorkerBench) -> None:
    with pytest.raises(ProfilingError, match="count"):
        bench.features("a", prepared(model, 0, 1), runs=1)

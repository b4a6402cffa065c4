"""Finalists under sustained load: whether they slow down, and whether their order holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.executor.machine.state import MachineState
from gapless.executor.measurement import Measurement
from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import CandidateKind
from gapless.executor.tuning.result import TUNING, Ground, Sustained, Trust, TuningResult, TuningStop
from gapless.executor.tuning.store import Store
from gapless.executor.tuning.summary import sustained
from gapless.executor.tuning.tuner import endure, finalists
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import ExecutionError, UnitLostError
from gapless.formulations.files import dump, parse

from .contest import OPTIONS, contest, problem
from .test_trust import tuned

SECONDS = 30.0


class Heating(SimulatedRunner):
    """Some candidates become slower, the longer everybody has run; the clock falls meanwhile."""

    def __init__(self, slower: Mapping[str, float], *, fails: str = "", stops_at: int | None = None) -> None:
        super().__init__(problem())
        labels = {one.deployment: one.label for one in contest()}
        self._slower = {deployment: slower.get(label, 0.0) for deployment, label in labels.items()}
        self._labels, self._fails, self._stops_at = labels, fails, stops_at
        self.passed_s = 0.0
        self.visits = 0

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        if self.visits == self._stops_at:
            raise KeyboardInterrupt
        if self._labels[deployment] == self._fails and self.visits > 5:
            raise UnitLostError("too hot")
        self.visits += 1
        found = super().measure(deployment, budget)
        self.passed_s += found.seconds
        hot = self.passed_s / SECONDS
        state = MachineState(others=0.0, mhz=2000 - 800 * hot, celsius=40 + 30 * hot)
        return replace(found, period_us=found.period_us * (1 + self._slower[deployment] * hot), machine=state)


def run(
    runner: SimulatedRunner,
    *,
    store: str | Path = ":memory:",
    seconds: float = SECONDS,
    result: TuningResult | None = None,
) -> Sustained:
    with Store(store) as opened:
        return endure(
            finalists(result or tuned()),
            runner,
            seconds=seconds,
            store=opened,
            options=OPTIONS,
            resume=True,
        )


def test_the_best_of_both_kinds_are_finalists() -> None:
    found = finalists(tuned())
    assert [one.label for one in found] == ["plan 1", "replicas on big+gpu+little"]
    assert {one.kind for one in found} == set(CandidateKind)


def test_a_steady_device_keeps_its_order() -> None:
    found = run(SimulatedRunner(problem(), noise_permille=20))
    assert SECONDS <= found.seconds < SECONDS + 3
    assert (found.order_held, found.beginning, found.mhz, found.throttled) == (True, "first 10 s", None, None)
    assert [abs(row.change_percent) < 3 for row in found.rows] == [True, True]
    judged = sustained(tuned(), found)
    assert judged.verdict is not None
    assert judged.verdict.trust is Trust.HIGH
    assert judged.verdict.evidence[-1].ground is Ground.SUSTAINED
    assert parse(dump(judged, TUNING).encode(), TUNING, name="x") == judged


def test_who_slows_down_may_lose_its_place() -> None:
    found = run(Heating({"plan 1": 0.3}))
    assert found.order_held is False
    assert found.rows[0].change_percent == pytest.approx(19, abs=4)
    assert found.throttled
    assert found.celsius is not None
    assert found.celsius[0] < 55 < found.celsius[1]
    judged = sustained(tuned(), found)
    assert judged.verdict is not None
    assert judged.verdict.trust is Trust.LIMITED
    assert judged.verdict.reasons[0] == "the order of the first 10 s did not hold"
    assert judged.verdict.reasons[1].startswith("slower when sustained +")


def test_who_slows_down_together_keeps_its_order() -> None:
    found = run(Heating({one.label: 0.3 for one in contest()}))
    assert found.order_held
    assert all(row.change_percent > 10 for row in found.rows)


def test_who_fails_on_the_way_is_said_and_the_others_go_on() -> None:
    found = run(Heating({}, fails="plan 1"))
    ((key, failure),) = found.failures
    assert (key, failure.message) == (contest()[0].key, "too hot")
    assert found.seconds >= SECONDS
    assert found.order_held is None


def test_ctrl_c_keeps_what_is_there_and_it_can_be_resumed_and_prolonged(tmp_path: Path) -> None:
    store = tmp_path / "tuning.db"
    part = run(Heating({}, stops_at=7), store=store)
    assert (part.interrupted, len(part.visits)) == (True, 7)
    judged = sustained(tuned(), part)
    assert (judged.interrupted, judged.stop) == (True, TuningStop.DECIDED)
    assert judged.verdict is not None
    assert judged.verdict.reasons == ("the sustained run was interrupted",)
    rest = Heating({})
    whole = run(rest, store=store)
    assert not whole.interrupted
    assert rest.visits == len(whole.visits) - 7
    assert whole.visits[:7] == part.visits
    more = Heating({})
    longer = run(more, store=store, seconds=2 * SECONDS)
    assert (longer.run, longer.visits[: len(whole.visits)]) == (whole.run, whole.visits)
    assert more.visits == len(longer.visits) - len(whole.visits)


def test_a_first_minute_is_called_so() -> None:
    found = run(SimulatedRunner(problem()), seconds=200)
    assert (found.beginning, found.window_s) == ("first minute", 60)
    assert found.order_held


def test_everybody_may_fail() -> None:
    class Lost(SimulatedRunner):
        def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
            raise ExecutionError("lost")

    found = run(Lost(problem()))
    assert (found.visits, found.rows, found.order_held, len(found.failures)) == ((), (), None, 2)

"""How far the answer of a tuning run can be trusted."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.answers.tuning import FEW_VISITS, outcome
from gapless.executor.machine.state import MachineState
from gapless.executor.measurement import Measurement
from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import CandidateKind, strongest_first
from gapless.executor.tuning.racing import Rung, TuningOptions
from gapless.executor.tuning.result import (
    TUNING,
    Ground,
    TableFacts,
    Trust,
    TuningResult,
    TuningStop,
    Verdict,
)
from gapless.executor.tuning.store import Store
from gapless.executor.tuning.tuner import tune
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import UnitLostError
from gapless.formulations.files import dump, parse

from .contest import OPTIONS, Repeatable, contest, problem


def tuned(
    runner: SimulatedRunner | None = None,
    *,
    options: TuningOptions = OPTIONS,
    facts: TableFacts = TableFacts(),
    store: str | Path = ":memory:",
    resume: bool = False,
) -> TuningResult:
    with Store(store) as opened:
        return tune(
            contest(),
            runner or SimulatedRunner(problem()),
            store=opened,
            options=options,
            facts=facts,
            resume=resume,
        )


def verdict(result: TuningResult) -> Verdict:
    assert result.verdict is not None
    return result.verdict


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every visit take one second."""
    ticks = itertools.count()
    monkeypatch.setattr("gapless.executor.tuning.result.time.monotonic", lambda: float(next(ticks)))


def test_the_best_plan_and_the_best_baseline_are_measured_before_everybody_else() -> None:
    ordered = strongest_first(contest()[::-1])
    assert [one.label for one in ordered[:2]] == ["plan 1", "replicas on big+gpu+little"]
    expected = [one.expected_us for one in ordered[2:]]
    assert expected == sorted(expected)
    assert ordered[-1].kind is CandidateKind.BASELINE


@pytest.mark.usefixtures("seconds")
def test_a_small_budget_measures_the_strongest_and_says_how_many() -> None:
    result = tuned(options=replace(OPTIONS, budget_s=3))
    assert (result.stop, result.measured, result.spent_s) == (TuningStop.BUDGET, 3, 3)
    labels = {row.candidate.label for row in result.rows if row.period_us is not None}
    assert {"plan 1", "replicas on big+gpu+little"} < labels
    assert result.winner is not None
    assert verdict(result).trust is Trust.LIMITED
    assert verdict(result).reasons[0] == f"the budget was used up, 3 of {len(result.rows)} measured"


@pytest.mark.usefixtures("seconds")
def test_without_the_strongest_rival_there_is_no_verdict(tmp_path: Path) -> None:
    store = tmp_path / "tuning.db"
    result = tuned(options=replace(OPTIONS, budget_s=0.5), store=store)
    assert (result.measured, verdict(result).trust) == (1, Trust.NONE)
    assert verdict(result).line.startswith(
        "No verdict: the strongest baseline, replicas on big+gpu+little, was not measured; the budget was"
    )
    assert outcome(result.rows[0], result).value == "measured, without its strongest rival"
    whole = tuned(options=replace(OPTIONS, budget_s=500), store=store, resume=True)
    assert (verdict(whole).trust, whole.reused) == (Trust.HIGH, 1)


class Failing(SimulatedRunner):
    """Fails always on some units."""

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        if "gpu" in deployment.units:
            raise UnitLostError("the gpu is lost")
        return super().measure(deployment, budget)


@pytest.mark.usefixtures("seconds")
def test_nothing_measured_is_no_verdict() -> None:
    result = tuned(Failing(problem()), options=replace(OPTIONS, budget_s=1))
    assert (result.winner, result.measured) == (None, 0)
    assert verdict(result).line == (
        f"No verdict: nothing was measured; the budget was used up, 0 of {len(result.rows)} measured."
    )


class Watched(SimulatedRunner):
    """Says how busy other programs were."""

    others: float | None = 0.4

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        found = super().measure(deployment, budget)
        return replace(found, machine=MachineState(others=self.others))


def test_what_speaks_against_an_answer_is_said_with_its_number() -> None:
    facts = TableFacts(sums_error=0.24, unsteady=0.05)
    found = verdict(tuned(Watched(problem()), facts=facts))
    assert found.trust is Trust.LIMITED
    assert found.line == "Trust is limited: other programs 40.0 %; sums of layers 24.0 %."
    numbers = {one.ground: one.percent for one in found.evidence}
    assert numbers[Ground.UNSTEADY] == pytest.approx(5)
    assert numbers[Ground.BASELINES] == pytest.approx(0, abs=0.1)
    calm = verdict(tuned())
    assert (calm.trust, calm.reasons) == (Trust.HIGH, ())
    assert {one.ground for one in calm.evidence if one.percent is None} == {
        Ground.OTHERS,
        Ground.SUMS,
        Ground.UNSTEADY,
    }


@pytest.mark.parametrize("noise_permille", [20, 100, 300])
@pytest.mark.parametrize("seed", range(4))
def test_nobody_is_called_better_than_one_whose_place_it_shares(noise_permille: int, seed: int) -> None:
    rungs = (Rung(seconds=0.03), Rung(seconds=0.03), Rung(seconds=0.06, rounds=4))
    noisy = SimulatedRunner(problem(), noise_permille=noise_permille, seed=seed)
    result = tuned(noisy, options=TuningOptions(rungs=rungs, seed=seed))
    assert {row.candidate.key for row in result.rows if row.place == 1} == set(result.ties)
    for row in result.rows:
        words = str(outcome(row, result).value)
        tied, known = "tie" in words or words == "wins", words not in {FEW_VISITS, "fastest so far"}
        assert (tied or not known) is (row.place == 1)
        if not known:  # what is not told apart is no tie where too few rounds were shared
            assert not result.all_told
            assert row is result.winner or not result.is_known_tie(row)
        if "tie" in words:
            assert result.all_told if row is result.winner else result.is_known_tie(row)
        if row.place != 1:  # whoever does not share the first place was slower than the winner, by any number
            assert row.ratio is not None
            assert row.ratio > 1
    places = [row.place or 0 for row in result.rows]
    assert places == sorted(places)


class Turning(Repeatable):
    """Runs plan 2 four times as fast as it is, at its first two visits."""

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        first = self.visits[deployment.deployment_id] < 2
        found = super().measure(deployment, budget)
        lucky = first and deployment == contest()[1].deployment
        return replace(found, period_us=found.period_us / 4) if lucky else found


def test_whoever_left_comes_back_when_the_leader_turns_out_to_be_slow() -> None:
    rungs = (Rung(seconds=0.03), Rung(seconds=0.03, rounds=6), Rung(seconds=0.03, rounds=4))
    result = tuned(Turning(Counter()), options=TuningOptions(rungs=rungs))
    plans = {row.candidate.label: row for row in result.rows}
    best = plans["plan 1"]
    assert best.rung_us[0] is not None
    assert best.rung_us[1] is None, "it left: plan 2 seemed to be much faster"
    assert best.rung_us[2] is not None, "it came back: not slower than the best baseline, which leads then"
    assert (best.left_after, result.winner) == (None, best)
    assert plans["plan 3"].left_after == 0


def test_a_verdict_survives_the_journey_through_json() -> None:
    result = tuned(Watched(problem()))
    assert parse(dump(result, TUNING).encode(), TUNING, name="x") == result

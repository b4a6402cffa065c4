"""Tuning as a whole, on simulated devices."""

from __future__ import annotations

import csv
import io
import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import gapless
from gapless.answers.tuning import candidates, outcome
from gapless.api.problems import table_problem
from gapless.executor.measurement import Measurement
from gapless.executor.progress import Step
from gapless.executor.runner import Budget, Verification
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import CandidateKind, TuningCandidate, baselines, plan_candidates
from gapless.executor.tuning.racing import Rung, TuningMode, TuningOptions
from gapless.executor.tuning.result import MEASUREMENT, TUNING, Failure, TuningResult, TuningRow, TuningStop
from gapless.executor.tuning.store import Store
from gapless.executor.tuning.tuner import TuningSubject, tune
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import (
    EngineUnavailableError,
    ExecutionError,
    InvalidInputError,
    OutputMismatchError,
    UnitLostError,
)
from gapless.formulations.files import dump, parse
from gapless.formulations.plan import Chunk, Plan
from gapless.view.text import markdown_text, table_csv

from .contest import OPTIONS, Repeatable, contest, go_on, problem, recorded, table


def words_of(row: TuningRow, result: TuningResult) -> str:
    cell = outcome(row, result)
    return f"{cell.value} {cell.note}".strip()


def tuned(
    runner: SimulatedRunner | None = None,
    *,
    options: TuningOptions = OPTIONS,
    candidates: tuple[TuningCandidate, ...] | None = None,
    store: str | Path = ":memory:",
    resume: bool = False,
) -> TuningResult:
    with Store(store) as opened:
        return tune(
            contest() if candidates is None else candidates,
            runner or SimulatedRunner(problem()),
            store=opened,
            options=options,
            resume=resume,
        )


def row(result: TuningResult, label: str) -> TuningRow:
    return next(row for row in result.rows if label in row.candidate.labels)


class Failing(Repeatable):
    """Fails where a function of the deployment and the number of its visit says so."""

    def __init__(self, unit: str, error: Exception, *, visit: int = 0, verifying: bool = False) -> None:
        super().__init__(Counter())
        self._unit, self._error, self._visit, self._verifying = unit, error, visit, verifying

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        self._fail(deployment, verifying=False)
        return super().measure(deployment, budget)

    def verify(self, deployment: Deployment) -> Verification | None:
        self._fail(deployment, verifying=True)
        return super().verify(deployment)

    def _fail(self, deployment: Deployment, *, verifying: bool) -> None:
        late = self.visits[deployment.deployment_id] >= self._visit
        if verifying is self._verifying and late and self._unit in deployment.units:
            raise self._error


def test_the_fastest_plan_wins_and_everything_is_in_the_result() -> None:
    steps: list[Step] = []
    with Store(":memory:") as store:
        result = tune(
            contest(), SimulatedRunner(problem()), store=store, options=OPTIONS, report=steps.append
        )
    winner = result.winner
    assert winner is not None
    assert winner.candidate.label == "plan 1"
    assert winner.period_us is not None
    assert winner.period_us.median == pytest.approx(winner.candidate.predicted("truth"))
    assert (result.baseline_wins, result.stop, result.interrupted) == (False, TuningStop.DECIDED, False)
    assert result.drift_percent == pytest.approx(0)
    assert [r.ratio for r in result.rows] == sorted(r.ratio or 0 for r in result.rows)
    assert result.best(CandidateKind.PLAN) is winner
    best = result.best(CandidateKind.BASELINE)
    assert best is not None
    assert best.candidate.label == "replicas on big+gpu+little"
    assert best.left_after is None
    assert row(result, "serial on gpu").left_after == 0
    assert {(q.table, q.scope) for q in result.quality} == {
        ("truth", "all plans"),
        ("truth", "plans of several chunks"),
    }
    assert all(q.mape_percent == pytest.approx(0) for q in result.quality)
    assert steps[0].text == "rung 1 of 3: plan 1"
    assert steps[1].text == "rung 1 of 3: replicas on big+gpu+little"
    measuring_s = sum(rung.seconds * rung.rounds for rung in result.options.steps)
    assert (steps[0].done, steps[0].total) == (0, round(1000 * len(result.rows) * measuring_s))
    assert all(a.done < b.done <= (b.total or 0) <= (a.total or 0) for a, b in itertools.pairwise(steps))


def test_a_plan_that_is_slower_than_a_baseline_is_never_recommended() -> None:
    planned = table_problem([[1, 1], [1, 1]], ["a", "b"], network="net")
    truth = table_problem([[1, 9], [1, 9]], ["a", "b"], network="net")
    plans = [candidate.plan for candidate in gapless.plan(planned, top=2).candidates]
    found = plan_candidates(plans, tables={"wrong": planned}) + baselines(planned)
    result = tuned(SimulatedRunner(truth, noise_permille=10), candidates=found)
    assert result.baseline_wins
    assert result.winner is not None
    assert result.winner.candidate.label == "replicas on a+b"
    plan = result.best(CandidateKind.PLAN)
    assert plan is not None
    assert plan.left_after is None  # the best plan stays, to be compared
    assert plan.lower_ratio is not None
    assert plan.lower_ratio > 1


@pytest.mark.parametrize(("rounds", "known"), [(1, False), (3, False), (4, True)])
def test_a_tie_is_said_only_where_there_were_enough_visits(rounds: int, known: bool) -> None:
    from gapless.answers.tuning import compared, rivals

    # After one round even a plan that takes 3.75 times as long is not clearly slower.
    times = [[15, 4], [15, 4]] if rounds == 1 else [[10, 10], [10, 10]]
    truth = table_problem(times, ["a", "b"], network="net")
    plans = [Plan(chunks=(Chunk(network="net", start=0, stop=2, unit=unit),)) for unit in "ab"]
    result = tuned(
        SimulatedRunner(truth),
        candidates=plan_candidates(plans, tables={"t": truth}),
        options=TuningOptions(rungs=(Rung(seconds=0.05, rounds=rounds),)),
    )
    other = result.rows[1]
    assert (other.shared_rounds, other.candidate.key in result.ties) == (rounds, True)
    assert (other.ratio or 0) == pytest.approx(3.75 if rounds == 1 else 1.0)
    words = [*rivals(result), compared(other, result), words_of(other, result)]
    assert any("too few visits" in word.lower() for word in words) is not known
    assert any("ties with" in word or "within the noise" in word for word in words) is known
    assert result.all_told is known
    assert words_of(result.rows[0], result) == ("wins the tie" if known else "fastest so far")


def test_of_a_tie_the_fewest_units_win() -> None:
    truth = table_problem([[10, 99, 5], [99, 10, 5]], ["a", "b", "c"], network="net")
    one, two = (
        Plan(chunks=tuple(Chunk(network="net", start=i, stop=j, unit=u) for i, j, u in parts))
        for parts in ([(0, 2, "c")], [(0, 1, "a"), (1, 2, "b")])
    )
    result = tuned(SimulatedRunner(truth), candidates=plan_candidates([two, one], tables={"t": truth}))
    assert result.ties == (deploy(one).deployment_id, deploy(two).deployment_id)
    assert result.stop is TuningStop.COMPLETE
    assert [words_of(r, result) for r in result.rows] == ["wins the tie", "ties with the winner"]
    assert [r.place for r in result.rows] == [1, 1]


def test_of_a_tie_of_equally_many_units_the_fewest_hops_win() -> None:
    """The plan that comes back has the shorter latency, because fewer requests wait on their way."""
    truth = table_problem([[6, 1], [10, 9], [99, 1]], ["a", "b"], network="net")
    back, once = (
        Plan(chunks=tuple(Chunk(network="net", start=i, stop=j, unit=u) for i, j, u in parts))
        for parts in ([(0, 1, "b"), (1, 2, "a"), (2, 3, "b")], [(0, 1, "a"), (1, 3, "b")])
    )
    candidates = plan_candidates([back, once], tables={"t": gapless.with_passage(truth)})
    result = tuned(SimulatedRunner(truth), candidates=candidates)
    assert len(result.ties) == 2
    assert result.rows[0].candidate.deployment.plan == once


class Drifting(SimulatedRunner):
    """Becomes slower with every measurement."""

    slower = 1.0

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        found = super().measure(deployment, budget)
        self.slower *= 1.01
        return replace(found, period_us=found.period_us * self.slower)


def test_a_winner_that_is_no_candidate_is_refused() -> None:
    result = tuned(SimulatedRunner(problem()))
    with pytest.raises(InvalidInputError, match="ties for the first place, and is no candidate"):
        replace(result, rows=())


def test_on_a_drifting_device_the_fastest_wins_and_periods_are_comparable() -> None:
    result = tuned(Drifting(problem()))
    winner = result.winner
    assert winner is not None
    assert winner.candidate.label == "plan 1"
    assert result.drift_percent is not None
    assert result.drift_percent > 10
    serial = row(result, "serial on gpu")
    assert serial.comparable_us is not None
    assert winner.comparable_us is not None
    assert serial.comparable_us / winner.comparable_us == pytest.approx(11.5 / 3, rel=0.15)
    assert [q.spearman for q in result.quality] == pytest.approx([1, 1], abs=0.1)


def test_fixed_mode_measures_everybody_for_ten_seconds() -> None:
    result = tuned(options=TuningOptions(mode=TuningMode.FIXED))
    assert result.stop is TuningStop.COMPLETE
    assert all(r.measured_s == pytest.approx(10, rel=0.02) for r in result.rows)
    assert all(r.left_after is None for r in result.rows)
    race = tuned(options=TuningOptions())
    assert race.ties[0] == result.ties[0]
    assert race.measured_s < result.measured_s / 2


def test_what_survives_is_visited_for_several_periods() -> None:
    slow = table_problem([[400, 400]], ["a", "b"], network="net")
    serial = baselines(slow)[:2]
    result = tuned(
        SimulatedRunner(slow), candidates=serial, options=TuningOptions(rungs=(Rung(seconds=0.1),) * 2)
    )
    assert [r.requests for r in result.rows] == [2 * 1 + 2 * 8] * 2


@pytest.mark.parametrize("verifying", [False, True])
def test_a_candidate_that_fails_is_a_row_with_a_reason(verifying: bool) -> None:
    error = OutputMismatchError("chunk 2 differs by 0.4")
    runner = Failing("gpu", error, verifying=verifying)
    result = tuned(runner)
    failed = [r for r in result.rows if r.failure is not None]
    assert {r.candidate.key for r in failed} == {
        r.candidate.key for r in result.rows if "gpu" in r.candidate.deployment.units
    }
    assert result.rows[-len(failed) :] == tuple(failed)
    assert failed[0].failure == Failure(error="OutputMismatchError", message="chunk 2 differs by 0.4")
    assert result.winner is not None
    assert result.winner.failure is None
    assert max(runner.verified.values()) == 1
    assert words_of(failed[0], result) == "failed (chunk 2 differs by 0.4)"


def test_a_candidate_that_fails_later_is_out_whatever_it_did_before() -> None:
    result = tuned(Failing("gpu", UnitLostError("request 7 is lost"), visit=1))
    failed = [r for r in result.rows if r.failure is not None]
    assert any(r.period_us is not None for r in failed)
    assert not {r.candidate.key for r in failed} & set(result.ties)
    assert result.winner is not None
    assert "gpu" not in result.winner.candidate.deployment.units


def test_when_all_fail_the_error_is_raised() -> None:
    only_gpu = tuple(c for c in contest() if "gpu" in c.deployment.units)
    with pytest.raises(
        OutputMismatchError, match=rf"none of the {len(only_gpu)} candidates .*: wrong numbers"
    ):
        tuned(Failing("gpu", OutputMismatchError("wrong numbers")), candidates=only_gpu)
    runner = Failing("gpu", UnitLostError("lost"))
    runner.verify = Failing("big", OutputMismatchError("wrong"), verifying=True).verify  # type: ignore[method-assign]
    with pytest.raises(ExecutionError, match="and 1 other reasons"):
        tuned(runner, candidates=only_gpu)


def test_what_befalls_everybody_ends_the_tuning() -> None:
    with pytest.raises(EngineUnavailableError, match="not installed"):
        tuned(Failing("big", EngineUnavailableError("MNN is not installed")))


def test_nothing_to_tune_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no candidates"):
        tuned(candidates=())
    with pytest.raises(InvalidInputError, match="margin is 2"):
        TuningOptions(margin=2, rungs=(Rung(seconds=0),))


class Interrupted(Repeatable):
    """Is stopped by Ctrl-C at one of its measurements."""

    def __init__(self, visits: Counter[str], *, at: int) -> None:
        super().__init__(visits)
        self._at = at

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        if sum(self.visits.values()) == self._at:
            raise KeyboardInterrupt
        return super().measure(deployment, budget)


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 7, 15])
def test_ctrl_c_gives_what_is_there_and_can_be_resumed(at: int, tmp_path: Path) -> None:
    whole = go_on(tmp_path / "whole.db", Repeatable(Counter()))
    store = tmp_path / "tuning.db"
    visits: Counter[str] = Counter()
    part = go_on(store, Interrupted(visits, at=at))
    assert part.interrupted
    assert len(recorded(store)) == at
    assert len(part.rows) == len(whole.rows)
    assert (part.winner is None) is (at < 1)
    resumed = go_on(store, Repeatable(visits))
    assert table(resumed) == table(whole)
    assert resumed.reused == at
    again = go_on(store, Failing("big", AssertionError("measured again")))
    assert table(again) == table(whole)


def test_a_budget_that_is_used_up_can_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr("gapless.executor.tuning.result.time.monotonic", lambda: float(next(ticks)))
    whole = tuned(Repeatable(Counter()))
    runner = Repeatable(Counter())
    store = tmp_path / "tuning.db"
    short = tuned(runner, options=replace(OPTIONS, budget_s=9.5), store=store)
    assert short.stop is TuningStop.BUDGET
    assert short.winner is not None
    assert (short.spent_s, len(recorded(store)), short.measured) == (10, 10, 10)
    longer = tuned(runner, options=replace(OPTIONS, budget_s=500), store=store, resume=True)
    assert longer.spent_s == len(recorded(store))
    assert replace(table(longer), options=OPTIONS) == table(whole)


def test_other_subjects_and_options_are_other_runs(tmp_path: Path) -> None:
    with Store(tmp_path / "tuning.db") as store:

        def run(options: TuningOptions = OPTIONS, device: str = "") -> int:
            subject = TuningSubject(device=device)
            runner = SimulatedRunner(problem())
            return tune(contest(), runner, store=store, options=options, subject=subject, resume=True).run

        first = run()
        assert run() == run(replace(OPTIONS, budget_s=99)) == first
        assert len({first, run(device="other"), run(replace(OPTIONS, seed=4))}) == 3


def test_results_and_measurements_survive_the_journey_through_json() -> None:
    result = tuned(Failing("gpu", UnitLostError("lost"), visit=2))
    text = dump(result, TUNING)
    assert parse(text.encode(), TUNING, name="x") == result
    measurement = SimulatedRunner(problem(), noise_permille=30).measure(
        contest()[0].deployment, Budget(requests=20)
    )
    text = dump(measurement, MEASUREMENT)
    assert parse(text.encode(), MEASUREMENT, name="x") == measurement


def test_tables_can_be_opened_by_people() -> None:
    result = tuned(Failing("gpu", UnitLostError("a | b\nc, d")))
    cells = list(csv.reader(io.StringIO(table_csv(candidates(result)))))
    assert {len(line) for line in cells} == {len(cells[0])}
    by_name = dict(zip(cells[0], cells[1], strict=True))
    assert (by_name["place"], by_name["times the winner's"], by_name["outcome"]) == ("1", "1.0", "wins")
    assert by_name["numbers"] == "error 1.0e-06"
    lines = markdown_text(candidates(result)).splitlines()
    assert len(lines) == len(cells) + 1
    assert len({len(line) for line in lines}) == 1
    assert "| failed (a \\| b c, d) " in lines[-1]

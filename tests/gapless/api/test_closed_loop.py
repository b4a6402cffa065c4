"""The closed loop of tuning, on simulated devices whose truth is known."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gapless
from gapless.api.closed_loop import FEWEST_NEW, TuningSetup, close_loop
from gapless.api.comparison import Comparison
from gapless.api.planning import compare_backends
from gapless.api.problems import load_problem, table_problem
from gapless.api.tuned import CORRECTED, LOOP, Loop, LoopStop, Tuned, executed_plans
from gapless.api.tuning import tune_simulated
from gapless.executor.measurement import Measurement
from gapless.executor.progress import silent
from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import CandidateKind, baselines, plan_candidates
from gapless.executor.tuning.racing import TuningOptions
from gapless.executor.tuning.result import TuningResult, TuningStop
from gapless.executor.tuning.store import Store
from gapless.formulations.chunking.rules import at_most, busy_cap
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import load
from gapless.formulations.judge import check, score
from gapless.formulations.problem import Problem
from gapless.formulations.rules import named
from gapless.formulations.workload import LoadPolicy
from gapless.profiler.platforms.catalog import shipped_names
from gapless.profiler.platforms.workloads import shipped_workload
from gapless.profiler.prediction.corrections import Corrections
from gapless.solvers.protocol import SolveOptions
from tests.instances import ruled_problems

from ..conftest import Cli

NAME = "pixel7a/alexnet-sparse"
WORDS = ("tune", NAME, "--engine", "simulated", "--costs", "isolated", "--truth", "interpolated")


def pixel(**options: Any) -> Tuned:
    """Tune the shipped problem in which one-shot tuning by isolated costs misses the best plan."""
    planned, truth = (load_problem(NAME, costs=costs) for costs in ("isolated", "interpolated"))
    return tune_simulated(planned, truth, **{"rounds": 8, **options})


def otherwise(problem: Problem, seed: int) -> Problem:
    """Return a problem with costs that differ by up to a factor of four, cell by cell."""
    rng = random.Random(seed)
    units = range(len(problem.platform.units))

    def factor() -> float:
        return math.exp(rng.uniform(-0.7, 0.7))

    layers = tuple(tuple(factor() for _ in units) for _ in problem.network.layers)
    return Corrections(unit_factor=tuple(factor() for _ in units), layer_factor=layers).applied(problem)


def best_plan_us(loop: Loop) -> float:
    """Return the least period of all plans that were executed in some round."""
    return min(
        row.comparable_us
        for one in loop.rounds
        for row in one.result.rows
        if row.comparable_us is not None and row.candidate.deployment.plan is not None
    )


def timeless(tuned: Tuned) -> tuple[TuningResult, Loop]:
    """Return what was measured without what differs between sessions."""
    assert tuned.loop is not None
    rounds = [replace(one, result=replace(one.result, spent_s=0.0, reused=0)) for one in tuned.loop.rounds]
    return replace(tuned.result, spent_s=0.0, reused=0), replace(tuned.loop, rounds=tuple(rounds))


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped_names())
def test_the_loop_finds_the_optimum_of_the_truth(name: str) -> None:
    planned, truth = (load_problem(name, costs=costs) for costs in ("isolated", "interpolated"))
    tuned = tune_simulated(planned, truth, rounds=8)
    loop, optimum = tuned.loop, gapless.plan(truth).objective
    assert loop is not None
    assert optimum is not None
    assert loop.stop in {LoopStop.SETTLED, LoopStop.EXHAUSTED}
    assert len(loop.rounds) <= 5
    assert best_plan_us(loop) <= 1.01 * optimum
    assert tuned.result.winner is not None
    assert tuned.result.winner.comparable_us is not None
    assert tuned.result.winner.comparable_us <= 1.01 * optimum


def test_one_shot_tuning_of_as_many_plans_misses_it() -> None:
    loop = pixel().loop
    assert loop is not None
    # With a rule, plans of a single pipeline alone take part, as in the loop.
    one_shot = pixel(rounds=1, top=loop.plans_measured, rules=[at_most(4)]).result.best(CandidateKind.PLAN)
    assert one_shot is not None
    assert one_shot.comparable_us is not None
    assert best_plan_us(loop) < 0.7 * one_shot.comparable_us


@pytest.mark.slow
@settings(max_examples=25)
@given(problem=ruled_problems(), seed=st.integers(0, 99), top=st.integers(1, 4))
def test_on_random_problems(problem: Problem, seed: int, top: int) -> None:
    problem = problem.with_objective("period")
    if gapless.plan(problem).plan is None:
        return
    truth = otherwise(problem, seed)
    tuned = tune_simulated(problem, truth, top=top, rounds=30)
    loop = tuned.loop
    assert loop is not None
    assert loop.stop in {LoopStop.SETTLED, LoopStop.EXHAUSTED}

    winners = [one.result.winner for one in loop.rounds]
    assert all(winner is not None for winner in winners)
    times = [winner.comparable_us for winner in winners if winner is not None]
    margin = 1 + tuned.result.options.margin
    for before, after in pairwise(times):
        assert after is not None
        assert before is not None
        assert after <= margin * before  # of a tie the cheaper one is chosen
    for one, new in zip(loop.rounds[1:], loop.new_plans[1:], strict=True):
        assert 1 <= new <= max(FEWEST_NEW, top // 2)
        for row in one.result.rows:
            plan = row.candidate.deployment.plan
            assert plan is None or check(problem, plan) == ()
    if loop.stop is LoopStop.SETTLED:
        assert len(loop.rounds) > 1
        assert loop.outlook is not None
        assert not loop.outlook.better


def test_nothing_is_left_to_measure_when_everything_was() -> None:
    problem = table_problem([[1, 3], [2, 2]], ["a", "b"])
    loop = tune_simulated(problem, otherwise(problem, 3), rounds=5).loop
    assert loop is not None
    assert loop.stop is LoopStop.EXHAUSTED
    assert len(loop.rounds) == 1
    assert loop.outlook is None


@pytest.mark.slow
@pytest.mark.parametrize("backends", [("native",), ("cpsat", "native")])
def test_rules_bind_all_rounds_by_the_costs_that_were_given(backends: tuple[str, ...]) -> None:
    cap = busy_cap("GPU", most_us=9_000)
    tuned = pixel(rules=[cap], backends=backends, rounds=2, top=4)
    assert tuned.loop is not None
    assert len(tuned.loop.rounds) > 1
    for one in tuned.loop.rounds:
        for row in one.result.rows:
            if row.candidate.rank is not None and row.candidate.deployment.plan is not None:
                assert check(tuned.problem, row.candidate.deployment.plan) == ()


@pytest.mark.slow
def test_expressions_are_bound_to_corrected_costs() -> None:
    problem = load_problem(NAME).with_rules(lambda view: view.busy_us("GPU") >= 15_000)
    slower = Corrections(unit_factor=(4.0,) * 4, layer_factor=((1.0,) * 4,) * 9).applied(problem)
    found = gapless.compare(slower, backends=["native", "cpsat", "exhaustive"], top=5)
    assert not found.failures
    assert not found.disagreements
    assert len({result.objective for result in found.results}) == 1


class Drifting(SimulatedRunner):
    """A device that is faster or slower by a factor from some moment on."""

    factor = 1.0

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        found = super().measure(deployment, budget)
        chunks = [
            replace(chunk, busy_us=replace(chunk.busy_us, median=self.factor * chunk.busy_us.median))
            for chunk in found.chunks
        ]
        return replace(found, period_us=self.factor * found.period_us, chunks=tuple(chunks))


def test_times_of_earlier_rounds_are_freed_from_drift() -> None:
    problem, truth = (load_problem(NAME, costs=costs) for costs in ("isolated", "interpolated"))
    runner = Drifting(truth)
    with Store(":memory:") as store:
        setup = TuningSetup(
            runner=runner, device="", backends=("native",), solving=SolveOptions(top=6),
            options=TuningOptions(), store=store, resume=False, report=silent,
        )  # fmt: skip
        tables = {"isolated": problem}
        _, plans = setup.plan(problem, top=6)
        alone = baselines(problem)
        first = setup.race([*plan_candidates(plans, tables=tables), *alone], problem)
        runner.factor = 1.5
        loop = close_loop(tables, first, setup, rounds=2)
    known = executed_plans([one.result for one in loop.rounds], problem)
    assert len({one.plan for one in known}) == len(known) > 6 + FEWEST_NEW
    for one in known:
        chain = chain_of(truth.charged(one.plan))
        right = [1.5 * chain.busy_us(*part) for part in chain.parts(one.plan)]
        assert one.chunk_us == pytest.approx(right)
        assert one.period_us == pytest.approx(1.5 * score(truth, one.plan).period_us)


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def dying(monkeypatch: pytest.MonkeyPatch, after: int, how: type[BaseException]) -> Iterator[None]:
    """Have the simulated device measure so many times and no more."""
    left = [after]
    measure = SimulatedRunner.measure

    def once(self: SimulatedRunner, deployment: Deployment, budget: Budget) -> Measurement:
        if not left[0]:
            raise how
        left[0] -= 1
        return measure(self, deployment, budget)

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedRunner, "measure", once)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("how", [KeyboardInterrupt, Killed])
def test_a_loop_that_was_cut_off_anywhere_is_resumed(
    how: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pixel(top=5)
    assert whole.loop is not None
    assert len(whole.loop.rounds) >= 3
    visits = [
        sum(row.period_us.count for row in one.result.rows if row.period_us) for one in whole.loop.rounds
    ]
    for number, after in enumerate((0, visits[0] + 2, sum(visits[:2]) + 12)):
        store = tmp_path / f"{number}.db"
        try:
            with dying(monkeypatch, after, how):
                tuned = pixel(top=5, store=store)
        except Killed:
            pass
        else:
            assert tuned.interrupted
            assert tuned.loop is not None
            assert tuned.loop.stop is LoopStop.INTERRUPTED
            done = tuned.loop.rounds[:-1]
            assert tuned.result == (done[-1] if done else tuned.loop.rounds[0]).result
        again = pixel(top=5, store=store, resume=True)
        assert again.loop is not None
        assert sum(one.result.reused for one in again.loop.rounds) == after
        assert timeless(again) == timeless(whole)


def test_ctrl_c_while_planning_again_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    from gapless.api import closed_loop

    calls = []

    def compare(*given: Any, **options: Any) -> Comparison:
        calls.append(given)
        if len(calls) == 3:  # the first round asks twice: for plans that are far apart, too
            raise KeyboardInterrupt
        return compare_backends(*given, **options)

    monkeypatch.setattr(closed_loop, "compare_backends", compare)
    tuned = pixel()
    assert tuned.interrupted
    assert tuned.result.winner is not None
    assert tuned.result.stop is not TuningStop.INTERRUPTED


@pytest.mark.slow
def test_the_budget_is_for_all_rounds(tmp_path: Path) -> None:
    first = pixel(store=tmp_path / "store.db").loop
    assert first is not None
    spent_s = first.rounds[0].result.spent_s
    stopped = pixel(store=tmp_path / "store.db", resume=True, options=TuningOptions(budget_s=spent_s)).loop
    assert stopped is not None
    assert stopped.stop is LoopStop.BUDGET
    assert len(stopped.rounds) == 1
    assert stopped.outlook is not None
    longer = TuningOptions(budget_s=spent_s + first.rounds[1].result.spent_s / 2)
    cut = pixel(store=tmp_path / "store.db", resume=True, options=longer)
    assert cut.loop is not None
    assert [one.result.stop for one in cut.loop.rounds][-1] is TuningStop.BUDGET
    assert cut.result is cut.loop.rounds[0].result  # of a round that was cut off, nobody knows


@pytest.mark.slow
def test_more_rounds_go_on_where_fewer_ended(tmp_path: Path) -> None:
    short = pixel(store=tmp_path / "store.db", rounds=2).loop
    assert short is not None
    assert short.stop is LoopStop.ROUNDS
    long = pixel(store=tmp_path / "store.db", resume=True).loop
    assert long is not None
    assert [one.result.reused > 0 for one in long.rounds[:3]] == [True, True, False]
    assert long.rounds[1].corrections == short.rounds[1].corrections


def test_a_round_that_was_not_asked_for_changes_nothing() -> None:
    # With this rule no plans of several pipelines take part, and none that come back to a unit.
    rules = [named("once", "each unit has one chunk", lambda view: view.hops() < view.units_used())]
    alone = pixel(rounds=1, rules=rules)
    loop = pixel(rounds=2, rules=rules).loop
    assert alone.loop is None
    assert loop is not None
    assert replace(loop.rounds[0].result, spent_s=0) == replace(alone.result, spent_s=0)


def test_no_rounds_are_refused(cli: Cli, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="rounds is 0, must be at least 1"):
        pixel(rounds=0)
    run = cli("tune", "squeezenet", "--rounds", "2", "--objective", "latency", "--out", tmp_path)
    assert run.code == 2
    assert "leave the rounds out" in run.err.replace("\n", " ")


@pytest.mark.usefixtures("counted_time")
@pytest.mark.slow
def test_a_loop_of_a_workload_finds_what_one_round_misses() -> None:
    shipped = shipped_workload("kirin990", "yolov4,bert,mobilenetv2x2")
    served = replace(shipped, data=replace(shipped.data, load_policy=LoadPolicy.RESIDENT))
    truth = slower(served, {"npu": 0.8, "cpu_big": 1.6})
    tuned = tune_simulated(served, truth, rounds=4, top=4, time_limit_s=0.3)
    assert tuned.loop is not None
    first, last = tuned.loop.rounds[0].result.winner, tuned.result.winner
    assert first is not None
    assert last is not None
    assert first.comparable_us is not None
    assert last.comparable_us is not None
    assert last.comparable_us < first.comparable_us
    quality = [next(q for q in one.result.quality if q.table == one.costs) for one in tuned.loop.rounds]
    errors = [one.mape_percent or 0.0 for one in quality]
    assert errors[-1] < 0.5 * errors[0]
    settled = [row.candidate.deployment.plan for one in tuned.loop.rounds[1:] for row in one.result.rows]
    assert all(plan is not None and plan.order for plan in settled)


def slower(problem: Problem, units: Mapping[str, float]) -> Problem:
    """Return a problem with units that take so many times as long."""
    factors = tuple(units.get(name, 1.0) for name in problem.platform.unit_names)
    rows = tuple((1.0,) * len(factors) for costs in problem.costs.networks for _ in costs.layer_us)
    return Corrections(unit_factor=factors, layer_factor=rows).applied(problem)


@pytest.mark.slow
def test_the_command_shows_and_writes_all_rounds(cli: Cli, tmp_path: Path) -> None:
    words = [*WORDS, "--rounds", "6", "--noise", "0%", "--out", tmp_path]
    shown = cli(*words)
    assert shown.code == 0
    assert "Settled: the best has stood the last round" in shown.out.replace("\n", " ")
    document = cli(*words, "--resume", "--json").document
    loop = load(tmp_path / "rounds.json", LOOP)
    assert document["loop"]["stop"] == loop.stop == "settled"
    assert len(document["loop"]["rounds"]) == len(loop.rounds) > 2
    assert document["run"] == loop.answer.run
    assert all(one.costs == CORRECTED for one in loop.rounds[1:])
    cli(*words[:-1], tmp_path / "one", "--rounds", "1", "--json")
    assert not (tmp_path / "one" / "rounds.json").exists()
    assert "loop" not in json.loads((tmp_path / "one" / "tuning.json").read_text())


@pytest.mark.slow
def test_ctrl_c_ends_with_130_and_the_results_so_far(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*WORDS, "--rounds", "6", "--noise", "0%", "--out", tmp_path]
    with dying(monkeypatch, 80, KeyboardInterrupt):
        run = cli(*words)
    assert run.code == 130
    assert "Interrupted; go on with --resume" in run.out
    assert (tmp_path / "deployment.json").exists()
    assert cli(*words, "--resume").code == 0

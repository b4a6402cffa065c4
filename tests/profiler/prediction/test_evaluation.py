"""Evaluation: no plan is judged by what was learned from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gapless.executor.tuning.candidates import APART
from gapless.formulations import co_run
from gapless.formulations.chunking.formulation import plan_distance
from gapless.formulations.costs import CostTable
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import Platform
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.profiler.prediction.evaluation import (
    ALL,
    MULTI,
    REPEATED,
    Evaluated,
    Fit,
    Order,
    Way,
    evaluate,
    intervals,
    learning_curve,
    noise_floor,
    ranked_by,
    usable_models,
)
from gapless.profiler.prediction.executions import ExecutedPlan, Executions

from .executed import LAYERS, Factors, document, executions

SLOW_UNITS: Factors = [[1.3, 0.7, 1.1]] * LAYERS


def with_serial(found: Executions, period_us: float = 90_000.0) -> Executions:
    """Return executions with one plan of one chunk more."""
    chunk = Chunk(network=found.network.name, start=0, stop=LAYERS, unit="big")
    serial = ExecutedPlan(plan=Plan(chunks=(chunk,)), period_us=period_us, chunk_us=(period_us,))
    return replace(found, executed=(*found.executed, serial))


def named(found: tuple[Evaluated, ...], model: str, fit: Fit, scope: str = MULTI) -> Evaluated:
    """Return one row."""
    (row,) = (o for o in found if (o.quality.table, o.fit, o.quality.scope) == (model, fit, scope))
    return row


@pytest.mark.slow
def test_the_true_model_is_found_to_be_true(tmp_path: Path) -> None:
    found = evaluate(executions(document(), tmp_path))
    best = named(found, "interpolated", Fit.NONE).quality
    assert best.pearson == pytest.approx(1.0, abs=1e-4)
    assert best.mape_percent == pytest.approx(0.0, abs=0.1)
    assert best.regret_percent == ((1, 0.0), (3, 0.0), (5, 0.0), (10, 0.0))
    worse = named(found, "isolated", Fit.NONE).quality.mape_percent
    assert worse is not None
    assert worse > 1


@pytest.mark.slow
def test_learning_from_the_others_helps_where_units_differ(tmp_path: Path) -> None:
    found = evaluate(executions(document(SLOW_UNITS), tmp_path))
    plain = (Fit.NONE, Fit.UNITS, Fit.LAYERS)
    errors = [named(found, "interpolated", fit).quality.mape_percent or 0.0 for fit in plain]
    errors.append(named(found, "learned", Fit.COMPANY).quality.mape_percent or 0.0)
    assert errors[0] > 3 * max(errors[1:])
    assert named(found, "interpolated", Fit.UNITS).quality.regret_percent == (), "many fits, no ranking"
    assert named(found, "interpolated", Fit.UNITS).learned_from == 23
    assert named(found, "interpolated", Fit.NONE).learned_from == 0


@pytest.mark.parametrize(
    "way",
    [
        Way("interpolated", Fit.UNITS),
        Way("interpolated", Fit.LAYERS),
        Way("learned", Fit.COMPANY),
        Way("learned", Fit.OWN),
    ],
)
def test_what_a_plan_took_has_no_part_in_its_prediction(way: Way, tmp_path: Path) -> None:
    found = executions(document(SLOW_UNITS), tmp_path)
    first, *rest = found.executed
    lie = replace(first, period_us=7 * first.period_us, chunk_us=tuple(3 * t for t in first.chunk_us))
    honest, changed = (way.left_out_us(found, [one, *rest]) for one in (first, lie))
    assert honest[0] == changed[0]
    assert honest[1:] != changed[1:]


def test_the_same_plan_executed_twice_is_left_out_as_one(tmp_path: Path) -> None:
    found = executions(document(SLOW_UNITS), tmp_path)
    first, *rest = found.executed
    twin = replace(first, chunk_us=tuple(3 * t for t in first.chunk_us))
    for way in (Way("interpolated", Fit.UNITS), Way("learned", Fit.COMPANY)):
        alone = way.left_out_us(found, [first, *rest])[0]
        assert way.left_out_us(found, [first, twin, *rest])[0] == alone


@pytest.mark.slow
def test_plans_of_one_chunk_are_judged_apart(tmp_path: Path) -> None:
    found = evaluate(with_serial(executions(document(), tmp_path)))
    assert named(found, "heavy", Fit.NONE, MULTI).quality.plans == 24
    assert named(found, "heavy", Fit.NONE, ALL).quality.plans == 25


def test_plans_of_one_chunk_alone_can_be_judged(tmp_path: Path) -> None:
    found = with_serial(executions(document(), tmp_path))
    single = replace(found, executed=found.executed[-1:])
    assert {one.quality.scope for one in evaluate(single)} == {ALL}
    assert learning_curve(single) == ()
    assert noise_floor(single) == ()


@pytest.mark.slow
def test_plans_of_repeated_chunks_are_judged_like_their_noise_floor(tmp_path: Path) -> None:
    made = document(SLOW_UNITS)
    found = executions(made, tmp_path)
    (floor,) = noise_floor(found)
    fitted = named(evaluate(found), "interpolated", Fit.UNITS, REPEATED)
    assert 0 < fitted.quality.plans == floor.plans < 24
    assert fitted.learned_from == 23
    alone = replace(found, executed=found.executed[:1])
    assert {one.quality.scope for one in evaluate(alone)} == {MULTI, ALL}


def test_two_plans_are_enough_to_run(tmp_path: Path) -> None:
    found = executions(document(plans=2), tmp_path)
    for one in evaluate(found):
        assert one.quality.plans == 2
        assert one.quality.pearson is None
        assert one.quality.mape_percent is None, "two plans say too little"
    assert {one.learned_from for one in learning_curve(found)} == {0}


def test_models_that_need_a_missing_table_are_left_out(tmp_path: Path) -> None:
    made = document()
    del made["heavy_ms"]
    found = executions(made, tmp_path)
    assert usable_models(found) == ("isolated",)
    table = found.tables[0]
    unnamed = replace(found, tables=(replace(table, provenance=replace(table.provenance, method="x")),))
    with pytest.raises(InvalidInputError, match="measured as 'x'"):
        evaluate(unnamed)


@pytest.mark.slow
def test_registered_models_are_judged_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(co_run, "_REGISTERED", {})

    class Mine(co_run.MeasuredTable):
        needs = frozenset({"heavy"})

        def combine(
            self, isolated: CostTable | None, heavy: CostTable | None, platform: Platform
        ) -> co_run.CoRunCosts:
            assert heavy is not None
            return co_run.CoRunCosts(costs=heavy)

    co_run.register_co_run_model(Mine("mine"))
    found = evaluate(executions(document(), tmp_path))
    assert named(found, "mine", Fit.NONE).quality.mape_percent == pytest.approx(
        named(found, "heavy", Fit.NONE).quality.mape_percent
    )


@pytest.mark.slow
def test_the_learning_curve_judges_by_the_rest(tmp_path: Path) -> None:
    found = learning_curve(executions(document(SLOW_UNITS), tmp_path), sizes=(3, 12, 24))
    rows = {
        one.learned_from: one
        for one in found
        if one.quality.table == "interpolated" and one.fit in (Fit.NONE, Fit.UNITS)
    }
    assert sorted(rows) == [0, 3, 12]
    assert [rows[size].quality.plans for size in (0, 3, 12)] == [24, 21, 12]
    errors = [rows[size].quality.mape_percent or 0.0 for size in (0, 3, 12)]
    assert errors[0] > errors[1] > errors[2]
    assert all(one.quality.regret_percent for one in rows.values()), "one fit ranks all that are judged"
    orders = [one.order for one in found if one.fit is Fit.COMPANY and one.learned_from == 3]
    assert orders == [Order.BEST, Order.APART]


def test_tuning_learns_in_its_own_order(tmp_path: Path) -> None:
    found = executions(document(SLOW_UNITS), tmp_path)
    heavy = found.problem("heavy")
    best = ranked_by(found, "interpolated", Order.BEST)
    periods = [score(heavy, one.plan).period_us for one in best]
    assert periods == sorted(periods)
    apart = ranked_by(found, "interpolated", Order.APART)
    assert apart[0] == best[0]
    assert plan_distance(apart[0].plan, apart[1].plan) >= APART
    assert sorted(map(str, apart)) == sorted(map(str, best))


@pytest.mark.slow
def test_intervals_hold_what_they_promise(tmp_path: Path) -> None:
    found = executions(document(SLOW_UNITS), tmp_path)
    told = intervals(found)
    assert [one.measured_us for one in told] == sorted(one.period_us for one in found.executed)
    assert all(one.foretold.low_us <= one.foretold.period_us <= one.foretold.high_us for one in told)
    inside = sum(one.foretold.low_us <= one.measured_us <= one.foretold.high_us for one in told)
    assert inside >= 0.8 * len(told)
    only_heavy = replace(found, tables=found.tables[1:])
    assert intervals(only_heavy) == ()


def test_the_noise_floor_of_repeated_runs(tmp_path: Path) -> None:
    found = executions(document(), tmp_path)
    assert [one.table for one in noise_floor(found)] == ["same chunks in other plans"]
    (floor,) = noise_floor(found)
    assert floor.mape_percent == pytest.approx(0.0, abs=1e-6)
    shaken = replace(
        found,
        executed=tuple(replace(one, run_us=(one.period_us, 1.1 * one.period_us)) for one in found.executed),
    )
    halves = noise_floor(shaken)[0]
    assert (halves.table, halves.plans) == ("half of the runs", 24)
    assert halves.mape_percent == pytest.approx(10.0)

"""Corrections: what was really slower is found, what is not known stays, and outliers hardly count."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.profiler.prediction.corrections import UNITS_ONLY, Corrections, Shrinkage, fit_corrections
from gapless.profiler.prediction.executions import ExecutedPlan, Executions

from .executed import LAYERS, UNITS, Factors, document, executions

SLOW_UNITS: Factors = [[1.3, 0.7, 1.1]] * LAYERS
SLOW_LAYERS: Factors = [[random.Random(i).uniform(0.6, 1.6) for _ in UNITS] for i in range(LAYERS)]


def error(problem: Problem, plans: list[ExecutedPlan]) -> float:
    """Return the mean error of the periods that a problem predicts."""
    return fmean(abs(score(problem, one.plan).period_us / one.period_us - 1) for one in plans)


def halves(found: Executions) -> tuple[list[ExecutedPlan], list[ExecutedPlan]]:
    """Return the plans to learn from, and those to judge by."""
    return list(found.executed[::2]), list(found.executed[1::2])


@pytest.mark.parametrize("shrinkage", [UNITS_ONLY, Shrinkage()])
def test_slow_units_are_found(shrinkage: Shrinkage, tmp_path: Path) -> None:
    found = executions(document(SLOW_UNITS), tmp_path)
    problem = found.problem("interpolated")
    seen, unseen = halves(found)
    corrections = fit_corrections(problem, seen, shrinkage=shrinkage)
    assert corrections.unit_factor == pytest.approx(SLOW_UNITS[0], rel=0.08)
    assert error(corrections.applied(problem), unseen) < 0.04 < error(problem, unseen)


def test_slow_layers_are_found_where_units_explain_nothing(tmp_path: Path) -> None:
    found = executions(document(SLOW_LAYERS), tmp_path)
    problem = found.problem("interpolated")
    seen, unseen = halves(found)
    units, layers = (
        error(fit_corrections(problem, seen, shrinkage=kind).applied(problem), unseen)
        for kind in (UNITS_ONLY, Shrinkage())
    )
    assert layers < 0.06
    assert layers < units / 1.5


def test_a_measured_chunk_is_nearly_foretold(tmp_path: Path) -> None:
    found = executions(document(SLOW_LAYERS), tmp_path)
    problem = found.problem("interpolated")
    corrected = fit_corrections(problem, found.executed).applied(problem)
    assert error(corrected, list(found.executed)) < 0.04


def test_what_never_ran_is_corrected_like_its_unit(tmp_path: Path) -> None:
    found = executions(document(SLOW_LAYERS), tmp_path)
    problem = found.problem("interpolated")
    seen = [one for one in found.executed if one.plan.chunks[0].unit != "gpu"]
    corrections = fit_corrections(problem, seen)
    assert corrections.layer_factor[0][UNITS.index("gpu")] == 1
    assert corrections.layer_factor[0][UNITS.index("big")] != 1


def test_no_plans_teach_nothing(tmp_path: Path) -> None:
    problem = executions(document(), tmp_path).problem("heavy")
    nothing = Corrections(unit_factor=(1.0,) * len(UNITS), layer_factor=((1.0,) * len(UNITS),) * LAYERS)
    assert fit_corrections(problem, []) == nothing
    assert nothing.applied(problem) == problem


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_plans_help_and_do_no_harm(count: int, tmp_path: Path) -> None:
    found = executions(document(SLOW_UNITS), tmp_path)
    problem = found.problem("interpolated")
    seen, unseen = list(found.executed[:count]), list(found.executed[count:])
    assert error(fit_corrections(problem, seen).applied(problem), seen) < error(problem, seen)
    assert error(fit_corrections(problem, seen).applied(problem), unseen) < 1.1 * error(problem, unseen)


def test_one_wild_chunk_hardly_counts_for_layers(tmp_path: Path) -> None:
    found = executions(document(SLOW_LAYERS), tmp_path)
    problem = found.problem("interpolated")
    first = found.executed[0]
    least = min(first.chunk_us)
    wild = replace(first, chunk_us=tuple(5 * t if t == least else t for t in first.chunk_us))
    wild = replace(wild, period_us=first.period_us)
    calm, shaken = (
        fit_corrections(problem, [one, *found.executed[1:]]).applied(problem) for one in (first, wild)
    )
    rest = list(found.executed[1:])
    assert error(shaken, rest) < error(calm, rest) + 0.03


@pytest.mark.parametrize("shrinkage", [UNITS_ONLY, Shrinkage()])
def test_periods_alone_teach_too(shrinkage: Shrinkage, tmp_path: Path) -> None:
    found = executions(document(SLOW_UNITS), tmp_path)
    problem = found.problem("interpolated")
    seen, unseen = halves(found)
    blind = [replace(one, chunk_us=()) for one in seen]
    corrected = fit_corrections(problem, blind, shrinkage=shrinkage).applied(problem)
    assert error(corrected, unseen) < 0.6 * error(problem, unseen)


def test_every_table_is_corrected_and_stays_whole(tmp_path: Path) -> None:
    made = document(SLOW_UNITS)
    for method in ("isolated_ms", "heavy_ms"):
        made[method][0][2] = None
    made["schedules"] = [s for s in made["schedules"] if s["chunks"][0]["unit"] != "gpu"]
    problem = executions(made, tmp_path).problem("interpolated")
    corrections = fit_corrections(problem, executions(made, tmp_path).executed)
    corrected = corrections.applied(problem)
    assert problem.co_run_costs is not None
    assert corrected.co_run_costs is not None
    for before, after in zip(
        (problem.costs, *problem.co_run_costs), (corrected.costs, *corrected.co_run_costs), strict=True
    ):
        old, new = before.networks[0].layer_us, after.networks[0].layer_us
        assert new[0][2] is None
        assert new[1][1] == round(
            (old[1][1] or 0) * corrections.unit_factor[1] * corrections.layer_factor[1][1]
        )


@pytest.mark.slow
@given(seed=st.integers(0, 10_000), count=st.integers(0, 8), chunks=st.booleans())
def test_whatever_was_measured_corrections_are_sane(
    seed: int, count: int, chunks: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("made")
    found = executions(document(plans=12, seed=seed), folder)
    problem = found.problem(rng.choice(["isolated", "heavy", "interpolated"]))
    shaken = [
        replace(
            one,
            period_us=one.period_us * 10 ** rng.uniform(-2, 2),
            chunk_us=tuple(t * 10 ** rng.uniform(-2, 2) for t in one.chunk_us) if chunks else (),
        )
        for one in found.executed[:count]
    ]
    corrections = fit_corrections(problem, shaken)
    assert all(factor > 0 for factor in corrections.unit_factor)
    assert all(0.2 <= factor < 1000 for row in corrections.layer_factor for factor in row)
    assert all(score(corrections.applied(problem), one.plan).period_us > 0 for one in found.executed)


def test_chunks_that_are_never_long_do_not_correct_their_unit(tmp_path: Path) -> None:
    """Chunks of a hundredth of their plans that take four times what was expected are noise."""
    found = executions(document(), tmp_path)
    problem = found.problem("interpolated")
    shaken = []
    for one in found.executed:
        factors = [4 if chunk.unit == "gpu" else 400 for chunk in one.plan.chunks]
        times = [us * factor for us, factor in zip(one.chunk_us, factors, strict=True)]
        if any(chunk.unit == "gpu" for chunk in one.plan.chunks):
            shaken.append(replace(one, chunk_us=tuple(times), period_us=max(times)))
    corrections = fit_corrections(problem, shaken[:2], shrinkage=UNITS_ONLY)
    gpu, big = (corrections.unit_factor[UNITS.index(unit)] for unit in ("gpu", "big"))
    assert gpu < 0.1 * big, "the others are a hundred times dearer, and nothing is said of the gpu"

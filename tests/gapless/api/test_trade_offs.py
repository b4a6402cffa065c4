"""Trade-offs as users ask for them: in Python, as a file, a picture, a page, and measured."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from matplotlib import pyplot
from rich.console import Console

import gapless
from gapless.answers.front import front_blocks, status_words
from gapless.api.trade_offs import measured_front
from gapless.files.pareto_file import dump_front, front_of, load_front
from gapless.formulations.energy import powers_of
from gapless.formulations.errors import InvalidInputError
from gapless.plots import plot_front
from gapless.solvers.chunking.samples import powered
from gapless.view.page.results import front_page
from gapless.view.presenter import presenter_of
from gapless.view.terminal.blocks import blocks_view


@pytest.fixture(scope="module")
def problem() -> gapless.Problem:
    return powered(gapless.load_problem("pixel7a/alexnet-sparse"))


@pytest.fixture(scope="module")
def front(problem: gapless.Problem) -> gapless.results.ParetoFront:
    return gapless.pareto(problem, "period,energy,latency")


def test_points_are_sorted_and_none_is_beaten(front: gapless.results.ParetoFront) -> None:
    values = [point.values for point in front.points]
    assert values == sorted(values)
    assert front.terms == ("period", "energy", "latency")
    assert front.complete


def test_a_file_is_read_as_it_was_written(
    tmp_path: Path, problem: gapless.Problem, front: gapless.results.ParetoFront
) -> None:
    path = tmp_path / "front.json"
    path.write_text(dump_front(front, problem))
    document, origin = load_front(path)
    assert origin.fingerprint == problem.fingerprint
    assert front_of(document, problem, path).points == front.points
    other = problem.with_limits(max_units=2)
    with pytest.raises(InvalidInputError, match="another problem"):
        front_of(document, other, path)


def test_the_picture_has_all_points(problem: gapless.Problem, front: gapless.results.ParetoFront) -> None:
    axes = plot_front(front, problem)
    (drawn,) = axes.collections
    assert len(drawn.get_offsets()) == len(front.points)  # type: ignore[arg-type]
    assert axes.get_ylabel() == "energy per request (mJ)"
    pyplot.close("all")
    with pytest.raises(InvalidInputError, match="draw two of these terms"):
        plot_front(front, problem, terms=("period", "units"))
    with pytest.raises(InvalidInputError, match="nothing to draw"):
        plot_front(replace(front, points=()), problem)


def test_the_page_has_every_plan(problem: gapless.Problem, front: gapless.results.ParetoFront) -> None:
    page = front_page(front, problem)
    assert all(point.candidate.plan.plan_id in page for point in front.points)
    assert page.count('class="plane scatter"') == 3
    with pytest.raises(InvalidInputError, match="nothing to report"):
        front_page(replace(front, points=()), problem)


def test_words(problem: gapless.Problem, front: gapless.results.ParetoFront) -> None:
    trade_offs = f"these {len(front.points)} plans are all trade-offs"
    assert status_words(front) == f"proved: {trade_offs} among plans with at most one chunk per unit"
    first = replace(front.points[0], proven=False, bound=front.points[0].values[0] // 2)
    short = replace(front, points=(first, *front.points[1:]), complete=False)
    assert "there may be more" in status_words(short)
    out = StringIO()
    Console(file=out, width=160).print(blocks_view(front_blocks(problem, short, presenter_of(problem))))
    assert "gap 50" in out.getvalue()
    assert "INCOMPLETE" in out.getvalue()


def test_tuning_measures_every_point(problem: gapless.Problem) -> None:
    tuned = gapless.tuning.tune_simulated(problem, problem, pareto="period,energy", noise_permille=20)
    assert tuned.front is not None
    powers = powers_of(problem.platform)
    assert powers is not None
    rows = {row.candidate.deployment.plan: row for row in tuned.result.rows}
    for point in tuned.front.points:
        row = rows[point.candidate.plan]
        assert row.period_us is not None
        busy = zip(point.candidate.plan.chunks, row.chunk_us, strict=True)
        energy = powers.idle_mw * row.period_us.median + sum(
            powers.extra_mw[problem.platform.index_of(chunk.unit)] * time for chunk, time in busy
        )
        assert point.measured["energy_nj"] == pytest.approx(energy)
        assert point.measured["period_us"] == row.period_us.median
    assert "computed" in tuned.front.energy_by
    told = measured_front(tuned.front, problem, [replace(row, watts=5.0) for row in tuned.result.rows])
    assert "measured by the machine" in told.energy_by
    point = told.points[0]
    assert point.measured["energy_nj"] == pytest.approx(5000 * point.measured["period_us"])


def test_tuning_refuses_what_fronts_have_not(problem: gapless.Problem) -> None:
    with pytest.raises(InvalidInputError, match="leave out several rounds and an objective"):
        gapless.tuning.tune_simulated(problem, problem, pareto="period,energy", rounds=2, objective="period")

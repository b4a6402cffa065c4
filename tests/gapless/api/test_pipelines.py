"""Pipelines on one board: the same problem, planned and tuned with several of them side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import gapless
from gapless.api.tuning import tune_simulated
from gapless.executor.tuning.candidates import CandidateKind
from gapless.executor.tuning.racing import TuningOptions
from gapless.formulations.errors import InvalidInputError, InvalidProblemError
from gapless.formulations.files import dump_problem, load_problem
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective
from tests.pipeline_boards import one_board, six_devices
from tests.workload_instances import workload_problem


def table() -> Problem:
    """Return a problem of two units on which replicas are best, without pipelines."""
    return gapless.table_problem([[4, 6], [4, 6], [1, 3]], ["big", "small"], network="net")


def test_a_board_with_pipelines_is_the_same_board() -> None:
    plain = table()
    many = gapless.with_pipelines(plain, "many")
    assert (many.platform, many.networks, many.costs) == (plain.platform, plain.networks, plain.costs)
    assert many.objective == Objective(terms=("throughput",))
    assert many.data.most is None
    assert gapless.with_pipelines(plain, "one").data.most == 1
    assert gapless.with_pipelines(plain, 2) == gapless.with_pipelines(plain, "2")
    assert gapless.with_pipelines(plain.with_objective("latency"), "many").objective.first == "latency"
    limited = gapless.with_pipelines(six_devices(), 2)
    assert limited == replace(six_devices(), data=replace(six_devices().data, most=2))


def test_several_pipelines_serve_more() -> None:
    one, many = (
        gapless.plan(table(), pipelines=count, backend="exhaustive").candidates[0]
        for count in ("one", "many")
    )
    assert str(one.plan) == "0-0 small | 1-2 big"
    assert str(many.plan) == "pipeline 1: 0-2 big; pipeline 2: 0-2 small"
    assert one.score.throughput == pytest.approx(1e6 / 6000)
    assert many.score.throughput == pytest.approx(1e6 / 9000 + 1e6 / 15000)
    compared = gapless.compare(table(), pipelines="many", backends=["exhaustive", "cpsat"])
    assert not compared.disagreements
    assert {result.plan for result in compared.results} == {many.plan}


@pytest.mark.parametrize("text", ["", "none", "0", "-1", "1.5", "12345678901"])
def test_what_is_no_number_of_pipelines_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="must be many, one, or a number"):
        gapless.with_pipelines(table(), text)


def test_what_has_no_pipelines_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="pipelines are of one network"):
        gapless.with_pipelines(workload_problem({"a": [[1, 2]]}, ["a"]), "many")
    ruled = table().with_rules(lambda view: view.uses("big"))
    with pytest.raises(InvalidInputError, match="give them again"):
        gapless.with_pipelines(ruled, "many")
    with pytest.raises(InvalidProblemError, match="bubbles"):
        gapless.with_pipelines(table().with_objective("bubbles"), "many")


def test_they_survive_files(tmp_path: Path) -> None:
    problem = gapless.with_pipelines(table(), 3)
    (tmp_path / "problem.json").write_text(dump_problem(problem))
    assert load_problem(tmp_path / "problem.json") == problem


def test_tuning_races_pipelines_beside_single_ones_and_baselines() -> None:
    tuned = tune_simulated(
        table(),
        table(),
        pipelines="many",
        backends=["exhaustive"],
        top=3,
        options=TuningOptions(budget_s=5),
    )
    rows = {row.candidate.label: row.candidate for row in tuned.result.rows}
    both = rows["plan 1 = replicas on big+small"]
    assert both.kind is CandidateKind.BASELINE
    assert str(both.deployment.plan) == "pipeline 1: 0-2 big; pipeline 2: 0-2 small"
    assert both.expected_us == 5625, "one over the sum of the rates"
    assert {"plan 2", "plan 3"} < set(rows)
    assert {"serial on big", "serial on small"} <= {name for label in rows for name in label.split(" = ")}
    single = [one for one in rows.values() if len(one.deployment.streams) == 1 and one.rank is not None]
    assert single, "a single pipeline takes part, too"
    assert tuned.plan == both.deployment.plan
    winner = tuned.result.winner
    assert winner is not None
    assert winner.candidate is both or winner.candidate == both


def test_what_makes_no_sense_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidInputError, match="makes no request faster"):
        tune_simulated(table(), table(), pipelines="many", objective="latency")
    with pytest.raises(InvalidInputError, match=r"rounds is 2: .* single pipeline"):
        tune_simulated(table(), table(), pipelines="many", rounds=2)
    with pytest.raises(InvalidInputError, match=r"rounds is 2: .* single pipeline"):
        tune_simulated(one_board(), one_board(), rounds=2)
    with pytest.raises(InvalidInputError, match="can be simulated"):
        gapless.tune(six_devices())


@pytest.mark.slow
def test_co_run_costs_count_the_units_of_all_pipelines() -> None:
    plain = table()
    slower = replace(
        plain.costs,
        networks=tuple(
            replace(one, layer_us=tuple(tuple((time or 0) * 3 for time in row) for row in one.layer_us))
            for one in plain.costs.networks
        ),
    )
    problem = gapless.with_pipelines(replace(plain, co_run_costs=(slower,)), "many")
    for backend in ("exhaustive", "cpsat"):
        found = gapless.plan(problem, backend=backend, top=3)
        assert str(found.plan) == "0-2 big", "in company both are three times as slow"
        company = next(c for c in found.candidates if len({k.unit for k in c.plan.chunks}) == 2)
        assert company.score.throughput == pytest.approx((1e6 / 9000 + 1e6 / 15000) / 3)

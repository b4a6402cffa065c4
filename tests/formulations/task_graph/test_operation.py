"""Layers side by side in a race: who else runs, and by which table each is charged."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.executor.tuning.candidates import asked_pace, baselines, plan_candidates, predicted
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.judge import score
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Chunk, Plan

from .test_pieces import branches, side_by_side


def test_rivals_use_two_units_or_are_chunks_in_a_row() -> None:
    problem = branches()
    layers, whole, chain = operation_of(problem).rivals(problem)
    assert layers.limits.min_units == whole.limits.min_units == 2
    assert whole.data.segments == ((1, 2),)
    assert (chain.data, chain.objective.terms) == (None, ("latency",))
    (alone,) = operation_of(problem).rivals(replace(problem, limits=replace(problem.limits, max_units=1)))
    assert alone.data is None
    assert gapless.plan(layers).objective == 12_000
    assert gapless.plan(whole).objective == 12_000


def test_each_candidate_is_charged_for_what_it_does() -> None:
    problem = branches()
    tables = {"given": problem}
    (planned,) = plan_candidates([side_by_side()], tables=tables)
    assert planned.predicted("given") == score(problem, side_by_side()).value("latency") == 12_000
    single = [predicted(one, tables) for one in baselines(problem)]
    assert [(one.label, one.predicted("given")) for one in single] == [
        ("serial on x", 17_000),
        ("serial on y", 17_000),
    ]
    assert asked_pace(problem) == "latency"
    # Chunks in a row wait for each other, though the branches would not have to.
    chain = list(operation_of(problem).rivals(problem))[-1]
    chunks = ((0, 3, "x"), (3, 5, "y"))
    row = Plan(chunks=tuple(Chunk(network="network", start=a, stop=b, unit=unit) for a, b, unit in chunks))
    (rival,) = plan_candidates([row], tables=tables, planned=chain)
    assert rival.predicted("given") == 17_000
    assert score(problem, row).value("latency") == 12_000


def test_devices_that_links_join_are_not_run_here() -> None:
    problem = gapless.with_side_by_side(
        gapless.cluster_problem("squeezenet", "raspberry-pis", pipelines="one")
    )
    with pytest.raises(InvalidInputError, match="for several devices"):
        operation_of(problem).check_executable(problem)

"""What the answers of several backends say about each other."""

from __future__ import annotations

from dataclasses import replace

import gapless
from gapless.api.comparison import Comparison
from gapless.solvers.protocol import SolveStatus


def comparison() -> Comparison:
    """Return two answers: the optimum with its proof, and a worse plan without any bound."""
    problem = gapless.table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net", objective="period")
    best = gapless.plan(problem)
    whole = next(c for c in gapless.plan(problem, top=9).candidates if len(c.plan.chunks) == 1)
    values = whole.score.values(problem.objective.terms)
    worse = replace(
        best,
        backend="guess",
        status=SolveStatus.FEASIBLE,
        candidates=(whole,),
        objective=values[0],
        values=values,
        bound=None,
        proven=0,
        exhausted=False,
    )
    return Comparison(problem=problem, results=(best, worse), failures=(), disagreements=())


def test_a_plan_is_held_against_the_best_plan_and_the_best_bound() -> None:
    found = comparison()
    best, worse = found.results
    assert best.objective is not None
    assert worse.objective is not None
    assert found.bound == best.objective
    assert worse.gap is None
    assert found.gap_to_best_bound(worse) == (worse.objective - best.objective) / worse.objective
    assert found.above_best(worse) == (worse.objective - best.objective) / best.objective
    assert (found.gap_to_best_bound(best), found.above_best(best)) == (0.0, 0.0)


def test_a_refuted_bound_is_none() -> None:
    found = comparison()
    best, worse = found.results
    lie = replace(worse, bound=worse.objective)
    unproven = replace(best, status=SolveStatus.FEASIBLE, bound=None, proven=0, exhausted=False)
    refuted = replace(found, results=(lie, unproven))
    assert refuted.bound is None
    assert refuted.gap_to_best_bound(lie) is None
    assert replace(found, results=()).bound is None

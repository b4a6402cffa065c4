"""The space of plans of one network."""

from __future__ import annotations

import pytest

from gapless.formulations.chunking.space import all_parts, count_parts
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.judge import malformations
from gapless.solvers.chunking.samples import sample_problem
from tests.solvers.brute import problem_of, random_problem


@pytest.mark.parametrize(
    ("rows", "count"), [([[1]], 1), ([[1, 1]], 2), ([[1, 1]] * 2, 4), ([[1, 1]] * 3, 6), ([[1] * 3] * 3, 21)]
)
def test_plans_are_counted(rows: list[list[int | None]], count: int) -> None:
    # Of n layers on m units: the sum of C(n - 1, k - 1) m! / (m - k)! over k chunks.
    chain = chain_of(problem_of(rows))
    assert len(list(all_parts(chain))) == count == count_parts(chain)


@pytest.mark.parametrize("seed", range(4))
def test_every_plan_is_there_once_and_well_formed(seed: int) -> None:
    problem = random_problem(seed, layers=5, features="n")
    plans = list(all_parts(chain_of(problem)))
    assert len(set(plans)) == len(plans) <= count_parts(chain_of(problem))
    for parts in plans:
        assert malformations(problem, chain_of(problem).plan(parts)) == ()


def test_layers_that_a_unit_cannot_run_are_left_out() -> None:
    problem = sample_problem()
    stuck = {("gpu", 2), ("little", 5)}
    for parts in all_parts(chain_of(problem)):
        plan = chain_of(problem).plan(parts)
        placed = {(chunk.unit, layer) for chunk in plan.chunks for layer in range(chunk.start, chunk.stop)}
        assert not placed & stuck

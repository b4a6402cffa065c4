"""Units that take turns on one resource: native and the exact backends list the plans of the oracle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.problem import Problem
from gapless.solvers.chunking.tables import Restrictions
from gapless.solvers.passage import solving
from gapless.solvers.passage.descent import Annealing
from gapless.solvers.passage.prices import Paths, price, price_set
from gapless.solvers.passage.samples import random_problem as drawn
from gapless.solvers.passage.samples import taking_turns
from gapless.solvers.passage.table import build_table
from gapless.solvers.protocol import NEVER, SolveOptions
from gapless.solvers.session import solve

from .test_lists import problem_of


def agree(problem: Problem, backend: str, top: int, what: object) -> None:
    """Assert that a backend lists what the oracle lists."""
    known = solve(problem, "exhaustive", SolveOptions(top=top), explain=False)
    found = solve(problem, backend, SolveOptions(top=top), explain=False)
    assert found.status is known.status, what
    assert [c.plan for c in found.candidates] == [c.plan for c in known.candidates], what
    assert found.values == known.values, what


@pytest.mark.parametrize("first", range(0, 72, 24))
def test_native_lists_what_the_oracle_lists(first: int) -> None:
    for seed in range(first, first + 24):
        agree(taking_turns(problem_of(seed)), "native", 1 + seed % 6, seed)


@pytest.mark.parametrize(
    "objective", ["period", "period,hops", "latency,period", "period,gapness", "energy,period"]
)
def test_narrow_sweeps_and_both_searches_for_plans_agree(
    objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solving, "_ENUMERABLE", 1)
    monkeypatch.setattr(solving, "_FIRST_WIDTH", 2)
    monkeypatch.setattr(solving, "_LISTABLE", 1)
    monkeypatch.setattr(solving, "_LONG", 1)
    for seed in range(2):
        problem = taking_turns(drawn(6, 3, seed=seed))
        powers = tuple(
            replace(unit, power_mw=300 * at + 200, idle_mw=9)
            for at, unit in enumerate(problem.platform.units)
        )
        powered = replace(problem, platform=replace(problem.platform, units=powers))
        agree(powered.with_objective(objective), "native", 5, seed)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "pulp", "z3"])
def test_exact_backends_list_what_the_oracle_lists(backend: str) -> None:
    for seed in range(0, 12, 2):
        agree(taking_turns(problem_of(seed)), backend, 3, seed)


def test_prices_of_resources_prove_as_much_as_any_others() -> None:
    problem = taking_turns(drawn(6, 3, seed=4).with_objective("period"))
    table = build_table(chain_of(problem), Restrictions())
    found, paths = price(table, NEVER), Paths(table)
    assert found.best[1] == 0, "the second unit has the price of the first one"
    proved = paths.cheapest(found.best)[0] / table.scale
    best = solve(problem, "exhaustive", SolveOptions(), explain=False).objective
    assert best is not None
    assert proved <= best
    assert max(paths.cheapest([a, 0, 40 - a])[0] / 40 for a in range(41)) <= 1.001 * proved
    of_units = price_set(found, table)
    assert (of_units[:, 0] == of_units[:, 1]).all()
    assert (of_units[:, 0] + of_units[:, 2] == table.scale).all()


def test_annealing_looks_at_the_load_of_the_resource() -> None:
    problem = taking_turns(drawn(12, 3, seed=2).with_objective("period"))
    table = build_table(chain_of(problem), Restrictions())
    paths, units = Paths(table), [0, 1] * 6
    found = Annealing(table, 0).near(units, paths.loads(units), 3000, NEVER)
    best = solve(problem, "native", SolveOptions(), explain=False).objective
    assert best is not None
    assert best <= max(paths.pooled(found)) <= 1.1 * best

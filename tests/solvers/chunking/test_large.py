"""Instances beyond brute force: different searches must find the same lists."""

from __future__ import annotations

import numpy as np
import pytest

from gapless.formulations.chunking.rules import latency_cap, pin
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network
from gapless.formulations.problem import Problem
from gapless.solvers.chunking import instance, widening
from gapless.solvers.native import NativeBackend
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus, StopReason


def chain_problem(rows: list[list[int]]) -> Problem:
    """Return a problem with these times."""
    names = tuple(f"u{unit}" for unit in range(len(rows[0])))
    return Problem(
        platform=Platform(name="p", units=tuple(ProcessingUnit(name=name) for name in names)),
        networks=(Network(name="n", layers=tuple(Layer(name=f"l{i}") for i in range(len(rows)))),),
        costs=CostTable(units=names, networks=(NetworkCosts(network="n", layer_us=tuple(map(tuple, rows))),)),
    )


def rows_of(kind: str, layers: int, units: int) -> list[list[int]]:
    """Return times of one kind of network."""
    draw = np.random.default_rng(7)
    base = np.exp(draw.uniform(np.log(50), np.log(5000), layers))
    factors = draw.uniform(1, 6, units)
    if kind == "plateau":
        base[layers // 2] = 2 * base.sum()
    if kind == "equal layers":
        base[:] = 1000
    if kind == "identical units":
        factors[:] = 1
    rows: list[list[int]] = np.maximum(1, np.outer(base, factors).astype(np.int64)).tolist()
    return rows


def solve(problem: Problem, top: int = 20, time_limit_s: float | None = None) -> Claim:
    return NativeBackend().solve(problem, SolveOptions(top=top, time_limit_s=time_limit_s))


KINDS = ("mixed", "plateau", "equal layers", "identical units")


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["period,gapness", "gapness", "latency", "peak_memory,idle"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_searches_agree(kind: str, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = chain_problem(rows_of(kind, 30, 5)).with_objective(objective)
    first = solve(problem)
    monkeypatch.setattr(widening, "_SMALL_GRAPH", 0)
    monkeypatch.setattr(widening, "_ENUMERABLE", 0)
    monkeypatch.setattr(widening, "_GRAPH", 20_000)
    monkeypatch.setattr(instance, "_LATTICE_POINTS", (12, 1))
    second = solve(problem)
    assert first.stop is second.stop is StopReason.COMPLETE
    assert first.plans == second.plans
    assert first.proven == 20


@pytest.mark.parametrize("kind", KINDS)
def test_longer_lists_begin_alike(kind: str) -> None:
    problem = chain_problem(rows_of(kind, 60, 8))
    assert solve(problem, top=60).plans[:20] == solve(problem).plans


def test_identical_units_are_listed_in_order_of_their_index() -> None:
    claim = solve(chain_problem([[10] * 8] * 40))
    order = [[chunk.unit for chunk in plan.chunks] for plan in claim.plans]
    assert order[0] == [f"u{unit}" for unit in range(8)]
    assert order == sorted(order)


def test_sixty_four_units() -> None:
    claim = solve(chain_problem(rows_of("identical units", 100, 64)), top=3)
    assert claim.status is SolveStatus.OPTIMAL
    assert claim.proven == 3


def test_filter_equals_the_rule_that_says_the_same() -> None:
    problem = chain_problem(rows_of("mixed", 30, 5))
    rule = problem.with_rules(lambda view: 10 * view.gapness_us() <= 2 * view.period_us())
    assert solve(problem.with_limits(min_balance_permille=800)).plans == solve(rule).plans


def test_cap_on_the_latency_equals_brute_selection() -> None:
    problem = chain_problem(rows_of("mixed", 30, 4))
    cap = 12 * (solve(problem.with_objective("latency"), top=1).values or (0,))[0] // 10
    capped = solve(problem.with_rules(latency_cap(most_us=cap)), top=5)
    assert capped.proven == 5
    totals = [
        sum(chain_of(problem).busy_us(*part) for part in chain_of(problem).parts(p)) for p in capped.plans
    ]
    assert max(totals) <= cap
    unpinned = solve(problem.with_rules(latency_cap(most_us=cap), pin(0, unit="u0")), top=5)
    assert (unpinned.bound or 0) >= (capped.bound or 0)

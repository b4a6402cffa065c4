"""Each step of the paper's planners changes a plan: one instance for a step, where no other step does.

The numbers are made so that a planner without the step, or with half of it, finds another plan.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.flow_shop.tables import Schedule, shop_of
from gapless.formulations.network import Layer, Network
from gapless.formulations.problem import Problem
from gapless.formulations.workload import LoadPolicy, Request, RequestOrder, Workload
from gapless.solvers.flow_shop.baselines import network_arrays
from gapless.solvers.flow_shop.hetero2pipe import fitted, merit
from gapless.solvers.protocol import NEVER
from gapless.solvers.session import solve
from tests.workload_instances import workload_problem

Table = list[list[int | None]]

HEAVY: Table = [[4, 4], [9, 9]]
"""Sliced 4 + 9: critical beside LIGHT."""

LIGHT: Table = [[2, 1]] * 6
"""Sliced 4 + 4; beside HEAVY its first chunk may take up to 9."""

WHOLE: Table = [[10, 12], [10, 12]]
"""Sliced 10 + 12, and done in 20 on the first unit alone."""

FIRST_ONLY: Table = [[1, None]]
SECOND_ONLY: Table = [[None, 1]]


def test_work_stealing_fills_the_column_of_the_critical_request() -> None:
    problem = workload_problem({"heavy": HEAVY, "light": LIGHT}, ["heavy", "light"])
    assert solve(problem, "hungarian").objective == 4 + 9 + 4  # slices, and does not steal
    assert solve(problem, "hetero2pipe-noct").objective == 4 + 9 + 2
    assert solve(problem, "hetero2pipe-not").objective == 4 + 9 + 2


def test_work_stealing_looks_at_every_window() -> None:
    """The critical request and the one that steals for it are the second and the third: K is 2."""
    tables = {"first": FIRST_ONLY, "heavy": HEAVY, "light": LIGHT}
    problem = workload_problem(tables, ["first", "heavy", "light"])
    assert solve(problem, "hungarian").objective == 1 + 4 + 9 + 4
    assert solve(problem, "hetero2pipe-noct").objective == 1 + 4 + 9 + 2


def test_the_tail_is_as_long_as_there_are_units() -> None:
    """The request that is better run whole is the last but one, then the last but two: K is 2."""
    tables = {"whole": WHOLE, "second": SECOND_ONLY}
    last_but_one = workload_problem(tables, ["whole", "second"])
    assert solve(last_but_one, "hetero2pipe-noct").objective == 10 + 12 + 1
    assert solve(last_but_one, "hetero2pipe-noc").objective == 20
    assert solve(last_but_one, "hetero2pipe").objective == 20
    last_but_two = workload_problem(tables, ["whole", "second", "second"])
    assert solve(last_but_two, "hetero2pipe").objective == 10 + 12 + 1 + 1


@pytest.mark.parametrize(
    ("planner", "mitigates"),
    [
        ("hetero2pipe", True),
        ("hetero2pipe-not", True),
        ("hetero2pipe-nos", True),
        ("hungarian", True),
        ("hetero2pipe-noc", False),
        ("hetero2pipe-noct", False),
    ],
)
def test_mitigation_moves_a_low_request_between_high_ones(planner: str, mitigates: bool) -> None:
    tables: dict[str, Table] = {"high": [[9, 9]], "low": [[2, 2]]}
    problem = workload_problem(tables, ["high", "high", "low", "low", "low"], high=("high",))
    found = solve(problem, planner)
    assert found.plan is not None
    kinds = [name.rstrip("01234") for name in found.plan.order]
    apart = ["high", "low", "high", "low", "low"]
    assert kinds == (apart if mitigates else ["high", "high", "low", "low", "low"])


def with_weights(problem: Problem, weights: dict[str, list[int]], memory_bytes: int) -> Problem:
    """Return the problem with bytes of weights by layer, on a device with less memory."""
    networks = tuple(
        Network(name=name, layers=tuple(Layer(name=f"l{i}", weight_bytes=own) for i, own in enumerate(sizes)))
        for name, sizes in weights.items()
    )
    return replace(problem, networks=networks, platform=replace(problem.platform, memory_bytes=memory_bytes))


@pytest.mark.parametrize("order", RequestOrder)
def test_a_plan_that_does_not_fit_is_changed_until_it_does(order: RequestOrder) -> None:
    """Sliced in order of arrival, the large layers of both are in memory together: 200 bytes.

    In the other order they are not; where the order is fixed, the first one has to run whole.
    """
    tables: dict[str, Table] = {"late": [[5, 9], [9, 5]], "early": [[5, 9], [9, 5]]}
    weights = {"late": [1, 100], "early": [100, 1]}
    running = Workload(
        requests=(Request(name="any", network="late"),), load_policy=LoadPolicy.RUNNING, order=order
    )
    problem = with_weights(workload_problem(tables, ["late", "early"], workload=running), weights, 199)
    shop = shop_of(problem)
    sliced = Schedule((0, 1), ((0, 1, 2), (0, 1, 2)))
    assert merit(shop, sliced) == (1, 5 + 5 + 5)
    changed = fitted(shop, network_arrays(shop), sliced, NEVER)
    swapped = Schedule((1, 0), sliced.cuts)
    whole = Schedule((0, 1), ((0, 2, 2), (0, 1, 2)))
    assert changed == (swapped if order is RequestOrder.FREE else whole)
    assert merit(shop, changed) == (0, 15 if order is RequestOrder.FREE else 24)
    assert solve(problem, "hungarian").objective == merit(shop, changed)[1]


def test_band_counts_copies() -> None:
    """The first unit computes faster (4 against 5), but the copies to it cost more than that gains."""
    tables: dict[str, Table] = {"net": [[4, 5], [4, 5]]}
    copies = {"net": [[7, 0], [2, 0], [0, 0]]}
    found = solve(workload_problem(tables, ["net"], copies=copies), "band")
    assert found.plan is not None
    assert [(chunk.start, chunk.stop, chunk.unit) for chunk in found.plan.chunks] == [(0, 2, "big")]
    assert found.objective == 10


def test_annealing_goes_through_worse_plans() -> None:
    """From 5 + 5 every move makes it longer (11, 12, 25); two moves lead to all on one unit, in 8."""
    tables: dict[str, Table] = {"net": [[5, 7, 20], [20, 1, 5]]}
    copies = {"net": [[0, 0, 0], [0, 5, 0], [0, 0, 0]]}
    problem = workload_problem(tables, ["net"], copies=copies)
    assert solve(problem, "hungarian").objective == 5 + 5  # where the walk starts
    found = solve(problem, "annealing")
    assert found.objective == 7 + 1

"""Workloads whose slowdown is by slice: backends prove what the exhaustive search finds, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.schedule_instances import sliced
from benchmarks.workload_instances import small_workload
from gapless.formulations.costs import Interference, NetworkContention, SliceContention
from gapless.formulations.errors import UnsupportedFeatureError
from gapless.formulations.flow_shop import slowdown
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.problem import Problem
from gapless.solvers.flow_shop.search import JointSearch, Proof, objective_bound
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve
from gapless.solvers.sources import StartMode
from tests.workload_instances import workload_problem


def drawn(seed: int) -> Problem:
    problem = small_workload(seed)
    known = problem.interference
    assert known is not None
    return sliced(replace(problem, interference=replace(known, high_from_permille=900)), seed)


def proved(problem: Problem, backend: str, limit_s: float | None = None) -> SolveResult:
    return solve(problem, backend, SolveOptions(start=StartMode.NONE, time_limit_s=limit_s))


MORE = (48, 57, 92, 152, 365)
"""Where a bound, or what is left out, is wrong if a chunk loses as much as its worst layer."""

SEEDS = [seed for seed in range(24) if small_workload(seed).interference is not None]


@pytest.mark.parametrize("seed", SEEDS)
def test_backends_agree(seed: int) -> None:
    problem = drawn(seed)
    least, encoded = proved(problem, "exhaustive"), proved(problem, "cpsat")
    assert (encoded.status, encoded.values) == (least.status, least.values)


@pytest.mark.parametrize("term", ["makespan", "contention", "bottleneck", "work", "latency", "bubbles"])
@pytest.mark.parametrize("seed", [*SEEDS, *MORE])
def test_bounds_are_below_the_optimum(seed: int, term: str) -> None:
    """The solver `native` would walk so few plans, and ask for no bound."""
    problem = drawn(seed).with_objective(term)
    least = proved(problem, "exhaustive").values
    assert least is None or objective_bound(problem) <= least[0]


@pytest.mark.parametrize("seed", [*SEEDS, *MORE])
def test_the_search_proves_what_all_plans_say(seed: int) -> None:
    problem = drawn(seed).with_objective("makespan")
    least = proved(problem, "exhaustive").values
    search = JointSearch(problem, proof=Proof.ALWAYS)
    if search.impossible or not search.provable:
        assert least is None or not search.impossible
        return
    assert search.prove()
    assert (search.kept.best and search.kept.best[1:]) == least


def test_most_drawn_workloads_are_proved_by_the_search() -> None:
    searches = [JointSearch(drawn(s).with_objective("makespan"), proof=Proof.ALWAYS) for s in SEEDS]
    assert sum(not search.impossible and search.provable for search in searches) > len(SEEDS) // 2


@pytest.mark.slow
def test_rows_that_know_no_marks_prove_nothing_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many chunks the rows know between what losses are; then more plans are looked at."""
    exact = [proved(drawn(seed), "cpsat") for seed in SEEDS[:6]]
    monkeypatch.setattr(slowdown, "_MOST_MARKED", 0)
    rounds = 0
    for seed, known in zip(SEEDS, exact, strict=False):
        found = proved(drawn(seed), "cpsat", 5.0)
        assert found.bound is None or known.values is None or found.bound <= known.values[0]
        if found.status is SolveStatus.OPTIMAL:
            assert found.values == known.values
        rounds += int(found.statistics["calls"]) > int(known.statistics["calls"])
    assert rounds


def low_as_a_whole(*intensities: int) -> Problem:
    """Return two equal requests on two units: slices of 1000 and more are high, their network is not."""
    problem = workload_problem({"a": [[10, 10] for _ in intensities]}, ["a", "a"])
    slices = tuple(
        SliceContention(start=at, stop=at + 1, intensity_permille=own) for at, own in enumerate(intensities)
    )
    network = NetworkContention(network="a", intensity_permille=900, slices=slices)
    return replace(
        problem,
        interference=Interference(
            units=problem.platform.unit_names,
            slowdown_permille=((0, 100), (100, 0)),
            networks=(network,),
            high_from_permille=1000,
        ),
    )


@pytest.mark.parametrize("backend", ["cpsat", "z3", "pulp"])
def test_equal_requests_are_not_cut_alike_where_slices_are_high(backend: str) -> None:
    """One is split, and the other one is whole on the second unit: then no high slices meet."""
    problem = low_as_a_whole(1500, 1500).with_objective("contention,bottleneck")
    assert proved(problem, "exhaustive").values == (0, 30)
    found = proved(problem, backend)
    assert (found.status, found.values) == (SolveStatus.OPTIMAL, (0, 30))


@pytest.mark.parametrize("backend", ["cpsat", "z3", "pulp"])
def test_rules_about_contention_by_slice_are_refused(backend: str) -> None:
    """By the network there would be no plan: no order makes low requests high."""
    problem = low_as_a_whole(1400, 100, 1400).with_rules(lambda v: v.contention() >= 1)
    assert proved(problem.with_objective("makespan"), "exhaustive").values == (51,)
    with pytest.raises(UnsupportedFeatureError, match="rules about contention are not encoded"):
        proved(problem.with_objective("makespan"), backend)


def test_contention_may_depend_on_cuts_where_the_network_or_a_slice_is_high() -> None:
    for intensities, expected in (((1500, 100), True), ((999, 999), False), ((900, 900), False)):
        shop = shop_of(low_as_a_whole(*intensities))
        assert shop.contention_by_cuts == expected
        assert expected or shop.high == shop.surely_high


@pytest.mark.parametrize("objective", ["contention,makespan", "contention,bottleneck"])
@pytest.mark.parametrize("seed", [*SEEDS, 48])
def test_contention_by_slice_is_minimised(seed: int, objective: str) -> None:
    """Windows count slices: a bound by requests would say that less is impossible."""
    problem = drawn(seed).with_objective(objective)
    least, encoded = proved(problem, "exhaustive"), proved(problem, "cpsat")
    assert (encoded.status, encoded.values) == (least.status, least.values)
    assert least.values is None or objective_bound(problem) <= least.values[0]


def test_in_drawn_workloads_contention_depends_on_cuts_of_networks_that_are_low() -> None:
    shops = [shop_of(drawn(seed)) for seed in SEEDS]
    assert sum(shop.contention_by_cuts and shop.high == shop.surely_high for shop in shops) > 2

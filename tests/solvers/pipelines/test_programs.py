"""The programs over sets of devices against plain walks over all pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, permutations

import numpy as np
import pytest

from gapless.formulations.judge import examined
from gapless.formulations.pipelines.plans import Pipe, Pipes
from gapless.formulations.pipelines.quantities import PipelineValues
from gapless.formulations.pipelines.tables import Cluster, cluster_of
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Term as T
from gapless.solvers.pipelines.arrays import NEVER, build_arrays, merged
from gapless.solvers.pipelines.program import ADDITIVE, Program, States, costs_of
from gapless.solvers.pipelines.relaxed import NONE, Packing, Relaxation, copies, useful_types
from gapless.solvers.pipelines.samples import random_cluster
from gapless.solvers.protocol import Deadline, TimeIsUpError
from tests.pipeline_instances import restricted_problem

SEEDS = range(25)


def bare(seed: int) -> Problem:
    """Return a drawn problem without what the programs do not know."""
    problem = restricted_problem(seed, layers=4)
    limits = dict.fromkeys(("max_period_us", "min_units", "max_units", "max_gapness_us"))
    return Problem(
        platform=problem.platform,
        networks=problem.networks,
        costs=problem.costs,
        data=problem.data,
        objective=problem.objective,
    ).with_limits(**limits)


def pipelines(cluster: Cluster, devices: tuple[int, ...]) -> Iterator[Pipe]:
    """Yield every pipeline over exactly some devices that breaks nothing by itself."""

    def extended(order: tuple[int, ...], at: int, pipe: Pipe) -> Iterator[Pipe]:
        if not order:
            if at == cluster.chain.layer_count:
                yield pipe
            return
        for stop in cluster.chain.cuts:
            if stop > at and cluster.runs(at, stop, order[0]) and cluster.fits(at, stop, order[0]):
                yield from extended(order[1:], stop, (*pipe, (at, stop, order[0])))

    for order in permutations(devices):
        linked = all(cluster.link_us[a][b][0] is not None for a, b in pairwise(order))
        apart = not any(set(cluster.chain.exclusive[a]) & set(order) for a in order)
        ends = cluster.enter_us[order[0]] is not None and cluster.leave_us[order[-1]] is not None
        if linked and apart and ends:
            yield from extended(order, 0, ())


@pytest.mark.parametrize("term", [T.PERIOD, *sorted(ADDITIVE)])
def test_the_least_cost_on_every_set(term: str) -> None:
    for seed in SEEDS:
        cluster = cluster_of(bare(seed))
        arrays = build_arrays(cluster)
        states = States(arrays.counts)
        program = Program(arrays, states, costs_of(term, arrays))
        for state in range(1, states.number):
            devices = first_devices(arrays.kind_of, states.counted(state))
            found = [PipelineValues(cluster, (pipe,)).term(term) for pipe in pipelines(cluster, devices)]
            assert program.least[state] == min(found, default=NEVER), (seed, devices)
            if found:
                rebuilt = on_devices(program.pipeline(state), arrays.cuts, arrays.kind_of)
                assert sorted(d for *_, d in rebuilt) == sorted(devices)
                assert PipelineValues(cluster, (rebuilt,)).term(term) == min(found)


def first_devices(kind_of: tuple[int, ...], counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the first devices of each kind, as many as are counted."""
    own = [[d for d, kind in enumerate(kind_of) if kind == k] for k in range(len(counts))]
    return tuple(sorted(d for devices, count in zip(own, counts, strict=True) for d in devices[:count]))


def on_devices(parts: list[tuple[int, int, int]], cuts: tuple[int, ...], kind_of: tuple[int, ...]) -> Pipe:
    """Return a pipeline by kinds and places on the first devices of the kinds."""
    free = {k: [d for d, kind in enumerate(kind_of) if kind == k] for k in set(kind_of)}
    return tuple((cuts[i], cuts[j], free[kind].pop(0)) for kind, i, j in parts)


def test_what_is_behind_a_place_costs_at_least_what_the_table_says() -> None:
    for seed in SEEDS:
        cluster = cluster_of(bare(seed))
        arrays = build_arrays(cluster)
        states = States(arrays.counts)
        rest = Program(arrays, states, costs_of(T.LATENCY, arrays)).rest()
        every = tuple(range(cluster.device_count))
        for pipe in pipelines(cluster, every):
            whole = PipelineValues(cluster, (pipe,)).latency_us
            assert rest[arrays.kind_of[pipe[0][2]], 0, states.number - 1] <= whole


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_packing_finds_the_largest_sum_of_rates(most: int) -> None:
    rng = np.random.default_rng(most)
    states = States((2, 1, 2))
    types = rng.choice(np.arange(1, states.number), 9, replace=False).tolist()
    rates = rng.integers(1, 100, 9).tolist()
    packing = Packing(states, types, rates, most=most)
    known = {0: 0}
    for _ in range(most):
        for state, rate in list(known.items()):
            for type_, own in zip(types, rates, strict=True):
                sums = np.add(states.counted(state), states.counted(type_))
                if (sums <= states.counts).all():
                    known[state + type_] = max(known.get(state + type_, 0), rate + own)
    for state in range(1, states.number):
        assert packing.best[state] == known.get(state, NONE)
        if state in known:
            parts = packing.split(state)
            assert sum(parts) == state
            assert len(parts) <= most
            assert sum(rates[types.index(part)] for part in parts) == known[state]
    assert packing.within()[-1][-1] == max(known.values())


def test_types_that_a_smaller_set_is_as_fast_as_are_left_out() -> None:
    states = States((1, 1))
    least = np.asarray([NEVER, 5, 7, 5])
    assert useful_types(states, least).tolist() == [1, 2]
    assert useful_types(states, np.asarray([NEVER, 5, 7, 4])).tolist() == [1, 2, 3]


def test_merged_kinds_bound_what_is_possible() -> None:
    for seed in range(5):
        problem = random_cluster(12, [1] * 6, seed)
        cluster = cluster_of(problem)
        arrays = build_arrays(cluster)
        coarse = merged(arrays, 12, 10**9, 10**9)
        assert coarse.state_count <= 12 < arrays.state_count
        for terms in (("throughput",), ("period",), ("latency",)):
            exact, bound = Relaxation(cluster, arrays), Relaxation(cluster, coarse, exact=False)
            found, below = exact.optimum(terms), bound.optimum(terms)
            assert found is not None
            assert below is not None
            assert found.bound is not None
            assert below.bound is not None
            assert below.bound <= found.bound
            assert below.pipes is None


@pytest.mark.parametrize("terms", [("throughput",), ("devices", "throughput"), ("throughput", "period")])
def test_the_plan_of_the_programs_is_worth_what_they_say(terms: tuple[str, ...]) -> None:
    for overlap in (True, False):
        problem = random_cluster(16, [2, 1, 2], seed=4, overlap=overlap)
        found = Relaxation(cluster_of(problem), build_arrays(cluster_of(problem))).optimum(terms)
        assert found is not None
        assert found.pipes is not None
        numbers, broken = examined(problem, found.pipes)
        assert not broken
        assert numbers.term(terms[0]) == found.bound
        assert found.settled == len(terms)


def test_a_program_gives_up_at_its_deadline(counted_time: None) -> None:
    arrays = build_arrays(cluster_of(random_cluster(8, [1] * 5)))
    with pytest.raises(TimeIsUpError):
        Program(arrays, States(arrays.counts), costs_of(T.PERIOD, arrays), Deadline(0.05))


def test_copies_are_all_plans_on_devices_of_the_same_kinds() -> None:
    plan: Pipes = (((0, 1, 0), (1, 2, 2)), ((0, 2, 3),))
    found = list(copies(plan, (0, 0, 1, 1)))
    assert len(found) == len(set(found)) == 4
    assert plan in found
    pair: Pipes = (((0, 2, 0),), ((0, 2, 1),))
    assert list(copies(pair, (0, 0))) == [pair]

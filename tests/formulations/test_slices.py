"""Slowdown by slice: marks of chunks by hand, files, and that every consumer reads them from one table."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice

import pytest

from benchmarks.schedule_instances import any_schedule, sliced, small_schedule
from benchmarks.workload_instances import small_workload
from gapless.formulations.costs import Interference, NetworkContention, SliceContention
from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.flow_shop.values import WorkloadValues
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.tables import tables_of
from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest
from gapless.solvers.flow_shop.arrays import build_arrays
from gapless.solvers.flow_shop.bounds import TermBounds
from gapless.solvers.flow_shop.search import JointSearch
from gapless.solvers.flow_shop.ways import Ways
from gapless.solvers.jobs.bounds import bound_of
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from gapless.solvers.sources import StartMode
from tests.jobs_instances import jobs_problem, passing
from tests.workload_instances import workload_problem

SLICES = (
    SliceContention(start=0, stop=1, intensity_permille=2000, sensitivity_permille=1000),
    SliceContention(start=1, stop=2, intensity_permille=400, sensitivity_permille=0),
)


def pair(slices: tuple[SliceContention, ...] = SLICES, base: int = 1000) -> Problem:
    """Return networks of two layers and of one on two units; `base`: how much these slow each other down."""
    requests = (JobRequest(name="a", network="net"), JobRequest(name="b", network="small"))
    return replace(
        passing(jobs_problem({"net": [[30, 60], [10, 60]], "small": [[200, 200]]}, requests), "any"),
        interference=Interference(
            units=("u0", "u1"),
            slowdown_permille=((0, base), (base, 0)),
            networks=(NetworkContention(network="net", slices=slices),),
        ),
    )


def test_a_chunk_has_the_mean_of_its_layers_by_their_time_on_its_unit() -> None:
    losses = tables_of(pair()).losses
    assert losses.mark(0, 0, 1, 0) == (1000, 2000)
    assert losses.mark(0, 1, 2, 0) == (0, 400)
    assert losses.mark(0, 0, 2, 0) == (750, 1600)  # 30 and 10 us
    assert losses.mark(0, 0, 2, 1) == (500, 1200)  # 60 and 60 us
    assert losses.mark(1, 0, 1, 0) == (1000, 1000)  # not listed: like the reference
    assert losses.loss(0, (750, 1600), 1, (1000, 1000)) == 429  # 750 / 1750
    assert losses.loss(1, (1000, 1000), 0, (750, 1600)) == 615  # 1600 / 2600
    assert losses.loss(0, (750, 1600), 0, (1000, 1000)) == 0  # on one unit they take turns


def test_the_table_says_the_least_and_the_most_of_all_chunks() -> None:
    losses = tables_of(pair()).losses
    assert losses.least_permille[0][0][1][1] == 0  # the second layer minds nobody
    assert losses.most_permille[0][0][1][1] == 500
    assert losses.least_permille[1][1][0][0] == 286  # 400 / 1400
    assert losses.most_permille[1][1][0][0] == 667  # 2000 / 3000


@pytest.mark.parametrize("seed", range(12))
def test_no_chunk_is_beyond_what_the_table_says(seed: int) -> None:
    problem = sliced(small_schedule(seed), seed)
    tables = tables_of(problem)
    losses = tables.losses
    for code in islice(problem.formulation.codes(problem), 0, 400, 17):
        runs = JobValues(tables, code).runs
        for one in runs:
            for other in runs:
                a, b, u, v = (
                    *(tables.chain_of[run.request] for run in (one, other)),
                    *(run.part[2] for run in (one, other)),
                )
                marks = [tables.mark(run.request, run.part) for run in (one, other)]
                lost = losses.loss(u, marks[0], v, marks[1])
                assert losses.least_permille[a][u][b][v] <= lost <= losses.most_permille[a][u][b][v]


def test_values_by_hand() -> None:
    """While b runs on u1, a loses half of its speed in its first layer, and nothing in its second one."""
    problem = pair()
    tables = tables_of(problem)
    apart = tables.ordered((0, 1, 0), (((0, 1, 0), (1, 2, 0)), ((0, 1, 1),)))
    whole = tables.ordered((0, 1), (((0, 2, 0),), ((0, 1, 1),)))
    # 30 + floor(59 / 2); b loses 667 beside the first layer, 286 beside the second: 39 + 2.
    ends = {(run.request, run.place): run.end_us for run in JobValues(tables, apart).runs}
    assert ends == {(0, 0): 59, (0, 1): 69, (1, 0): 200 + 59 * 667 // 1000 + 10 * 286 // 1000}
    # 40 + floor(0.429 x 69); b loses 615.
    ends = {(run.request, run.place): run.end_us for run in JobValues(tables, whole).runs}
    assert ends == {(0, 0): 69, (1, 0): 200 + 69 * 615 // 1000}
    assert score(problem, problem.formulation.plan(problem, whole)).makespan_us == 242


@pytest.mark.parametrize("seed", range(6))
def test_slices_that_are_all_like_their_network_change_nothing(seed: int) -> None:
    for problem in (small_schedule(seed), small_workload(seed)):
        known = problem.interference
        if known is None:
            continue
        layers = {network.name: len(network.layers) for network in problem.networks}
        alike = tuple(
            replace(
                own := known.of(name),
                slices=(
                    SliceContention(
                        start=0,
                        stop=count,
                        intensity_permille=own.intensity_permille,
                        sensitivity_permille=own.sensitivity_permille,
                    ),
                ),
            )
            for name, count in layers.items()
        )
        other = replace(problem, interference=replace(known, networks=alike))
        assert problem.tables.losses.least_permille == other.tables.losses.least_permille
        assert other.tables.losses.most_permille == other.tables.losses.least_permille
        for code in islice(problem.formulation.codes(problem), 0, 300, 23):
            one, two = (
                dict(score(each, each.formulation.plan(each, code)).terms) for each in (problem, other)
            )
            assert one == two


def test_files_keep_slices_and_say_nothing_of_none() -> None:
    problem = pair()
    text = dump_problem(problem)
    assert '"slices"' in text
    assert parse_problem(text.encode(), name="here") == problem
    plain = pair(())
    assert "slices" not in dump_problem(plain)
    assert parse_problem(dump_problem(plain).encode(), name="here") == plain


def test_slices_go_from_the_first_layer_to_the_last() -> None:
    with pytest.raises(InvalidProblemError, match=r"slices\[1\] starts at layer 1, must start at 2"):
        NetworkContention(
            network="net", slices=(SliceContention(start=0, stop=2), SliceContention(start=1, stop=3))
        )
    with pytest.raises(
        InvalidProblemError, match=r"'net' in the interference end at layer 1, it has 2 layers"
    ):
        pair(SLICES[:1])
    with pytest.raises(InvalidProblemError, match="stop is 0, must be at least 1"):
        SliceContention(start=0, stop=0)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_are_below_what_the_exhaustive_search_proves_and_models_agree(seed: int) -> None:
    problem = sliced(small_schedule(700 + seed, 400), seed)
    if not any(tables_of(problem).losses.sliced):
        return
    found = {
        name: solve(problem, name, SolveOptions(start=StartMode.NONE)) for name in ("exhaustive", "cpsat")
    }
    least, encoded = found["exhaustive"], found["cpsat"]
    assert (encoded.status, encoded.values) == (least.status, least.values)
    assert encoded.stop == least.stop
    assert least.values is None or bound_of(problem) <= least.values[0]


def test_most_drawn_schedules_have_slices() -> None:
    drawn = [any_schedule(seed) for seed in range(24)]
    assert sum(any(tables_of(problem).losses.sliced) for problem in drawn) > 8


def windows(intensities: tuple[int, int]) -> Problem:
    """Return two equal requests of two layers on two units; high from 1000."""
    first, second = intensities
    problem = workload_problem({"a": [[10, 10], [10, 10]]}, ["a", "a"])
    return replace(
        problem,
        interference=Interference(
            units=problem.platform.unit_names,
            slowdown_permille=((0, 100), (100, 0)),
            high_from_permille=1000,
            networks=(
                NetworkContention(
                    network="a",
                    intensity_permille=1600,
                    slices=(
                        SliceContention(start=0, stop=1, intensity_permille=first),
                        SliceContention(start=1, stop=2, intensity_permille=second),
                    ),
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("intensities", "cuts", "pairs"),
    [
        (
            (1000, 1000),
            ((0, 1, 2), (0, 1, 2)),
            1,
        ),  # the second slice of the first beside the first of the next
        ((1000, 999), ((0, 1, 2), (0, 1, 2)), 0),
        ((1000, 1000), ((0, 2, 2), (0, 1, 2)), 0),  # nothing of the first is on the second unit
        ((500, 1500), ((0, 1, 2), (0, 1, 2)), 0),
        ((500, 1500), ((0, 1, 2), (0, 2, 2)), 1),  # the second whole: a mean of 1000
        ((500, 1499), ((0, 1, 2), (0, 2, 2)), 1),  # rounded
        ((500, 1498), ((0, 1, 2), (0, 2, 2)), 0),
    ],
)
def test_windows_count_high_slices(
    intensities: tuple[int, int], cuts: tuple[tuple[int, ...], tuple[int, ...]], pairs: int
) -> None:
    problem = windows(intensities)
    shop = shop_of(problem)
    schedule = next(
        code for code in problem.formulation.codes(problem) if (code.order, code.cuts) == ((0, 1), cuts)
    )
    assert WorkloadValues(shop, schedule).contention == pairs
    assert shop.high == (True, True)
    assert shop.surely_high == (False, False)


def test_a_slice_that_is_not_there_is_never_high() -> None:
    problem = windows((0, 0))
    assert problem.interference is not None
    shop = shop_of(replace(problem, interference=replace(problem.interference, high_from_permille=0)))
    assert shop.high_slices(0, (0, 2, 2)) == (True, False)


@pytest.mark.parametrize(
    ("objective", "least"),
    [
        ("contention", (0,)),
        # One is split, and the other one whole on the second unit, two columns behind the first.
        ("contention,bottleneck", (0, 30)),
    ],
)
def test_windows_of_slices_are_minimised(objective: str, least: tuple[int, ...]) -> None:
    for intensities in ((1500, 1500), (1500, 1200)):
        problem = windows(intensities).with_objective(objective)
        for backend in ("exhaustive", "cpsat"):
            found = solve(problem, backend, SolveOptions(start=StartMode.NONE))
            assert (found.values, found.bound) == (least, 0)
            assert found.status == "optimal"
        search = JointSearch(problem)  # the solver `native` would walk so few plans
        search.run()
        assert search.kept.best == (0, *least)
        assert search.bounds[0] == 0


def test_bounds_on_windows_know_that_slices_may_be_low() -> None:
    problem = windows((1500, 1500))
    networks = [Ways(build_arrays(chain)) for chain in shop_of(problem).chains]
    known = problem.interference
    assert known is not None
    by_network = replace(known, networks=(replace(known.networks[0], slices=()),))
    for asked, least in ((problem, 0), (replace(problem, interference=by_network), 1)):
        bounds = TermBounds(asked.with_objective("contention"), networks, lambda: (0, 1))
        assert bounds.of("contention") == least


def test_without_slices_windows_count_requests() -> None:
    for seed in range(12):
        problem = small_workload(seed)
        if problem.interference is None:
            continue
        high = random.Random(seed).choice((700, 900, 1100))
        problem = replace(problem, interference=replace(problem.interference, high_from_permille=high))
        shop, units = shop_of(problem), len(problem.platform.units)
        for code in islice(problem.formulation.codes(problem), 0, 200, 13):
            marks = [shop.high[request] for request in code.order]
            expected = sum(
                units - (q - p)
                for p in range(len(marks))
                for q in range(p + 1, min(len(marks), p + units))
                if marks[p] and marks[q]
            )
            assert WorkloadValues(shop, code).contention == expected

"""The shipped tables are the published ones."""

from __future__ import annotations

import pytest

from gapless.api.planning import plan
from gapless.api.problems import load_problem
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import UnitKind
from gapless.profiler.platforms.catalog import (
    is_shipped_name,
    methods_of,
    network_names,
    platform_names,
    shipped_names,
    shipped_platform,
    shipped_problem,
)

PLATFORMS = ("jetson-orin-nano", "jetson-orin-nano-lp", "oneplus11", "pixel7a")
NETWORKS = ("alexnet-dense", "alexnet-sparse", "octree")
UNITS = {
    "pixel7a": ("Little", "Medium", "Big", "GPU"),
    "oneplus11": ("Little", "Medium", "Big", "GPU"),
    "jetson-orin-nano": ("CPU", "GPU"),
    "jetson-orin-nano-lp": ("CPU", "GPU"),
}
ALEXNET = ("conv1", "pool1", "conv2", "pool2", "conv3", "conv4", "conv5", "pool3", "fc")
OCTREE = ("morton", "sort", "unique", "radix-tree", "edge-count", "prefix-sum", "octree")

# Milliseconds as published: first row, last row.
PUBLISHED = {
    ("pixel7a/alexnet-dense", "isolated"): ([144.29241, 61.24994, 56.05479, 1.08064], None),
    ("pixel7a/alexnet-dense", "heavy"): (
        [174.85119, 61.18911, 58.3115, 0.72444],
        [1.24356, 0.60946, 0.6022, 0.7649],
    ),
    ("pixel7a/alexnet-sparse", "heavy"): (
        [22.26999, 5.89694, 5.22495, 4.54196],
        [0.04847, 0.01504, 0.01367, 0.30826],
    ),
    ("pixel7a/octree", "heavy"): (
        [2.61892, 0.8336, 0.69481, 0.82866],
        [5.89608, 1.99804, 2.0846, 1.50844],
    ),
    ("oneplus11/alexnet-dense", "heavy"): (
        [146.86607, 70.82501, 46.96739, 0.88785],
        [1.2076, 0.73906, 0.46457, 1.45134],
    ),
    ("oneplus11/alexnet-sparse", "heavy"): (
        [35.89221, 6.40511, 4.71619, 3.46219],
        [0.1078, 0.01697, 0.014, 0.31504],
    ),
    ("oneplus11/octree", "heavy"): (
        [3.71776, 0.92509, 0.63299, 0.49748],
        [6.18059, 1.88134, 1.34091, 1.26096],
    ),
    ("jetson-orin-nano/alexnet-dense", "heavy"): ([37.7043, 1.86043], [0.6255, 0.52637]),
    ("jetson-orin-nano/alexnet-sparse", "heavy"): ([4.31822, 3.76235], [0.04027, 0.45003]),
    ("jetson-orin-nano/octree", "heavy"): ([1.1316, 0.35483], [1.53243, 1.26697]),
    ("jetson-orin-nano-lp/alexnet-dense", "heavy"): ([79.2154, 8.02523], [1.12033, 0.9961]),
    ("jetson-orin-nano-lp/alexnet-sparse", "heavy"): ([8.8494, 10.02275], [0.04657, 0.50377]),
    ("jetson-orin-nano-lp/octree", "heavy"): ([2.11673, 0.60303], [2.85377, 2.20397]),
}


def micros(row: list[float]) -> tuple[int, ...]:
    return tuple(max(1, round(1000 * value)) for value in row)


def test_four_platforms_with_three_networks_each_and_an_estimated_one() -> None:
    assert platform_names() == (*PLATFORMS, "pixel7a-tpu")
    measured = tuple(f"{p}/{n}" for p in PLATFORMS for n in NETWORKS)
    assert shipped_names() == (*measured, "pixel7a-tpu/alexnet-dense")
    assert all(network_names(platform) == NETWORKS for platform in PLATFORMS)
    assert all(methods_of(name) == ("heavy", "isolated") for name in shipped_names())


@pytest.mark.parametrize("method", ["heavy", "isolated"])
@pytest.mark.parametrize("name", [f"{p}/{n}" for p in PLATFORMS for n in NETWORKS])
def test_every_table_loads_and_names_its_source(name: str, method: str) -> None:
    problem = shipped_problem(name, method=method)
    platform, network = name.split("/")
    assert (problem.platform.name, problem.network.name) == (platform, network)
    assert problem.platform.unit_names == UNITS[platform]
    assert problem.network.layer_names == (OCTREE if network == "octree" else ALEXNET)
    assert problem.costs.provenance.method == method
    assert "ucsc-redwood/better-together, branch dataset-final-pact" in problem.costs.provenance.source
    assert "BetterTogether" in problem.platform.source
    assert "BetterTogether" in problem.network.source
    assert not problem.costs.provenance.estimated
    assert problem.features == frozenset()


@pytest.mark.parametrize(("name", "method"), PUBLISHED)
def test_the_numbers_are_the_published_ones(name: str, method: str) -> None:
    first, last = PUBLISHED[name, method]
    rows = chain_of(shipped_problem(name, method=method)).layer_us
    assert rows[0] == micros(first)
    assert last is None or rows[-1] == micros(last)


@pytest.mark.parametrize(("method", "whole_us"), [("isolated", 9850), ("heavy", 8640)])
def test_the_tpu_is_estimated_from_three_printed_numbers(method: str, whole_us: int) -> None:
    """BetterTogether V-D: 9.85 ms alone, 8.64 ms under load."""
    problem = shipped_problem("pixel7a-tpu/alexnet-dense", method=method)
    measured = shipped_problem("pixel7a/alexnet-dense", method=method)
    rows = chain_of(problem).layer_us
    assert problem.costs.provenance.estimated
    assert abs(sum(row[-1] or 0 for row in rows) - whole_us) <= len(rows)
    assert tuple(row[:-1] for row in rows) == tuple(chain_of(measured).layer_us)


def test_least_gapness_puts_stage_1_on_the_tpu() -> None:
    """BetterTogether V-D: stage 1 on the TPU (6.86 ms), all others on the GPU; 6.90 ms."""
    best = plan(shipped_problem("pixel7a-tpu/alexnet-dense"), objective="gapness").candidates[0]
    assert str(best.plan) == "0-0 TPU | 1-8 GPU"
    assert best.score.period_us == 6860


def test_the_default_table_is_heavy() -> None:
    assert load_problem("pixel7a/octree") == shipped_problem("pixel7a/octree", method="heavy")
    isolated = load_problem("pixel7a/octree", costs="isolated")
    assert isolated == shipped_problem("pixel7a/octree", method="isolated")
    assert chain_of(isolated).layer_us != chain_of(shipped_problem("pixel7a/octree")).layer_us


@pytest.mark.parametrize("name", [f"{p}/{n}" for p in PLATFORMS for n in NETWORKS])
def test_interpolated_costs_lie_between_both_tables(name: str) -> None:
    problem = shipped_problem(name, method="interpolated")
    alone, busy = (chain_of(shipped_problem(name, method=method)) for method in ("isolated", "heavy"))
    units = range(1, len(problem.platform.units) + 1)
    chains = [chain_of(problem.using(used)) for used in units]
    assert (chains[0], chains[-1]) == (alone, busy)
    for chain in chains:
        for row, one, other in zip(chain.layer_us, alone.layer_us, busy.layer_us, strict=True):
            for time, a, b in zip(row, one, other, strict=True):
                assert time is not None
                assert a is not None
                assert b is not None
                assert min(a, b) <= time <= max(a, b)
    tables = (problem.costs, *(problem.co_run_costs or ()))
    assert [table.provenance.estimated for table in tables] == [used not in (1, units[-1]) for used in units]
    for table in tables:
        assert table.provenance.method == "interpolated"
        assert "ucsc-redwood/better-together" in table.provenance.source
        assert "isolated: layer alone" in table.provenance.notes
        assert "heavy: the same layer" in table.provenance.notes


def test_units_of_a_phone() -> None:
    little, medium, big, gpu = shipped_platform("pixel7a").units
    assert [len(unit.cores) for unit in (little, medium, big, gpu)] == [4, 2, 2, 0]
    assert gpu.kind is UnitKind.GPU
    assert all(not shipped_platform(name).conflicts for name in PLATFORMS)


def test_sizes_of_alexnet_follow_from_its_shapes() -> None:
    dense = shipped_problem("pixel7a/alexnet-dense")
    batch = dense.costs.batch
    layer = dense.network.layers[2]
    assert layer.weight_bytes == 4 * (16 * 32 * 9 + 32)
    assert layer.flops == 2 * batch * 16 * 32 * 9 * 16 * 16
    assert dense.network.boundary_bytes[:3] == (
        4 * batch * 3 * 32 * 32,
        4 * batch * 16 * 32 * 32,
        4 * batch * 16 * 16 * 16,
    )
    assert dense.network.boundary_bytes[-1] == 4 * batch * 10
    assert shipped_problem("pixel7a/octree").network.tensors == ()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("pixel7/alexnet", "pixel7a/alexnet-dense"),
        ("pixel7a", "pixel7a/alexnet-dense"),
        ("octree", "oneplus11/octree"),
        ("jetson/octree", "jetson-orin-nano/octree"),
    ],
)
def test_near_misses_are_understood(name: str, near: str) -> None:
    assert not is_shipped_name(name)
    with pytest.raises(InvalidInputError, match=near):
        shipped_problem(name)


def test_far_misses_get_the_list() -> None:
    with pytest.raises(InvalidInputError, match="`gapless list problems` lists them"):
        shipped_problem("zzz")
    with pytest.raises(InvalidInputError, match="'warm'; choose one of isolated, heavy, interpolated"):
        shipped_problem("pixel7a/octree", method="warm")

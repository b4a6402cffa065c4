"""What a network costs on a cluster: by hand, in batches, and with devices that have units of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.formulations.cluster import Pipelines
from gapless.formulations.cluster_platform import ClusterPlatform, DeviceType, InnerUnit, Speed
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.problem import Problem
from gapless.profiler.clusters.costs import cluster_problem

NETWORK = Network(
    name="net",
    layers=(
        Layer(name="conv", weight_bytes=3_000, flops=40_000_000, op_types=("Conv",)),
        Layer(name="fc", weight_bytes=50_000, flops=10_000_000, op_types=("Gemm",)),
    ),
    tensors=(
        Tensor(name="image", bytes=6_000, source=-1, targets=(0,)),
        Tensor(name="x", bytes=4_000, source=0, targets=(1,)),
        Tensor(name="y", bytes=40, source=1, targets=(2,)),
    ),
)
FAST = DeviceType(
    name="fast",
    speed=Speed(flops_per_second=10**10, memory_bytes_per_second=10**9, launch_us=3),
    port_bytes_per_second=10**6,
    source="a data sheet",
)
SLOW = DeviceType(
    name="slow",
    count=2,
    speed=Speed(flops_per_second=10**9),
    port_bytes_per_second=10**6,
    memory_bytes=60_000,
)
PAIR = ClusterPlatform(name="pair", types=(FAST, SLOW), source="our desk")


def data_of(problem: Problem) -> Pipelines:
    assert isinstance(problem.data, Pipelines)
    return problem.data


def test_costs_follow_from_operations_and_bytes() -> None:
    problem = cluster_problem(NETWORK, PAIR)
    conv = 3 + (3_000 + 10_000) / 1_000 + 40_000_000 / 10_000
    fc = 3 + (50_000 + 4_040) / 1_000 + 10_000_000 / 10_000
    (costs,) = problem.costs.networks
    assert costs.layer_us == (
        (round(conv), 40_000, 40_000),
        (round(conv + fc) - round(conv), 10_000, 10_000),
    )
    assert costs.transfer_in_us == costs.transfer_out_us == ()  # links have their own times
    assert problem.costs.units == ("fast", "slow-1", "slow-2")


def test_costs_say_that_they_are_estimates() -> None:
    provenance = cluster_problem(NETWORK, PAIR).costs.provenance
    assert provenance.estimated
    assert provenance.source == "our desk"
    assert "fast: a data sheet. slow: not said" in provenance.notes


def test_a_batch_is_one_item() -> None:
    one, many = cluster_problem(NETWORK, PAIR), cluster_problem(NETWORK, PAIR, batch=8)
    assert many.network.name == "net*8"
    assert many.costs.batch == 8
    assert many.network.boundary_bytes == tuple(8 * size for size in one.network.boundary_bytes)
    assert many.costs.networks[0].layer_us[0][1] == 8 * 40_000
    fixed = 3 + 3_000 / 1_000  # launch and weights are paid once
    assert many.costs.networks[0].layer_us[0][0] == round(fixed + 8 * (10_000 / 1_000 + 4_000))
    assert many.network.layers[0].weight_bytes == 3_000


@pytest.mark.parametrize("batch", [0, -1, 1001, True, 2.0])
def test_other_batches_are_refused(batch: int) -> None:
    with pytest.raises(InvalidInputError, match=r"the batch is .* from 1 to 1000"):
        cluster_problem(NETWORK, PAIR, batch=batch)


def test_as_many_pipelines_as_serve_most() -> None:
    problem = cluster_problem(NETWORK, PAIR)
    assert (data_of(problem).most, problem.objective.terms) == (None, ("throughput",))


def test_unknown_operations_are_refused_with_the_layer() -> None:
    unknown = replace(NETWORK, layers=(NETWORK.layers[0], replace(NETWORK.layers[1], flops=None)))
    with pytest.raises(InvalidInputError, match=r"how many operations 'fc' has is not known"):
        cluster_problem(unknown, PAIR)


def test_a_device_with_units_runs_its_chunk_as_a_pipeline() -> None:
    speed = Speed(flops_per_second=10**9)
    box = DeviceType(
        name="box",
        units=(
            InnerUnit(name="cpu", speed=speed),
            InnerUnit(name="gpu", speed=Speed(flops_per_second=4 * 10**9), copy_us=100),
        ),
        port_bytes_per_second=10**6,
    )
    cluster = ClusterPlatform(name="boxes", types=(replace(box, count=2),))
    problem = cluster_problem(NETWORK, cluster)
    (inner,) = data_of(problem).inner
    assert inner.costs.layer_us == ((40_000, 10_000), (10_000, 2_500))
    assert problem.costs.networks[0].layer_us == ((10_000, 10_000), (2_500, 2_500))  # the best unit alone
    found = problem.tables.inner_us[0]
    assert problem.tables.inner_us[1] is found
    assert found[0][2] == 10_000 + 100  # conv on the GPU beside fc on the CPU


@pytest.mark.slow
def test_exact_backends_agree_on_the_plan() -> None:
    problem = cluster_problem(NETWORK, PAIR)
    answers = [gapless.plan(problem, backend=name) for name in ("native", "exhaustive", "cpsat")]
    assert len({answer.objective for answer in answers}) == 1
    assert all(str(answer.status) == "optimal" for answer in answers)
    # The network and its queues take 69,040 bytes: no slow device holds all of it.
    assert str(answers[0].plan) == "pipeline 1: 0-1 fast; pipeline 2: 0-0 slow-1 | 1-1 slow-2"

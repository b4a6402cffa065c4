"""Several networks on a shipped platform: problems from texts, batches, what an NPU cannot run."""

from __future__ import annotations

import pytest

from gapless.formulations.costs import CostTable
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_problem, parse_problem
from gapless.formulations.flow_shop.formulation import WorkloadFeature
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.network import Layer, Network
from gapless.formulations.problem import Feature, Problem
from gapless.formulations.terms import Objective
from gapless.formulations.workload import LoadPolicy, Request, Workload, requests_of, split_batch
from gapless.profiler.analytic.costs import network_costs
from gapless.profiler.platforms.catalog import shipped_platform, shipped_problem
from gapless.profiler.platforms.workloads import (
    balanced,
    phone_model,
    phone_network_names,
    random_workloads,
    shipped_workload,
)
from gapless.solvers.exhaustive import ExhaustiveBackend
from gapless.solvers.protocol import SolveOptions


def test_requests_of_a_phone() -> None:
    problem = shipped_workload("kirin990", "yolov4,bert,mobilenetv2x3")
    assert workload_of(problem).names == ("yolov4", "bert", "mobilenetv2#1", "mobilenetv2#2", "mobilenetv2#3")
    assert [network.name for network in problem.networks] == ["yolov4", "bert", "mobilenetv2"]
    assert workload_of(problem).load_policy is LoadPolicy.RUNNING  # as Eq. 6 counts
    assert {WorkloadFeature.INTERFERENCE, Feature.UNSUPPORTED_LAYERS, Feature.TRANSFERS} <= problem.features
    assert problem.objective == Objective.parse("makespan")


@pytest.mark.parametrize(
    ("platform", "text", "words"),
    [
        ("kirin", "bert", "no shipped platform is called 'kirin'; did you mean kirin990?"),
        ("toaster", "bert", "choose one of kirin990"),
        ("kirin990", "bret", "did you mean bert?"),
        ("kirin990", "resnet18", "did you mean resnet50?"),
        ("pixel7a", "octree*2", "is a batch, and its costs are not known"),
    ],
)
def test_mistakes_are_named(platform: str, text: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        shipped_workload(platform, text)
    assert words in str(caught.value)


def test_problems_are_files() -> None:
    problem = shipped_workload("snapdragon778g", "bert,mobilenetv2*4x2")
    assert parse_problem(dump_problem(problem).encode(), name="problem") == problem


def test_measured_platforms_serve_workloads_too() -> None:
    problem = shipped_workload("pixel7a", "octreex2,alexnet-sparse")
    assert workload_of(problem).names == ("octree#1", "octree#2", "alexnet-sparse")
    assert problem.interference is None
    assert problem.costs.of("octree") == shipped_problem("pixel7a/octree").costs.of("octree")
    assert not problem.costs.provenance.estimated


def test_a_batch_is_costed_and_presses_like_its_network() -> None:
    problem = shipped_workload("kirin990", "mobilenetv2,mobilenetv2*4")
    one, four = (problem.costs.of(name) for name in ("mobilenetv2", "mobilenetv2*4"))
    for unit in range(len(problem.costs.units)):
        single = sum(row[unit] or 0 for row in one.layer_us)
        assert 2 * single < sum(row[unit] or 0 for row in four.layer_us) < 4 * single
    assert problem.interference is not None
    assert (
        problem.interference.of("mobilenetv2*4").intensity_permille
        == problem.interference.of("mobilenetv2").intensity_permille
        != 1000
    )


def test_light_requests_become_as_long_as_heavy_ones() -> None:
    text = balanced("kirin990", "bert,mobilenetv2,squeezenet*2,vit")
    assert text == f"bert,mobilenetv2*{split_batch(text.split(',')[1])[1]},squeezenet*2,vit"
    problem = shipped_workload("kirin990", text)
    big = problem.costs.units.index("cpu_big")
    took = {costs.network: sum(row[big] or 0 for row in costs.layer_us) for costs in problem.costs.networks}
    light = next(name for name in took if name.startswith("mobilenetv2"))
    assert took[light] == pytest.approx(took["bert"], rel=0.02)
    with pytest.raises(InvalidInputError, match="batches cannot be computed on 'pixel7a'"):
        balanced("pixel7a", "octree")


def test_random_combinations_are_the_same_for_the_same_seed() -> None:
    texts = random_workloads("snapdragon870", 30, 7)
    assert texts == random_workloads("snapdragon870", 30, 7) != random_workloads("snapdragon870", 30, 8)
    sizes = [len(requests_of(text, phone_network_names())) for text in texts]
    assert {5, 10} <= set(sizes) <= set(range(5, 11))
    assert {name for text in texts for name in text.split(",")} == set(phone_network_names())


def test_random_combinations_can_be_balanced() -> None:
    (plain,), (text,) = random_workloads("kirin990", 1, 3), random_workloads("kirin990", 1, 3, balance=True)
    requests = requests_of(text, phone_network_names(), batches=True)
    assert [split_batch(request.network)[0] for request in requests] == plain.split(",")
    assert "*" in text


def test_plans_leave_the_npu_at_the_first_layer_that_it_cannot_run() -> None:
    """Hetero2Pipe's NPU fallback: what follows goes to the next units, here the big cores."""
    kinds = (("Conv",), ("Conv", "Relu"), ("Conv", "Softplus", "Tanh", "Mul"), ("Conv",))
    network = Network(
        name="net",
        layers=tuple(
            Layer(name=f"l{i}", flops=10**9, weight_bytes=10**6, op_types=ops) for i, ops in enumerate(kinds)
        ),
    )
    platform, model = shipped_platform("kirin990"), phone_model("kirin990")
    costs = network_costs(network, model)
    assert [row[0] is None for row in costs.layer_us] == [False, False, True, False]
    problem = Problem(
        platform=platform,
        networks=(network,),
        costs=CostTable(units=platform.unit_names, networks=(costs,)),
        objective=Objective.parse("makespan"),
        data=Workload(requests=(Request(name="net", network="net"),)),
    )
    claim = ExhaustiveBackend().solve(problem, SolveOptions())
    chunks = [(chunk.start, chunk.stop, chunk.unit) for chunk in claim.plans[0].chunks]
    assert chunks == [(0, 2, "npu"), (2, 4, "cpu_big")]

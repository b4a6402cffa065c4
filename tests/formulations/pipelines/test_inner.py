"""Devices that are pipelines themselves: the time of a chunk is what the best inner plan takes."""

from __future__ import annotations

import random

import pytest

from gapless.formulations.cluster import InnerDevice, Pipelines
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.judge import check, score
from gapless.formulations.network import Layer, Network
from gapless.formulations.pipelines.tables import interval_us
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.session import solve


def drawn(seed: int) -> tuple[Network, InnerDevice]:
    """Return a network and a board with three units, two of which may share a core."""
    rng = random.Random(seed)
    layers = rng.randint(1, 5)
    network = Network(
        name="net",
        layers=tuple(Layer(name=f"l{n}", weight_bytes=rng.randint(0, 9)) for n in range(layers)),
        forbidden_cuts=tuple(cut for cut in range(1, layers) if rng.random() < 0.15),
    )
    cores = ((0,), (1,) if rng.random() < 0.6 else (0, 1), ())
    units = tuple(
        ProcessingUnit(name=name, cores=own, memory_bytes=rng.choice([None, 12]))
        for name, own in zip(("cpu", "all", "gpu"), cores, strict=True)
    )
    costs = NetworkCosts(
        network="net",
        layer_us=tuple(
            tuple(None if rng.random() < 0.1 else rng.randint(1, 30) for _ in units) for _ in range(layers)
        ),
        transfer_in_us=tuple(tuple(rng.randint(0, 4) for _ in units) for _ in range(layers + 1)),
    )
    return network, InnerDevice(device="board", platform=Platform(name="inner", units=units), costs=costs)


@pytest.mark.parametrize("seed", range(40))
def test_the_whole_network_takes_what_the_oracle_of_chunking_finds(seed: int) -> None:
    network, inner = drawn(seed)
    problem = Problem(
        platform=inner.platform,
        networks=(network,),
        costs=CostTable(units=inner.platform.unit_names, networks=(inner.costs,)),
    )
    periods = [score(problem, plan).period_us for plan in all_plans(problem) if not check(problem, plan)]
    found = interval_us(inner, network)
    assert found[0][len(network.layers)] == min(periods, default=-1)
    # A part of the network is a network of its own.
    for start in (0, *network.legal_cuts):
        for stop in (*network.legal_cuts, len(network.layers)):
            if start >= stop:
                assert found[start][stop] == -1


@pytest.mark.slow
def test_a_board_with_units_of_its_own_is_one_device() -> None:
    units = (ProcessingUnit(name="cpu"), ProcessingUnit(name="gpu"))
    network = Network(name="net", layers=tuple(Layer(name=f"l{n}") for n in range(3)))
    inner = InnerDevice(
        device="board",
        platform=Platform(name="inner", units=units),
        costs=NetworkCosts(network="net", layer_us=((10, 30), (30, 10), (40, 10))),
    )
    problem = Problem(
        platform=Platform(name="two", units=(ProcessingUnit(name="board"), ProcessingUnit(name="other"))),
        networks=(network,),
        costs=CostTable(
            units=("board", "other"),
            networks=(NetworkCosts(network="net", layer_us=((99, 15), (99, 15), (99, 15))),),
        ),
        objective=Objective.parse("period"),
        data=Pipelines(most=1, inner=(inner,)),
    )
    assert problem.tables.compute_us(0, 3, 0) == 20  # layer 0 on cpu, the others on gpu
    assert problem.tables.compute_us(0, 1, 0) == 10
    for backend in ("exhaustive", "cpsat"):
        found = solve(problem, backend)
        assert found.values is not None
        assert found.values[0] == 15
        assert found.plan is not None
        assert str(found.plan) in {"0-1 board | 2-2 other", "0-0 other | 1-2 board", "0-0 board | 1-1 other"}

"""Random chains of layers, equal for equal seeds."""

from __future__ import annotations

import random
from enum import StrEnum

from ...formulations.costs import CostTable, NetworkCosts, Provenance
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Layer, Network
from ...formulations.problem import Problem


class Shape(StrEnum):
    """How the times of the layers are spread.

    MIXED
        Log-uniform over two decades; units differ in speed, and each layer has its own taste.
    PLATEAU
        The same with one layer that dominates: millions of plans share the least period.
    UNEVEN
        The same with units up to thirty times as fast as others: the fastest plans are out of balance,
        so a balance filter binds.
    """

    MIXED = "mixed"
    PLATEAU = "plateau"
    UNEVEN = "uneven"


def random_problem(layers: int, units: int, *, seed: int = 0, shape: Shape = Shape.MIXED) -> Problem:
    """Return a problem with the default objective (period, gapness)."""
    rng = random.Random(f"{layers} {units} {seed} {shape}")
    fastest = 30 if shape is Shape.UNEVEN else 6
    speeds = [fastest ** rng.random() for _ in range(units)]
    work_ms = [10 ** rng.uniform(-1, 1) for _ in range(layers)]
    if shape is Shape.PLATEAU:
        work_ms[rng.randrange(layers)] = sum(work_ms)
    names = tuple(f"unit{unit}" for unit in range(units))
    layer_us = tuple(
        tuple(max(1, round(1000 * (work * rng.uniform(0.6, 1.6) / speed * 2))) for speed in speeds)
        for work in work_ms
    )
    return Problem(
        platform=Platform(name="synthetic", units=tuple(ProcessingUnit(name=name) for name in names)),
        networks=(Network(name="random", layers=tuple(Layer(name=f"layer{i}") for i in range(layers))),),
        costs=CostTable(
            units=names,
            networks=(NetworkCosts(network="random", layer_us=layer_us),),
            provenance=Provenance(source="drawn", estimated=True),
        ),
    )

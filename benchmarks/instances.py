"""Random instances for benchmarks, equal for equal seeds."""

from __future__ import annotations

import math
import random
from enum import StrEnum

from gapless.api.problems import table_problem
from gapless.formulations.problem import Problem
from gapless.profiler.prediction.corrections import Corrections

SPREADS = ((0.0, 0.0), (0.1, 0.1), (0.15, 0.25))
"""Standard deviation of the logarithm of the factors of units, and of cells, of a distorted problem."""


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
    """Return a problem with the default objective (period, gapness).

    Parameters
    ----------
    layers, units
        Size.
    seed
        Equal seeds give equal problems.
    shape
        How the times are spread.
    """
    rng = random.Random(f"{layers} {units} {seed} {shape}")
    fastest = 30 if shape is Shape.UNEVEN else 6
    speeds = [fastest ** rng.random() for _ in range(units)]
    work_ms = [10 ** rng.uniform(-1, 1) for _ in range(layers)]
    if shape is Shape.PLATEAU:
        work_ms[rng.randrange(layers)] = sum(work_ms)
    times = [[work * rng.uniform(0.6, 1.6) / speed * 2 for speed in speeds] for work in work_ms]
    return table_problem(times, [f"unit{unit}" for unit in range(units)], network="random")


def distorted(problem: Problem, spread: tuple[float, float], rng: random.Random) -> Problem:
    """Return a problem with a random factor for each unit, and another for each layer on each unit.

    Parameters
    ----------
    problem
        One network.
    spread
        Standard deviation of the logarithm of the factors of units, and of cells.
    rng
        What the factors are drawn from.
    """
    units = range(len(problem.platform.units))
    layers = tuple(tuple(math.exp(rng.gauss(0, spread[1])) for _ in units) for _ in problem.network.layers)
    factors = tuple(math.exp(rng.gauss(0, spread[0])) for _ in units)
    return Corrections(unit_factor=factors, layer_factor=layers).applied(problem)

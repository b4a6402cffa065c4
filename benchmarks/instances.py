"""Random instances for benchmarks, equal for equal seeds."""

from __future__ import annotations

import math
import random

from gapless.formulations.problem import Problem
from gapless.profiler.prediction.corrections import Corrections
from gapless.solvers.chunking.samples import Shape, random_problem

__all__ = ["SPREADS", "Shape", "distorted", "random_problem"]

SPREADS = ((0.0, 0.0), (0.1, 0.1), (0.15, 0.25))
"""Standard deviation of the logarithm of the factors of units, and of cells, of a distorted problem."""


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

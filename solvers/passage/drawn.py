"""Random chains of layers whose units may have several chunks, equal for equal seeds."""

from __future__ import annotations

from ...formulations.problem import Problem
from ..chunking import samples as drawn
from .samples import passing


def random_problem(layers: int, units: int, *, seed: int = 0) -> Problem:
    """Return a problem with the default objective (period, gapness); equal seeds give equal problems."""
    return passing(drawn.random_problem(layers, units, seed=seed))

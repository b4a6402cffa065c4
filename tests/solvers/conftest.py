"""What tests of solvers share."""

from __future__ import annotations

import pytest

SHORT = {
    "flow_shop.baselines.STEPS": 60,
    "flow_shop.bounds._PATH_ROUNDS": 15,
    "flow_shop.search._STEPS": 100,
    "jobs.annealing.STEPS": 60,
    "jobs.bounds._ROUNDS": 20,
    "jobs.makespan._STEPS": 100,
    "jobs.makespan._STEPS_PER_SECTION": 20,
    "pipelines.genetic.GENERATIONS": 10,
    "task_graph.solving.MOVES": 50,
    "task_graph.solving.ROUNDS": 4,
    "task_graph.solving._FEWEST_MOVES": 20,
    "task_graph.solving._PRICE_ROUNDS": 10,
    "task_graph.solving._START_ROUNDS": 2,
}
"""How far heuristics go in comparisons with an oracle, also those whose plan and bound an exact search starts
from: however far that is, no answer is better than the best one, and an exact one equals it."""


@pytest.fixture
def short_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let heuristics walk less far in the tests of a module."""
    for name, value in SHORT.items():
        monkeypatch.setattr(f"gapless.solvers.{name}", value)

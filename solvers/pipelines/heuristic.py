"""What the planners of pipelines that we compare with have in common."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.pipelines.formulation import FORMULATION
from ...formulations.pipelines.plans import Pipes, ordered, whole_plans
from ...formulations.pipelines.tables import cluster_of
from ...formulations.problem import Problem
from ..proposing import Proposing, proposing
from ..protocol import Capabilities


def heuristic_capabilities(summary: str) -> Capabilities:
    """Return what a heuristic can do: plans that break rules are repaired or dropped."""
    return proposing(summary, FORMULATION.name)


class PipelineHeuristic(Proposing[Pipes]):
    """A planner that proposes pipelines."""

    def tidy(self, code: Pipes) -> Pipes:
        """Return pipelines in their order."""
        return ordered(code)

    def whole(self, problem: Problem) -> Iterator[Pipes]:
        """Yield the network whole on each device."""
        yield from whole_plans(cluster_of(problem))

"""What exact searches start from: the plan of the programs over sets of devices, and its bound."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.judge import examined
from ...formulations.pipelines.plans import Pipes, whole_plans
from ...formulations.pipelines.tables import Cluster, cluster_of
from ...formulations.problem import Problem
from ..families import Start
from ..protocol import SolveOptions

_SHARE = 0.3
"""Share of a time limit that the programs may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    With a time limit the first plan is there before any search: the network whole on one device.
    """
    cluster, limit_s, known = cluster_of(problem), options.time_limit_s, Start()
    if limit_s is not None:
        known = Start(code=_whole(problem, cluster))
        yield known
    from .arrays import build_arrays
    from .solving import Root  # these load more of numpy

    root = Root(problem, build_arrays(cluster), None if limit_s is None else _SHARE * limit_s)
    if root.infeasible:
        yield known
        return
    best = None if root.optimum is None else root.optimum.pipes
    if best is None or examined(problem, best)[1]:
        best = known.code
    yield Start(code=best, at_least=root.bound)


def _whole(problem: Problem, cluster: Cluster) -> Pipes | None:
    """Return the best valid plan of a single chunk, or None."""
    rated = [(code, *examined(problem, code)) for code in whole_plans(cluster)]
    valid = [(numbers.values(problem.objective.terms), code) for code, numbers, broken in rated if not broken]
    return min(valid)[1] if valid else None

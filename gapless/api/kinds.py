"""Kinds of plans of one network over one cluster, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..formulations.cluster_platform import ClusterPlatform
from ..formulations.problem import Problem
from ..solvers.protocol import SolveOptions
from ..solvers.result import SolveResult
from ..solvers.session import solve
from .clusters import cluster_named, cluster_problem
from .groups import chunks_over_graph, group_problem
from .models import open_model
from .planning import Way, default_backend, each_way

if TYPE_CHECKING:
    from .models import Shapes

KINDS = {
    "one": "one pipeline",
    "many": "several pipelines",
    "groups": "groups",
    "graph": "groups, over the graph",
}
"""What plans can be, and what people call it."""

_GRANULARITY = {"one": "layer", "many": "layer", "groups": "piece", "graph": "piece"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KindResult(Way):
    """The best plan of one kind.

    Attributes
    ----------
    kind
        One of `KINDS`.
    problem, result
        What was asked, and the answer; None where there is none.
    failure
        Why there is none; else empty.
    seconds
        How long planning took, with the tables of costs.
    """

    kind: str

    @property
    def throughput(self) -> float | None:
        """Items per second of the best plan; None without one."""
        best = self.result.best if self.result is not None else None
        return best.score.throughput if best is not None else None


def compare_kinds(
    model: str | Path,
    platform: ClusterPlatform | str | Path,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    batch: int = 1,
    shapes: Shapes | None = None,
    devices: Mapping[str, int] | None = None,
    options: SolveOptions = SolveOptions(),
    on_kind: Callable[[str], None] | None = None,
) -> tuple[KindResult, ...]:
    """Plan one network over the devices of a cluster in several ways: for the most items per second each.

    Parameters
    ----------
    model
        The path of an ONNX file, or the name of a built-in network.
    platform, batch, shapes, devices
        As for `cluster_problem`. The cluster says for all kinds whether devices send while they compute.
    kinds
        Names from `KINDS`: one pipeline, several pipelines side by side, groups that share chunks, and those
        with cuts anywhere in the graph (`chunks_over_graph`).
    options
        How to solve; the time limit is for each kind.
    on_kind
        Called with each kind before it is planned.

    Returns
    -------
    tuple of KindResult
        One for each kind, in order; a kind that is not possible says why.

    Raises
    ------
    InvalidInputError
        There is no such kind, model or cluster.

    Examples
    --------
    >>> import gapless
    >>> one, groups = gapless.clusters.compare_kinds("squeezenet", "raspberry-pis", kinds=("one", "groups"))
    >>> one.kind, groups.kind, one.throughput < groups.throughput
    ('one', 'groups', False)
    """
    cluster = cluster_named(platform, devices)
    opened = {
        granularity: open_model(model, shapes=shapes, granularity=granularity)
        for granularity in dict.fromkeys(_GRANULARITY[kind] for kind in kinds if kind in KINDS)
    }

    def planned(kind: str) -> tuple[Problem, SolveResult]:
        divided = opened[_GRANULARITY[kind]]
        if kind in ("one", "many"):
            problem = cluster_problem(divided, cluster, pipelines=kind, batch=batch)
        else:
            problem = group_problem(divided, cluster, batch=batch)
        if kind == "graph":
            problem = chunks_over_graph(problem, divided, time_limit_s=options.time_limit_s)
        return problem, solve(problem, default_backend(problem), options)

    found = each_way(kinds, KINDS, "kind of plan", planned, on_kind)
    return tuple(
        KindResult(kind=kind, problem=w.problem, result=w.result, failure=w.failure, seconds=w.seconds)
        for kind, w in found
    )

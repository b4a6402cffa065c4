"""Kinds of plans of one network over one cluster, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..formulations.cluster_platform import ClusterPlatform
from ..formulations.errors import BackendError, InvalidInputError
from ..formulations.problem import Problem
from ..solvers.protocol import SolveOptions
from ..solvers.result import SolveResult
from ..solvers.session import solve
from .clusters import cluster_named, cluster_problem
from .groups import chunks_over_graph, group_problem
from .models import open_model
from .planning import default_backend

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
class KindResult:
    """The best plan of one kind.

    Attributes
    ----------
    kind
        One of `KINDS`.
    problem
        What was asked; None where there is no such problem.
    result
        The answer; None where there is none.
    failure
        Why there is none; else empty.
    seconds
        How long planning took, with the tables of costs.
    """

    kind: str
    problem: Problem | None = None
    result: SolveResult | None = None
    failure: str = ""
    seconds: float = 0.0

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
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        name = f"{unknown[0]!r} is no kind of plan" if unknown else "no kind of plan is named"
        raise InvalidInputError(f"{name}; there are {', '.join(KINDS)}")
    cluster = cluster_named(platform, devices)
    opened = {
        granularity: open_model(model, shapes=shapes, granularity=granularity)
        for granularity in dict.fromkeys(_GRANULARITY[kind] for kind in kinds)
    }
    found = []
    for kind in kinds:
        if on_kind is not None:
            on_kind(kind)
        started = time.monotonic()
        try:
            divided = opened[_GRANULARITY[kind]]
            if kind in ("one", "many"):
                problem = cluster_problem(divided, cluster, pipelines=kind, batch=batch)
            else:
                problem = group_problem(divided, cluster, batch=batch)
            if kind == "graph":
                problem = chunks_over_graph(problem, divided, time_limit_s=options.time_limit_s)
            result = solve(problem, default_backend(problem), options)
        except (InvalidInputError, BackendError) as error:
            found.append(KindResult(kind=kind, failure=str(error)))
        else:
            found.append(
                KindResult(kind=kind, problem=problem, result=result, seconds=time.monotonic() - started)
            )
    return tuple(found)

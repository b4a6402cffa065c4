"""Problems of groups of devices: chunks of a network that several devices compute together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..formulations.cluster import Pipelines, parse_most
from ..formulations.cluster_platform import ClusterPlatform
from ..formulations.errors import InvalidInputError
from ..formulations.groups import Cooperation
from ..formulations.objective import Objective
from ..formulations.problem import Problem
from .clusters import cluster_named, cluster_problem
from .problems import refuse_rules

if TYPE_CHECKING:
    from ..executor.graph.onnx_model import OnnxModel
    from ..executor.model import Model
    from .models import Shapes


def group_problem(
    model: Model | str | Path,
    platform: ClusterPlatform | str | Path,
    *,
    groups: str | int = "all",
    axis: str = "rows",
    interstage: bool = True,
    overlap: bool = False,
    batch: int = 1,
    shapes: Shapes | None = None,
    devices: Mapping[str, int] | None = None,
) -> Problem:
    """Return the problem of running a network over groups of devices that split feature maps (PICO).

    The layers of the network are its pieces: sets of operators in a chain, cut where halos are least. What
    they cost is estimated from operations and bytes, and marked so.

    Parameters
    ----------
    model
        An opened model with the granularity "piece", the path of an ONNX file, or the name of a built-in
        network.
    platform
        The devices: a cluster, as for `cluster_problem`.
    groups
        Most devices of a group: "all" or a number.
    axis
        "rows" or "columns": along which side maps are split.
    interstage
        Whether sending the result of a chunk to the next group takes time (PICO leaves it out).
    overlap
        Whether a group sends one result while it computes the next; PICO's Eq. 11 adds both.
    batch, shapes, devices
        As for `cluster_problem`.

    Returns
    -------
    Problem
        Its objective is the period.

    Raises
    ------
    InvalidInputError
        There is no such model or cluster, one of them is not valid, or the model is no ONNX model in pieces.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.group_problem("squeezenet", "raspberry-pis")
    >>> problem.formulation.name, len(problem.platform.units)
    ('cooperation', 6)
    """
    opened, cluster = _opened(model, shapes), cluster_named(platform, devices)
    problem = cluster_problem(opened.network, cluster, batch=batch, pipelines="one")
    grouped = with_groups(problem, opened, groups=groups, axis=axis, interstage=interstage, overlap=overlap)
    return replace(grouped, data=replace(grouped.data, idle_mw=cluster.idle_mw))


def with_groups(
    problem: Problem,
    model: Model,
    *,
    groups: str | int = "all",
    axis: str = "rows",
    interstage: bool = True,
    overlap: bool = False,
) -> Problem:
    """Return a problem of one network with groups of its units, or devices, that serve chunks together.

    Parameters
    ----------
    problem
        Of the pieces of the model on units or devices, measured or estimated.
    model
        The model, opened with the granularity "piece".
    groups, axis, interstage, overlap
        As for `group_problem`.

    Raises
    ------
    InvalidInputError
        The problem is of another kind or another network, has rules, or the model is not in pieces.
    """
    own = problem.data if isinstance(problem.data, Pipelines) else None
    if problem.data is not None and own is None:
        raise InvalidInputError(
            f"groups are of one network; {problem.formulation.label} are about something else"
        )
    refuse_rules(problem, "groups")
    if problem.network.layer_names != model.network.layer_names:
        raise InvalidInputError(
            f"the problem is about other layers than the pieces of {model.network.name!r}: open the model "
            "with the granularity piece, and take its network for the problem"
        )
    divided = _opened(model)
    layers = (next(divided.makers[name] for name in op.outputs) for op in divided.graph.operators)
    pieces = (*(-1 for _ in divided.graph.inputs), *layers)
    devices = replace(own or Pipelines(), overlap=overlap, most=None, switch_bytes_per_second=None)
    data = Cooperation(
        spatial=divided.spatial(),
        pieces=pieces,
        axis=axis,
        devices=devices,
        interstage=interstage,
        most_group=parse_most("groups", groups, {"all": None}, most=10**6),
    )
    return replace(problem, data=data, objective=Objective(terms=("period",)))


def _opened(model: Model | str | Path, shapes: Shapes | None = None) -> OnnxModel:
    from ..executor.graph.onnx_model import OnnxModel
    from .models import open_model

    opened = open_model(model, shapes=shapes, granularity="piece") if isinstance(model, str | Path) else model
    if not isinstance(opened, OnnxModel):
        raise InvalidInputError("groups split feature maps of ONNX models; this model is of another kind")
    return opened

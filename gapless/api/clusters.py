"""Problems of one network over the devices of a cluster, with estimated costs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..formulations.cluster_platform import ClusterPlatform
from ..formulations.errors import InvalidInputError
from ..formulations.files import NETWORK, format_of, load
from ..formulations.network import Network
from ..formulations.problem import Problem
from ..profiler.clusters.catalog import cluster_names, load_cluster
from ..profiler.clusters.costs import cluster_problem as estimated_problem
from ..profiler.platforms.catalog import is_shipped_name, network_names, platform_names
from ..profiler.platforms.workloads import phone_names
from .problems import load_problem, with_pipelines

if TYPE_CHECKING:
    from ..executor.model import Model
    from .models import Shapes

    Planned = Model | Network | Problem | str | Path
    """What names a network: a model, its table, a problem that has it, or where one of them is found."""


def cluster_problem(
    model: Planned,
    platform: ClusterPlatform | str | Path,
    *,
    batch: int = 1,
    pipelines: str | int = "many",
    shapes: Shapes | None = None,
    devices: Mapping[str, int] | None = None,
) -> Problem:
    """Return the problem of running a network over the devices of a cluster.

    What layers cost is estimated from their operations and bytes and the speeds of the devices, and marked
    so.

    Parameters
    ----------
    model
        From `open_model`; or a `Network`; or a problem, whose network is taken. Or a name: of a built-in
        network (also of those that are tables without weights, such as "vit-large"), of a shipped problem, or
        the path of an ONNX file, or of a file of a network or a problem.
    platform
        A shipped cluster by name (`gapless list problems` lists them), the path of a cluster file, or a
        `ClusterPlatform`.
    batch
        Inferences that pass the devices together as one item.
    pipelines
        How many may stand side by side: "many", "one" or a number, as for `with_pipelines`.
    shapes
        Fixed shapes of inputs with dynamic dimensions, by name, where an ONNX file is named.
    devices
        How many devices of a type there are, by its name, where that is not as the cluster says
        (`ClusterPlatform.with_counts`).

    Returns
    -------
    Problem
        Its objective is the throughput of all pipelines together.

    Raises
    ------
    InvalidInputError
        There is no such model or cluster, one of them is not valid, or the operations of a layer are not
        known.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.clusters.cluster_problem("squeezenet", "raspberry-pis")
    >>> len(problem.platform.units), problem.costs.provenance.estimated
    (6, True)
    """
    cluster = cluster_named(platform, devices)
    return with_pipelines(estimated_problem(network_of(model, shapes), cluster, batch=batch), pipelines)


def cluster_named(
    platform: ClusterPlatform | str | Path, devices: Mapping[str, int] | None = None
) -> ClusterPlatform:
    """Return the cluster that is meant; parameters and errors as for `cluster_problem`."""
    cluster = platform if isinstance(platform, ClusterPlatform) else _cluster(platform)
    return cluster.with_counts(devices) if devices else cluster


def network_of(model: Planned, shapes: Shapes | None = None) -> Network:
    """Return the network that is meant; parameters and errors as for `cluster_problem`."""
    if isinstance(model, str | Path):
        return _named(str(model), shapes)
    if shapes:
        raise InvalidInputError("shapes are for ONNX files that are named; this model has its own already")
    return model if isinstance(model, Network) else model.network


def _named(name: str, shapes: Shapes | None) -> Network:
    from .models import open_model

    table = _table(name)
    if table is None:
        return open_model(name, shapes=shapes).network
    if shapes:
        raise InvalidInputError(f"shapes are for ONNX files; {name} is a table with shapes of its own")
    return table


def _table(name: str) -> Network | None:
    """Return a network of which there is a table, or None."""
    from ..profiler.zoo.catalog import names_in_parts
    from .models import ZOO_PREFIX

    if os.path.isfile(name) and name.endswith(".json"):
        return load(name, NETWORK) if format_of(name) == NETWORK.format else load_problem(name).network
    if not os.path.exists(name):
        if name.removeprefix(ZOO_PREFIX) in names_in_parts():
            from ..profiler.zoo.tables import table_of

            return table_of(name.removeprefix(ZOO_PREFIX))
        if is_shipped_name(name):
            return load_problem(name).network
    return None


def _cluster(name: str | Path) -> ClusterPlatform:
    if not os.path.exists(name) and str(name) in (*phone_names(), *platform_names()):
        own = ", ".join(network_names(str(name))) if str(name) in platform_names() else ""
        takes = f"takes {own}, or a --workload" if own else 'takes a --workload, e.g. "yolov4,bert"'
        raise InvalidInputError(
            f"the platform {str(name)!r} is one device: --platform {name} {takes}; models run over clusters: "
            f"{', '.join(cluster_names())}, or a file"
        )
    return load_cluster(name)

"""The shipped clusters, by name: files beside this module. Nothing is read before it is asked for."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from ...formulations.cluster_platform import CLUSTER, ClusterPlatform
from ...formulations.errors import InvalidInputError
from ...formulations.files import load, parse
from ...formulations.validation import meant, shown


@cache
def cluster_names() -> tuple[str, ...]:
    """Return the names of the shipped clusters."""
    entries = (entry.name for entry in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in entries if name.endswith(".json")))


def shipped_cluster(name: str) -> ClusterPlatform:
    """Return a shipped cluster by its name."""
    data = files(__package__).joinpath(f"{name}.json").read_bytes()
    return parse(data, CLUSTER, name=f"shipped cluster {name}")


def load_cluster(name: str | Path) -> ClusterPlatform:
    """Return a shipped cluster by name, or read a cluster file.

    Parameters
    ----------
    name
        A shipped name such as "epipe-case-1" (`gapless list problems` lists them), or the path of a file. A
        path that exists wins over a name.

    Raises
    ------
    InvalidInputError
        There is no such name or file, or its content is not valid.
    """
    if os.path.exists(name):
        return load(name, CLUSTER)
    if str(name) in cluster_names():
        return shipped_cluster(str(name))
    hint = meant(str(name), cluster_names(), listed_by="`gapless list problems` lists them")
    raise InvalidInputError(f"{shown(str(name))} is neither a cluster file nor a shipped cluster; {hint}")

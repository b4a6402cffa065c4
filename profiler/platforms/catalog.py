"""Shipped problems: measured tables of four devices and three networks, and an estimated one, by name.

A name is "platform/network", e.g. "pixel7a/alexnet-sparse". Beside this module lies one folder for each
platform (`platform.json`, and `NETWORK.METHOD.json` for each table) and one with the networks. Nothing is
read before it is asked for. Phones whose costs are computed are in `workloads`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from ...formulations.co_run import combine
from ...formulations.costs import CostTable
from ...formulations.errors import InvalidInputError
from ...formulations.files import COSTS, NETWORK, PLATFORM, Document, Schema, parse
from ...formulations.hardware import Platform
from ...formulations.problem import Problem
from ...formulations.validation import meant


def read_shipped(path: str, schema: Schema[Document]) -> Document:
    """Read a shipped file of a known kind; `path` is relative to this folder."""
    return parse(_root().joinpath(path).read_bytes(), schema, name=f"shipped {path}")


def file_names(folder: str) -> tuple[str, ...]:
    """Return the names of the shipped JSON files of a folder, without their ending."""
    entries = (entry.name for entry in _root().joinpath(folder).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in entries if name.endswith(".json")))


def folders_with(file: str) -> Iterator[str]:
    """Yield the folders that hold a file of a name."""
    for folder in _root().iterdir():
        if folder.is_dir() and folder.joinpath(file).is_file():
            yield folder.name


def _root() -> Traversable:
    return files(__package__)


DEFAULT_METHOD = "heavy"
"""Each layer measured while all units run it: the only table that predicts a busy pipeline."""

_NETWORKS = "networks"


def platform_names() -> tuple[str, ...]:
    """Return the names of the shipped platforms with tables; "pixel7a-tpu" has an estimated unit."""
    return tuple(sorted(_tables()))


def network_names(platform: str) -> tuple[str, ...]:
    """Return the names of the networks that a shipped platform has tables of."""
    return tuple(sorted(_tables()[platform]))


def methods_of(name: str) -> tuple[str, ...]:
    """Return how the tables of a shipped problem were measured, e.g. "heavy" and "isolated"."""
    platform, network = _split(name)
    return tuple(sorted(_tables()[platform][network]))


def shipped_names() -> tuple[str, ...]:
    """Return the names of all shipped problems."""
    return tuple(
        f"{platform}/{network}" for platform in platform_names() for network in network_names(platform)
    )


def is_shipped_name(name: str) -> bool:
    """Return whether there is a shipped problem of this name."""
    return name in shipped_names()


def shipped_platform(platform: str) -> Platform:
    """Return a shipped platform."""
    return read_shipped(f"{platform}/platform.json", PLATFORM)


def shipped_problem(name: str, *, method: str = DEFAULT_METHOD) -> Problem:
    """Return a shipped problem, with the default objective.

    `name`: "platform/network"; see `shipped_names`. `method`: a co-run cost model: "heavy" (each layer
    measured while all units run it), "isolated" (alone), "interpolated" (between both, by the number of used
    units), or one of your own.
    Raises InvalidInputError: there is no such problem, or no such model.
    """
    platform, network = _split(name)
    board = shipped_platform(platform)
    found = combine(method, shipped_tables(name), board)
    return Problem(
        platform=board,
        networks=(read_shipped(f"{_NETWORKS}/{network}.json", NETWORK),),
        costs=found.costs,
        co_run_costs=found.beside,
    )


def shipped_tables(name: str) -> tuple[CostTable, ...]:
    """Return the tables of a shipped problem as they were measured."""
    platform, network = _split(name)
    return tuple(read_shipped(f"{platform}/{network}.{one}.json", COSTS) for one in methods_of(name))


def _split(name: str) -> tuple[str, str]:
    if not is_shipped_name(name):
        hint = meant(name, shipped_names(), listed_by="`gapless list problems` lists them")
        raise InvalidInputError(f"no shipped problem is called {name!r}; {hint}")
    platform, _, network = name.partition("/")
    return platform, network


@cache
def _tables() -> dict[str, dict[str, list[str]]]:
    """Return {platform: {network: [method, ...]}} as the folders say."""
    found: dict[str, dict[str, list[str]]] = {}
    for platform in folders_with("platform.json"):
        for name in file_names(platform):
            network, _, method = name.partition(".")
            if method:
                found.setdefault(platform, {}).setdefault(network, []).append(method)
    return found

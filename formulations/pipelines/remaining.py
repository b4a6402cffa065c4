"""What is left of a problem when a device or a link is lost while a plan runs (clusters, section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import TypeVar

from ..cluster import Link, Pipelines
from ..costs import CostTable
from ..errors import InvalidInputError
from ..problem import Problem
from .tables import cluster_of

Entry = TypeVar("Entry")


def without_device(problem: Problem, device: str) -> Problem:
    """Return a problem without one of its devices.

    Raises
    ------
    InvalidInputError
        There is no such device, it is the only one, or it holds the inputs.
    InvalidProblemError
        A rule names it.
    """
    names = problem.platform.unit_names
    data = cluster_of(problem).data
    if device not in names or len(names) == 1:
        what = "is no device of the problem" if device not in names else "is the only device"
        raise InvalidInputError(f"there is no plan without {device!r}: it {what}")
    if device == data.host:
        raise InvalidInputError(f"there is no plan without {device!r}: it holds the inputs (host)")
    index = names.index(device)
    types = _left(data.types, index)
    known = {*names, *types} - {device}
    return replace(
        problem,
        platform=replace(problem.platform, units=_left(problem.platform.units, index)),
        costs=_without_column(problem.costs, index),
        data=replace(
            data,
            types=types,
            power_mw=_left(data.power_mw, index),
            links=tuple(link for link in data.links if {link.source, link.target} <= known),
            inner=tuple(one for one in data.inner if one.device in known),
        ),
    )


def without_link(problem: Problem, source: str, target: str) -> Problem:
    """Return a problem in which one device cannot send to another.

    Raises
    ------
    InvalidInputError
        No links are given (then messages cost nothing, and none can be left out), or it is the last one.
    """
    names = problem.platform.unit_names
    data: Pipelines = cluster_of(problem).data
    link = data.linker(names)
    pairs = ((pair, link(*pair)) for pair in permutations(names, 2))
    left: list[Link] = [
        replace(found, source=pair[0], target=pair[1])
        for pair, found in pairs
        if found is not None and pair != (source, target)
    ]
    if not left:
        raise InvalidInputError(f"there is no plan without the link {source} -> {target}: no other is known")
    return replace(problem, data=replace(data, links=tuple(left)))


def _left(entries: tuple[Entry, ...], index: int) -> tuple[Entry, ...]:
    return (*entries[:index], *entries[index + 1 :])


def _without_column(table: CostTable, index: int) -> CostTable:
    def rows(given: Sequence[tuple[Entry, ...]]) -> tuple[tuple[Entry, ...], ...]:
        return tuple(_left(row, index) for row in given)

    return replace(
        table,
        units=_left(table.units, index),
        networks=tuple(
            replace(
                costs,
                layer_us=rows(costs.layer_us),
                transfer_in_us=rows(costs.transfer_in_us),
                transfer_out_us=rows(costs.transfer_out_us),
            )
            for costs in table.networks
        ),
    )

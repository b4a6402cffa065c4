"""What is left of a problem over devices when one of them, or a link, is lost (clusters, section 7)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any, TypeVar

from .cluster import Link, Pipelines
from .costs import CostTable
from .errors import InvalidInputError
from .problem import Problem
from .stations import StationsOperation

Entry = TypeVar("Entry")

Entries = Callable[[tuple[Any, ...]], tuple[Any, ...]]
"""Makes a row with an entry for each device of now from one of before."""


def unchanged(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row: the devices are those of before."""
    return row


class DevicesOperation(StationsOperation):
    """How plans over devices that links join run: they go on without a device, or without a link."""

    @abstractmethod
    def devices(self, problem: Problem) -> Pipelines:
        """Return what joins the devices of a problem."""

    @abstractmethod
    def data(self, problem: Problem, devices: Pipelines, entries: Entries = unchanged) -> Any:
        """Return the data of a problem whose devices are joined otherwise.

        `entries`: makes rows with an entry for each device of now from those of before.
        """

    def without_device(self, problem: Problem, device: str) -> Problem:
        """Return a problem without one of its devices.

        Raises InvalidProblemError: a rule names it.
        """
        names = problem.platform.unit_names
        data = self.devices(problem)
        if device not in names or len(names) == 1:
            what = "is no device of the problem" if device not in names else "is the only device"
            raise InvalidInputError(f"there is no plan without {device!r}: it {what}")
        if device == data.host:
            raise InvalidInputError(f"there is no plan without {device!r}: it holds the inputs (host)")
        index = names.index(device)
        types = without(data.types, index)
        known = {*names, *types} - {device}
        left = replace(
            data,
            types=types,
            power_mw=without(data.power_mw, index),
            links=tuple(link for link in data.links if {link.source, link.target} <= known),
            inner=tuple(one for one in data.inner if one.device in known),
        )
        return replace(
            problem,
            platform=replace(problem.platform, units=without(problem.platform.units, index)),
            costs=with_columns(problem.costs, partial(without, index=index)),
            data=self.data(problem, left, partial(without, index=index)),
        )

    def without_link(self, problem: Problem, source: str, target: str) -> Problem:
        """Return a problem in which one device cannot send to another.

        Where no links are given messages cost nothing and none can be left out: the device that sends is.
        """
        names, data = problem.platform.unit_names, self.devices(problem)
        if not data.links:
            return self.without_device(problem, source)
        link = data.linker(names)
        pairs = ((pair, link(*pair)) for pair in permutations(names, 2))
        left: list[Link] = [
            replace(found, source=pair[0], target=pair[1])
            for pair, found in pairs
            if found is not None and pair != (source, target)
        ]
        if not left:
            raise InvalidInputError(
                f"there is no plan without the link {source} -> {target}: no other is known"
            )
        return replace(problem, data=self.data(problem, replace(data, links=tuple(left))))

    def with_links(self, problem: Problem, links: Iterable[Link]) -> Problem:
        """Return a problem in which some links between its devices are as they are said to be now."""
        known = problem.platform.unit_names
        new = {(one.source, one.target): one for one in links if {one.source, one.target} <= {*known}}
        data = self.devices(problem)
        kept = (link for link in data.links if (link.source, link.target) not in new)
        return replace(problem, data=self.data(problem, replace(data, links=(*kept, *new.values()))))


def without(entries: tuple[Entry, ...], index: int) -> tuple[Entry, ...]:
    """Return what is left without one entry; of none, none."""
    return (*entries[:index], *entries[index + 1 :])


def with_columns(table: CostTable, entries: Entries, units: tuple[str, ...] = ()) -> CostTable:
    """Return a cost table with other columns; `units`: their names, where they are no names of before."""

    def rows(given: Sequence[tuple[Entry, ...]]) -> tuple[tuple[Entry, ...], ...]:
        return tuple(map(entries, given))

    return replace(
        table,
        units=units or entries(table.units),
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

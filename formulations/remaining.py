"""Problems over devices when one of them, or a link, is lost (clusters, section 7), or one more is there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, permutations
from typing import Any, TypeVar

from .cluster import Link, Pipelines
from .costs import CostTable
from .errors import InvalidInputError
from .expr import from_data, to_data
from .operation import operation_of
from .problem import Problem
from .rules import Rule
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


def other_devices(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield the problem with at most 1, 2, ... devices in use, then with one more of each kind, and in words.

    The units of one board have no twins: only where links join devices, one more can be there.
    """
    devices, used = _operation(problem).devices(problem), problem.limits.max_units
    names = problem.platform.unit_names
    most = len(names) if used is None else min(used, len(names))
    noun = "device" if devices.links else "unit"
    for number in range(max(1, problem.limits.min_units or 1), most):
        words = f"at most {number} {noun}{'' if number == 1 else 's'}"
        yield words, problem.with_limits(max_units=number)
    if not devices.links or problem.co_run_costs is not None:
        return
    kinds = [_kind(problem, device) for device in range(len(names))]
    for device in map(kinds.index, dict.fromkeys(kinds)):
        yield f"one more like {names[device]}", one_more(problem, device)


def one_more(problem: Problem, device: int) -> Problem:
    """Return the problem with a further device, the last one, that is like a given one.

    It has the same costs, memory and power, and the links of its type; without types, those of the given
    device, to which it has none itself.
    """

    def again(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*row, row[device])

    operation, units = _operation(problem), problem.platform.units
    data = operation.devices(problem)
    name = _new_name(problem.platform.unit_names, units[device].name)
    larger_data = replace(
        data,
        types=again(data.types_of(problem.platform)),
        power_mw=again(data.power_mw) if data.power_mw else (),
    )
    larger = replace(
        problem,
        platform=replace(problem.platform, units=(*units, replace(units[device], name=name))),
        costs=with_columns(problem.costs, again, (*problem.costs.units, name)),
        interference=None,
        rules=(),
        data=operation.data(problem, larger_data, again),
    )
    # Devices keep their numbers, so rules stay what they are; only the bounds of quantities change.
    variables = larger.formulation.variables(larger)
    rules = tuple(
        replace(rule, expr=from_data(to_data(rule.expr), variables.find)) if isinstance(rule, Rule) else rule
        for rule in problem.rules
    )
    return replace(larger, rules=rules)


def _operation(problem: Problem) -> DevicesOperation:
    operation = operation_of(problem)
    assert isinstance(operation, DevicesOperation)
    return operation


def _kind(problem: Problem, device: int) -> tuple[object, ...]:
    """Return what distinguishes the kind of a device."""
    data = _operation(problem).devices(problem)
    return (
        data.types_of(problem.platform)[device],
        problem.platform.units[device].memory_bytes,
        data.power_mw[device] if data.power_mw else None,
        *(row[device] for entry in problem.costs.networks for row in entry.layer_us),
    )


def _new_name(known: tuple[str, ...], like: str) -> str:
    base = like.rstrip("0123456789")
    return next(name for name in (f"{base or like}{number}" for number in count(2)) if name not in known)

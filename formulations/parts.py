"""What plans fall into when costs depend on the units in use: parts that have one table of costs each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from .costs import CostRows, CostTable, NetworkCosts, TransferRows, shape_of
from .hardware import Platform

MOST_SETS = 1023
"""Most sets of units that a problem has tables for: all those of ten units."""


@dataclass(frozen=True, slots=True)
class Part:
    """The plans that use a number of units, or exactly some."""

    key: int | tuple[str, ...]  # the number, or the names of the units in the order of the platform

    def __str__(self) -> str:
        if isinstance(self.key, int):
            return "1 unit" if self.key == 1 else f"{self.key} units"
        return "+".join(self.key)


def parts_of(
    costs: CostTable, beside: Sequence[CostTable], platform: Platform, counts: Sequence[int]
) -> Iterator[Part]:
    """Yield the parts of a problem.

    `costs`, `beside`: its tables (`Problem.co_run_costs`).
    """
    if all(table.units == platform.unit_names for table in beside):
        yield from map(Part, counts)
        return
    if 1 in counts:
        yield Part(1)
    yield from (Part(table.units) for table in beside if len(table.units) in counts)


def set_defects(costs: CostTable, beside: Sequence[CostTable], platform: Platform) -> Iterator[str]:
    """Yield what is wrong with tables for sets of units."""
    names, conflicts = platform.unit_names, set(platform.conflicts)
    if len(beside) > MOST_SETS:
        yield f"co_run_costs has {len(beside)} tables for sets of units, at most {MOST_SETS} are possible"
        return
    given = [table.units for table in beside]
    for units in given:
        if len(units) < 2 or units != tuple(name for name in names if name in units):
            yield (
                f"co_run_costs has a table for [{', '.join(units)}], must be for two or more units of the "
                f"platform in its order: {', '.join(names)}"
            )
            return
    if len(set(given)) < len(given):
        yield "co_run_costs has two tables for the same set of units"
    known = set(given)
    for size in range(2, len(names) + 1):
        for members in combinations(range(len(names)), size):
            units = tuple(names[unit] for unit in members)
            if units not in known and not any(pair in conflicts for pair in combinations(members, 2)):
                yield f"co_run_costs has no table for {', '.join(units)}, which can run at once"
                return
    for table in beside:
        if shape_of(table) != shape_of(narrowed(costs, table.units)):
            yield (
                f"the table for {', '.join(table.units)} differs from costs in batch, networks, or in which "
                "layers run where"
            )


def narrowed(table: CostTable, units: Sequence[str]) -> CostTable:
    """Return some columns of a table."""
    columns = [table.units.index(name) for name in units]

    def kept(rows: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
        return tuple(tuple(row[column] for column in columns) for row in rows)

    return replace(
        table,
        units=tuple(units),
        networks=tuple(
            NetworkCosts(
                network=one.network,
                layer_us=kept(one.layer_us),
                transfer_in_us=kept(one.transfer_in_us),
                transfer_out_us=kept(one.transfer_out_us),
            )
            for one in table.networks
        ),
    )


def widened(table: CostTable, whole: CostTable) -> CostTable:
    """Return a table of some units with the columns of all units of another one: the others run nothing."""
    place = [table.units.index(name) if name in table.units else None for name in whole.units]

    def layers(rows: CostRows) -> CostRows:
        return tuple(tuple(None if at is None else row[at] for at in place) for row in rows)

    def copies(rows: TransferRows) -> TransferRows:
        return tuple(tuple(0 if at is None else row[at] for at in place) for row in rows)

    return replace(
        table,
        units=whole.units,
        networks=tuple(
            NetworkCosts(
                network=one.network,
                layer_us=layers(one.layer_us),
                transfer_in_us=copies(one.transfer_in_us),
                transfer_out_us=copies(one.transfer_out_us),
            )
            for one in table.networks
        ),
    )

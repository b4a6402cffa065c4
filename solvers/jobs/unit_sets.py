"""Which units plans of single requests may use together, and whether they can break anything else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ...formulations.jobs.tables import JobTables
from ...formulations.problem import Feature, Problem

MOST_SETS = 12
"""Most sets of units that are searched one by one, where units exclude each other or few may be used."""

CHECKED = frozenset(map(str, (Feature.LIMITS, Feature.RULES, Feature.OPAQUE_RULES, Feature.DEVICE_MEMORY)))
"""What only the judge says of a plan."""


def is_checked(problem: Problem) -> bool:
    """Return whether plans that fit their units can break something."""
    return bool(problem.features & CHECKED)


def unit_sets(problem: Problem, tables: JobTables) -> Iterator[frozenset[int]]:
    """Yield sets of units that plans may use: largest ones first, none in another one."""
    exclusive, most = tables.chains[0].exclusive, problem.limits.max_units
    found: list[frozenset[int]] = []
    for size in range(min(tables.unit_count, most or tables.unit_count), 0, -1):
        for units in map(frozenset, combinations(range(tables.unit_count), size)):
            if not any(exclusive[unit] & units for unit in units) and not any(units < own for own in found):
                found.append(units)
                yield units

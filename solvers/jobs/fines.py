"""What schedules can break: units that may not be used together, and fines for rules, limits and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...formulations.hardware import free_sets
from ...formulations.jobs.tables import JobTables, ScheduleTables
from ...formulations.problem import Feature, Problem
from ..repairing import breach
from ..shortfall import missed_by
from .passages import Part

MOST_SETS = 12
"""Most sets of units that are searched one by one, where units exclude each other or few may be used."""

CHECKED = frozenset(map(str, (Feature.LIMITS, Feature.RULES, Feature.OPAQUE_RULES, Feature.DEVICE_MEMORY)))
"""What only the judge says of a plan."""

_BROKEN, _PER_PERMILLE = 100.0, 0.002
"""What a schedule that breaks something is fined, and for each permille of it, as shares of all work."""

Fine = Callable[[tuple[int, ...], Sequence[Sequence[Part]]], float]
"""From a request for each chunk, in the order in which units serve them, and the chunks of each request to
a time; 0.0: nothing is broken."""


def is_checked(problem: Problem) -> bool:
    """Return whether plans that fit their units can break something."""
    return bool(problem.features & CHECKED)


def unit_sets(problem: Problem, tables: ScheduleTables) -> Iterator[frozenset[int]]:
    """Return the sets of units that plans may use: largest ones first, none in another one."""
    return free_sets(tables.excluded, problem.limits.max_units)


def fine_of(problem: Problem, tables: JobTables, work_us: int) -> Fine | None:
    """Return how schedules are fined; None: those whose chunks fit their units break nothing.

    `work_us`: of all requests, the scale of the fines. Memory alone is looked up; else the judge is asked.
    """
    if not is_checked(problem):
        return None

    def scaled(missed: int) -> float:
        return work_us * (_BROKEN + _PER_PERMILLE * missed) if missed else 0.0

    room = tables.chains[0].device_memory
    if room is not None and problem.features & CHECKED == {str(Feature.DEVICE_MEMORY)}:
        need = _Memory(tables)
        return lambda order, parts: scaled(missed_by(loaded, room) if (loaded := need(parts)) > room else 0)
    return lambda order, parts: scaled(breach(problem, tables.ordered(order, tuple(map(tuple, parts))))[0])


class _Memory:
    """The bytes of all different chunks, which stay loaded."""

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables
        self._known: dict[tuple[int, Part], int] = {}

    def __call__(self, parts: Sequence[Sequence[Part]]) -> int:
        known, chain_of = self._known, self._tables.chain_of
        used = {(chain_of[request], part) for request, own in enumerate(parts) for part in own}
        for key in used - known.keys():
            known[key] = self._tables.memory_bytes(chain_of.index(key[0]), key[1])
        return sum(map(known.__getitem__, used))

"""Networks in sections: consecutive layers that the same units can run (Band, 4.2).

Band calls a section a *unit*, and consecutive sections with a unit in common a *subgraph*; here the latter
is a chunk, as everywhere. A network whose layers all run everywhere is one section; further borders can be
given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ..chain import Chain
from ..errors import InvalidInputError

Session = tuple[int, int, int]
"""A chunk on a unit, which is a session of its engine: first section, one past the last, and unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Consecutive layers [start, stop) of one network that the same units can run.

    `start`, `stop`: first layer, and one past the last.
    """

    start: int
    stop: int
    units: frozenset[int]
    """Indices of the units that can run all of them; empty where layers cannot be cut apart and no unit runs
    them all."""


def sections_of(chain: Chain, borders: Collection[int] = ()) -> tuple[Section, ...]:
    """Return the sections of a network, in order.

    Layers that must not be cut apart are one layer here, which only those units can run that run all of them.

    `borders`: cuts at which a section ends although the same units can run both sides.
    """
    if strange := sorted(set(borders) - set(chain.cuts)):
        raise InvalidInputError(
            f"network {chain.network!r} cannot be cut at {', '.join(map(str, strange))}; it can at "
            f"{', '.join(map(str, chain.cuts[1:-1])) or 'no place'}"
        )
    return tuple(_merged(chain, frozenset(borders)))


def _merged(chain: Chain, borders: frozenset[int]) -> Iterator[Section]:
    start, units = 0, _able(chain, 0, chain.cuts[1])
    for cut, after in zip(chain.cuts[1:], chain.cuts[2:], strict=False):
        following = _able(chain, cut, after)
        if following != units or cut in borders:
            yield Section(start=start, stop=cut, units=units)
            start, units = cut, following
    yield Section(start=start, stop=chain.layer_count, units=units)


def _able(chain: Chain, start: int, stop: int) -> frozenset[int]:
    return frozenset(unit for unit in range(chain.unit_count) if chain.runs(start, stop, unit))


def chunks_of(sections: tuple[Section, ...]) -> tuple[tuple[int, int, frozenset[int]], ...]:
    """Return all chunks of a network: first section, one past the last, and the units that can run it."""
    found = []
    for start, first in enumerate(sections):
        units = first.units
        for stop in range(start + 1, len(sections) + 1):
            units &= sections[stop - 1].units
            if not units:
                break
            found.append((start, stop, units))
    return tuple(found)


def sessions_of(chain: Chain, sections: tuple[Section, ...]) -> dict[Session, int]:
    """Return the bytes of the session of each chunk on each unit that can run it and has the memory."""
    sizes = {}
    for start, stop, units in chunks_of(sections):
        first, last = sections[start].start, sections[stop - 1].stop
        for unit in sorted(units):
            if chain.fits(first, last, unit):
                sizes[start, stop, unit] = chain.memory_bytes(first, last)
    return sizes


class Fallback(StrEnum):
    """What happens to layers that a unit cannot run where networks are placed whole (Band, 6.2).

    REST
        Everything from the first such layer on runs on the processor: TensorFlow Lite.
    BACK_AND_FORTH
        Only those layers do; the unit goes on behind them: TensorFlow Lite with most partitions.
    """

    REST = "rest"
    BACK_AND_FORTH = "back_and_forth"


def legs_of(
    sections: tuple[Section, ...], unit: int, fallback: Fallback, processor: int
) -> tuple[tuple[int, int, int], ...]:
    """Return where the parts of a network run that is placed whole on a unit.

    `fallback`: how layers that the unit cannot run go to the processor.
    First section, one past the last, unit of each, in order.
    """
    legs: list[tuple[int, int, int]] = []
    for index, section in enumerate(sections):
        fallen = bool(legs) and legs[-1][2] != unit and fallback is Fallback.REST
        where = unit if unit in section.units and not fallen else processor
        if legs and legs[-1][2] == where:
            legs[-1] = (legs[-1][0], index + 1, where)
        else:
            legs.append((index, index + 1, where))
    return tuple(legs)

"""How soon a request can be done: the shortest way through its sections (Band, 4.3.1; repaired).

    memo[j] = min over i < j and units w of max(wait[w], memo[i]) + e(i..j, w)

For n sections and p units that takes O(p n^2) steps. Band counts subgraphs where it counts its units, and
charges no copies; e has them here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .times import Option, Times

_NEVER = 1 << 62


class Way(NamedTuple):
    """How what is left of a request is done soonest."""

    latency_us: int  # time from now, with the waiting for units
    first: Option  # the chunk that it begins with
    units: int  # the units that it passes, as a set of bits


def soonest(times: Times, network: int, done: int, wait_us: Sequence[int | None]) -> Way | None:
    """Return how what is left of a request is done soonest; None: the units that are there cannot run it.

    Of equal ways the one that is found first: shorter chunks, and earlier units.

    `times`: expected times; `network`, `done`: index of the network, and how many of its sections are done;
    `wait_us`: by unit, how long until it is free; None: it cannot be used.
    """
    count = times.sections(network)
    best = [_NEVER] * (count + 1)
    ways: list[tuple[Option, int] | None] = [None] * (count + 1)
    best[done] = 0
    for start in range(done, count):
        ready = best[start]
        if ready == _NEVER:
            continue
        way = ways[start]
        for option in times.options(network, start):
            stop, unit, time_us = option
            wait = wait_us[unit]
            if wait is None:
                continue
            end = (wait if wait > ready else ready) + time_us
            if end < best[stop]:
                best[stop] = end
                ways[stop] = (option, 1 << unit) if way is None else (way[0], way[1] | 1 << unit)
    last = ways[count]
    return None if last is None else Way(best[count], *last)


def shortest_latency_us(times: Times, network: int, done: int = 0) -> int | None:
    """Return how long the rest of a request takes at least when it is alone on all units."""
    found = soonest(times, network, done, [0] * len(times.units))
    return None if found is None else found.latency_us

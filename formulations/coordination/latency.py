"""How soon a request can be done: the shortest way through its sections (Band, 4.3.1; repaired).

    memo[j] = min over i < j and units w of max(wait[w], memo[i]) + e(i..j, w)

For n sections and p units that takes O(p n^2) steps. Band counts subgraphs where it counts its units, and
charges no copies; e has them here.
"""

from __future__ import annotations

from collections.abc import Sequence

from .times import Option, Times

_NEVER = 1 << 62


def soonest(
    times: Times, network: int, done: int, wait_us: Sequence[int | None]
) -> tuple[int, Option] | None:
    """Return how long the rest of a request takes at least, and with which chunk it has to begin.

    Parameters
    ----------
    times
        Expected times.
    network, done
        Index of the network, and how many of its sections are done.
    wait_us
        By unit, how long until it is free; None: it cannot be used.

    Returns
    -------
    tuple of (int, Option), or None
        Time from now in microseconds, waiting included; None: the units that are there cannot run it. Of
        equal ways the one that is found first: shorter chunks, and earlier units.
    """
    count = times.sections(network)
    best = [_NEVER] * (count + 1)
    first: list[Option | None] = [None] * (count + 1)
    best[done] = 0
    for start in range(done, count):
        ready = best[start]
        if ready == _NEVER:
            continue
        begun = first[start]
        for option in times.options(network, start):
            stop, unit, time_us = option
            wait = wait_us[unit]
            if wait is None:
                continue
            end = (wait if wait > ready else ready) + time_us
            if end < best[stop]:
                best[stop] = end
                first[stop] = option if begun is None else begun
    last = first[count]
    return None if last is None else (best[count], last)


def shortest_latency_us(times: Times, network: int, done: int = 0) -> int | None:
    """Return how long the rest of a request takes at least when it is alone on all units."""
    found = soonest(times, network, done, [0] * len(times.units))
    return None if found is None else found[0]

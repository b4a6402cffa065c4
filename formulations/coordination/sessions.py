"""Which chunks are worth being loaded: a session for every chunk and unit takes memory (Band, 4.2).

A session is *useful* if it lies on the shortest way from some section to the end while some set of units is
free and no other unit can be used. With more memory than there is, the least useful ones go first: those
that are on the shortest ways of the fewest sets and sections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from ..errors import InvalidInputError
from .times import NetworkTimes

Session = tuple[int, int, int]
"""First section, one past the last, and unit."""

_ALL_SETS = 8
"""Up to so many units every set of them is looked at; beyond, small sets and those that lack few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The sessions of one network that stay loaded.

    Attributes
    ----------
    sessions
        Those that stay.
    dropped
        Those that do not.
    bytes, dropped_bytes
        What they need.
    worst_permille
        The shortest latency with the sessions that stay, in permille of the one with all, for the set of
        units where that is largest; of those sets that still can run the network.
    mean_permille
        The same on average.
    lost_sets
        Number of sets of units that could run the network alone, and cannot any more.
    """

    sessions: tuple[Session, ...]
    dropped: tuple[Session, ...]
    bytes: int
    dropped_bytes: int
    worst_permille: int
    mean_permille: int
    lost_sets: int


def loaded_within(
    times: NetworkTimes, session_bytes: Mapping[Session, int], limit_bytes: int | None = None
) -> Loaded:
    """Return the sessions that are worth being loaded.

    `limit_bytes`: what all may need together; None: only those go that no shortest way has.
    """
    units = sorted({unit for _, _, unit in times.chunk_us})
    sets = list(_sets(units))
    uses = Counter(session for free in sets for session in _ways(times, times.chunk_us, free))
    kept = set(uses)
    held = sum(session_bytes[session] for session in kept)
    for session in sorted(kept, key=lambda each: (uses[each], -session_bytes[each], each)):
        if limit_bytes is None or held <= limit_bytes:
            break
        if _latency_us(times, kept - {session}, units) is not None:
            kept.discard(session)
            held -= session_bytes[session]
    if limit_bytes is not None and held > limit_bytes:
        raise InvalidInputError(
            f"its sessions need at least {held:,} bytes to run at all, the limit is {limit_bytes:,}"
        )
    ratios, lost = _losses(times, kept, sets)
    return Loaded(
        sessions=tuple(sorted(kept)),
        dropped=tuple(sorted(set(times.chunk_us) - kept)),
        bytes=held,
        dropped_bytes=sum(session_bytes.values()) - held,
        worst_permille=round(1000 * max(ratios)),
        mean_permille=round(1000 * sum(ratios) / len(ratios)),
        lost_sets=lost,
    )


def _sets(units: list[int]) -> Iterable[frozenset[int]]:
    sizes = range(1, len(units) + 1)
    few = len(units) <= _ALL_SETS
    for size in sizes if few else (1, 2, len(units) - 1, len(units)):
        yield from map(frozenset, combinations(units, size))


def _losses(
    times: NetworkTimes, kept: set[Session], sets: Iterable[frozenset[int]]
) -> tuple[list[float], int]:
    ratios, lost = [], 0
    for free in sets:
        before = _latency_us(times, times.chunk_us, free)
        after = _latency_us(times, kept, free)
        if before is not None and after is not None:
            ratios.append(after / before)
        lost += before is not None and after is None
    return ratios, lost


def _latency_us(times: NetworkTimes, sessions: Iterable[Session], free: Iterable[int]) -> float | None:
    best, _ = _backwards(times, sessions, free)
    return best[0]


def _ways(times: NetworkTimes, sessions: Iterable[Session], free: Iterable[int]) -> Iterable[Session]:
    """Return the first session of the shortest way from each section, with a set of units alone."""
    return [first for first in _backwards(times, sessions, free)[1] if first is not None]


def _backwards(
    times: NetworkTimes, sessions: Iterable[Session], free: Iterable[int]
) -> tuple[list[float | None], list[Session | None]]:
    """Return the shortest time from each section to the end, and the session that it begins with."""
    usable = frozenset(free)
    best: list[float | None] = [None] * times.sections + [0.0]
    first: list[Session | None] = [None] * times.sections
    for session in sorted(sessions, key=lambda each: (-each[0], each)):
        start, stop, unit = session
        rest = best[stop]
        if unit not in usable or rest is None:
            continue
        time_us = times.chunk_us[session] + rest
        known = best[start]
        if known is None or time_us < known:
            best[start], first[start] = time_us, session
    return best, first

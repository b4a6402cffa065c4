"""Which chunks are worth being loaded: a session for every chunk and unit takes memory (Band, 4.2).

A session is *useful* if others lead to it, and the shortest way from its first section to the end begins with
it while some set of units is free, and the others cannot be used, or are free after a quarter of the shortest
latency. With the first alone EagleEye had 4 to 6 % fewer frames a second on Pixel 4. With more
memory than there is, the least useful ones go first: those that are on the shortest ways of the fewest sets
and sections.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from ..errors import InvalidInputError
from .sections import Session
from .times import NetworkTimes, Times, shortest_latency_us, soonest


class SessionChoice(StrEnum):
    """Which sessions are loaded.

    USEFUL
        Those on shortest ways, within a limit of memory if there is one.
    ALL
        Each chunk on each unit that can run it, as in the paper.
    """

    USEFUL = "useful"
    ALL = "all"


WAITS = (None, 0.25)
"""How long units that are not free are waited for, in shortest latencies; None: they cannot be used."""

_ALL_SETS = 8
"""Up to so many units every set of them is looked at; beyond, small sets and those that lack few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The sessions of one network that stay loaded.

    `bytes`, `dropped_bytes`: what they need.
    """

    sessions: tuple[Session, ...]  # those that stay
    dropped: tuple[Session, ...]  # those that do not
    bytes: int
    dropped_bytes: int
    worst_permille: int
    """The shortest latency with the sessions that stay, in permille of the one with all, for the set of units
    where that is largest; of those sets that still can run the network."""
    mean_permille: int  # the same on average
    lost_sets: int  # number of sets of units that could run the network alone, and cannot any more
    slower: bool = False  # whether the shortest latency of any set of units grows at all

    @property
    def words(self) -> str:
        """What is loaded, and what is lost without the rest, in a sentence."""
        count, mib = len(self.sessions), self.bytes / 2**20
        if not self.dropped:
            return (
                f"{f'all {count:,} sessions are' if count > 1 else 'one session is'} loaded, {mib:,.0f} MiB"
            )
        of = f"{count + len(self.dropped):,} sessions are loaded, {mib:,.0f} of"
        said = f"{count:,} of {of} {mib + self.dropped_bytes / 2**20:,.0f} MiB; "
        if not self.slower and not self.lost_sets:
            return f"{said}whichever units are free, no shortest way has the others"
        sets = "set of units" if self.lost_sets == 1 else "sets of units"
        lost = f"; {self.lost_sets} {sets} cannot run it alone any more" if self.lost_sets else ""
        return (
            f"{said}without the others the shortest latency grows by {self.mean_permille / 10 - 100:.1f} % "
            f"on average over sets of free units, {self.worst_permille / 10 - 100:.1f} % at most{lost}"
        )


def loaded_within(
    times: NetworkTimes, session_bytes: Mapping[Session, int], limit_bytes: int | None = None
) -> Loaded:
    """Return the sessions that are worth being loaded: those that are useful.

    `limit_bytes`: what all may need together; None: only those go that no shortest way has.
    """
    units = sorted({unit for _, _, unit in times.chunk_us})
    sets = list(_sets(units))
    uses = Counter(_ways(times, units, sets))
    kept = _reachable(uses)
    held = sum(session_bytes[session] for session in kept)
    for session in sorted(kept, key=lambda each: (uses[each], -session_bytes[each], each)):
        if limit_bytes is None or held <= limit_bytes:
            break
        if session in kept and _latency_us(times, kept - {session}, units) is not None:
            kept = _reachable(kept - {session})
            held = sum(session_bytes[each] for each in kept)
    if limit_bytes is not None and held > limit_bytes:  # what is used most is not what is smallest
        kept = _smallest_way(times.sections, session_bytes)
        held = sum(session_bytes[session] for session in kept)
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
        slower=max(ratios) > 1,
    )


def _reachable(sessions: Iterable[Session]) -> set[Session]:
    """Return the sessions that others, one after the other, lead to."""
    ends, found = {0}, set[Session]()
    for session in sorted(sessions):
        if session[0] in ends:
            found.add(session)
            ends.add(session[1])
    return found


def _smallest_way(sections: int, session_bytes: Mapping[Session, int]) -> set[Session]:
    """Return the sessions of a way through a network that needs least memory."""
    best: list[tuple[int, tuple[Session, ...]] | None] = [(0, ()), *[None] * sections]
    for session in sorted(session_bytes):
        before, known = best[session[0]], best[session[1]]
        if before is not None:
            needed = before[0] + session_bytes[session], (*before[1], session)
            best[session[1]] = needed if known is None else min(known, needed)
    last = best[sections]
    return set() if last is None else set(last[1])


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
    """Return the shortest time of a network with some units alone, none of which is waited for."""
    usable = frozenset(free)
    best: list[float | None] = [None] * times.sections + [0.0]
    for session in sorted(sessions, key=lambda each: (-each[0], each)):
        start, stop, unit = session
        rest = best[stop]
        if unit not in usable or rest is None:
            continue
        time_us = times.chunk_us[session] + rest
        known = best[start]
        best[start] = time_us if known is None else min(known, time_us)
    return best[0]


def _ways(times: NetworkTimes, units: list[int], sets: Iterable[frozenset[int]]) -> Iterable[Session]:
    """Yield the first session of the shortest way from each section, for each set and each wait."""
    known = Times([str(unit) for unit in range(units[-1] + 1)], [replace(times, loaded=None)])
    least_us = shortest_latency_us(known, 0) or 0
    for free in sets:
        for share in WAITS if len(free) < len(units) else WAITS[:1]:
            late_us = None if share is None else round(share * least_us)
            wait_us = [0 if unit in free else late_us for unit in range(units[-1] + 1)]
            for done in range(times.sections):
                way = soonest(known, 0, done, wait_us)
                if way is not None:
                    yield done, way.first.stop, way.first.unit

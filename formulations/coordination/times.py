"""What policies know of times: expected ones, and how soon a request can be done.

How soon a request can be done: the shortest way through its sections (Band, 4.3.1; repaired).

memo[j] = min over i < j and units w of max(wait[w], memo[i]) + e(i..j, w)

For n sections and p units that takes O(p n^2) steps. Band counts subgraphs where it counts its units, and
charges no copies; e has them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..chain import Chain
from .sections import Fallback, Section, Session, legs_of, sessions_of

SMOOTHING = 0.1
"""Share of the last observation in an expected time (Band, 4.3.2)."""


class Option(NamedTuple):
    """A chunk that a request can start with."""

    stop: int  # number of sections that are done afterwards
    unit: int  # where it runs
    time_us: int  # its expected time


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTimes:
    """Expected times of one network, before anything is observed."""

    sections: int  # number of its sections
    chunk_us: Mapping[Session, float]
    """By first section, one past the last, and unit; what is not there cannot run."""
    loaded: frozenset[Session] | None = None
    """The chunks that may be started: those with a session (`sessions`); None: all."""


class Times:
    """Expected times of chunks, by index of network, section and unit; microseconds.

    Policies only read. Whoever runs chunks tells what they took (`observe`).

    Parameters
    ----------
    units
        Names of the units.
    networks
        What is expected at first.
    smoothing
        Share of the last observation in an expected time; 0: expectations stay as they are.
    distortion
        Policies read what is known times this factor, by (network, first section, one past the last, unit):
        to study errors (Band, Fig. 15). None: nothing is distorted.

    Attributes
    ----------
    version
        Changes with every expectation.
    """

    def __init__(
        self,
        units: Sequence[str],
        networks: Iterable[NetworkTimes] = (),
        *,
        smoothing: float = SMOOTHING,
        distortion: Callable[[int, int, int, int], float] | None = None,
    ) -> None:
        self.units = tuple(units)
        self.version = 0
        self._smoothing = smoothing
        self._distortion = distortion
        self._sections: list[int] = []
        self._options: list[list[tuple[Option, ...]]] = []
        self._known: dict[tuple[int, int, int, int], float] = {}
        for network in networks:
            self.add(network)

    def add(self, times: NetworkTimes) -> int:
        """Take a network, and return its index."""
        network = len(self._sections)
        self._sections.append(times.sections)
        options: list[list[Option]] = [[] for _ in range(times.sections)]
        for (start, stop, unit), time_us in sorted(times.chunk_us.items()):
            self._known[network, start, stop, unit] = time_us
            if times.loaded is None or (start, stop, unit) in times.loaded:
                options[start].append(Option(stop, unit, self._shown(network, start, stop, unit)))
        self._options.append([tuple(each) for each in options])
        self.version += 1
        return network

    @property
    def network_count(self) -> int:
        """Number of networks."""
        return len(self._sections)

    def sections(self, network: int) -> int:
        """Return the number of sections of a network."""
        return self._sections[network]

    def options(self, network: int, start: int) -> tuple[Option, ...]:
        """Return the chunks that may be started when `start` sections are done, shorter ones first."""
        return self._options[network][start]

    def loaded(self, network: int) -> frozenset[Session]:
        """Return the chunks of a network that may be started."""
        options = enumerate(self._options[network])
        return frozenset((start, option.stop, option.unit) for start, some in options for option in some)

    def may_start(self, network: int, start: int, stop: int, unit: int) -> bool:
        """Return whether a chunk is among these options."""
        return any(option[:2] == (stop, unit) for option in self._options[network][start])

    def chunk_us(self, network: int, start: int, stop: int, unit: int) -> int | None:
        """Return the expected time of a chunk of sections [start, stop); None: the unit cannot run it."""
        known = (network, start, stop, unit) in self._known
        return self._shown(network, start, stop, unit) if known else None

    def expect(self, network: int, start: int, stop: int, unit: int, time_us: float) -> None:
        """Set the expected time of a chunk that the unit can run."""
        self._known[network, start, stop, unit] = time_us
        shown = self._shown(network, start, stop, unit)
        self._options[network][start] = tuple(
            Option(stop, unit, shown) if option[:2] == (stop, unit) else option
            for option in self._options[network][start]
        )
        self.version += 1

    def observe(self, network: int, start: int, stop: int, unit: int, time_us: float) -> None:
        """Take what a chunk took: time <- a new + (1 - a) old (Band, 4.3.2)."""
        if self._smoothing:
            before = self._known[network, start, stop, unit]
            self.expect(network, start, stop, unit, before + self._smoothing * (time_us - before))

    def charged(self, charge: Callable[[tuple[int, int, int, int], float], float]) -> Times:
        """Return the same chunks with other expected times, by chunk and what policies read of it now."""
        networks = [
            NetworkTimes(
                sections=sections,
                chunk_us={key[1:]: charge(key, self._shown(*key)) for key in self._known if key[0] == n},
                loaded=self.loaded(n),
            )
            for n, sections in enumerate(self._sections)
        ]
        return Times(self.units, networks, smoothing=self._smoothing)

    def _shown(self, network: int, start: int, stop: int, unit: int) -> int:
        known_us = self._known[network, start, stop, unit]
        if self._distortion is not None:
            known_us *= self._distortion(network, start, stop, unit)
        return max(1, round(known_us))


def chunk_times(chain: Chain, sections: tuple[Section, ...]) -> NetworkTimes:
    """Return the times of all chunks that units can hold, by the costs of a network, copies included."""
    return NetworkTimes(
        sections=len(sections),
        chunk_us={
            (start, stop, unit): chain.busy_us(sections[start].start, sections[stop - 1].stop, unit)
            for start, stop, unit in sessions_of(chain, sections)
        },
    )


def whole_times(
    chain: Chain, sections: tuple[Section, ...], fallback: Fallback, processor: int
) -> NetworkTimes:
    """Return the times of a network that is placed whole: as one section that every unit can run.

    `fallback`: how layers that a unit cannot run go to the processor.
    """
    return NetworkTimes(
        sections=1,
        chunk_us={
            (0, 1, unit): sum(
                chain.busy_us(sections[start].start, sections[stop - 1].stop, where)
                for start, stop, where in legs_of(sections, unit, fallback, processor)
            )
            for unit in range(chain.unit_count)
        },
    )


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

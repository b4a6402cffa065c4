"""Lower bounds on every term for plans that are not finished: completed pipelines, and one that was begun."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...formulations.pipelines.tables import Cluster
from ...formulations.terms import Term as T
from .arrays import NEVER, Ints
from .program import ADDITIVE
from .relaxed import Relaxation


class Done(NamedTuple):
    """The numbers of completed pipelines together, as those of plans (`PipelineValues`)."""

    rate: int = 0
    period_us: int = 0
    latency_us: int = 0
    gapness_us: int = 0
    energy_nj: int = 0
    traffic_bytes: int = 0
    peak_bytes: int = 0
    devices: int = 0
    pipelines: int = 0


class Begun(NamedTuple):
    """The numbers of the chunks of one pipeline so far; of the last one without what is not known yet."""

    longest_us: int = 0
    shortest_us: int = NEVER
    latency_us: int = 0
    energy_nj: int = 0
    traffic_bytes: int = 0
    memory_bytes: int = 0
    devices: int = 0

    def and_then(self, stage_us: int, time_us: int, energy_nj: int, sent: int, memory: int) -> Begun:
        """Return the numbers with one stage more: (its stage, chunk and messages, energy, bytes, bytes)."""
        return Begun(
            max(self.longest_us, stage_us),
            min(self.shortest_us, stage_us),
            self.latency_us + time_us,
            self.energy_nj + energy_nj,
            self.traffic_bytes + sent,
            self.memory_bytes + memory,
            self.devices + 1,
        )

    @property
    def gapness_us(self) -> int:
        """Longest minus shortest stage; 0 without stages."""
        return max(0, self.longest_us - self.shortest_us)


def completed(cluster: Cluster, done: Done, pipe: Begun) -> Done:
    """Return the numbers of pipelines with one more."""
    return Done(
        done.rate + cluster.rate(pipe.longest_us),
        max(done.period_us, pipe.longest_us),
        max(done.latency_us, pipe.latency_us),
        max(done.gapness_us, pipe.gapness_us),
        max(done.energy_nj, pipe.energy_nj),
        max(done.traffic_bytes, pipe.traffic_bytes),
        done.peak_bytes + pipe.memory_bytes,
        done.devices + pipe.devices,
        done.pipelines + 1,
    )


_FIELDS: dict[str, str] = {
    T.PERIOD: "period_us",
    T.LATENCY: "latency_us",
    T.GAPNESS: "gapness_us",
    T.DEVICES: "devices",
    T.ENERGY: "energy_nj",
    T.TRAFFIC: "traffic_bytes",
    T.PEAK_MEMORY: "peak_bytes",
}
_SUMMED = {T.DEVICES, T.PEAK_MEMORY}
"""Terms that are sums over pipelines; all but these and the rate are the most of them."""


class Bounds:
    """Lower bounds on some terms, from the programs over sets of devices.

    `relaxation`: the programs, or None: then what follows is taken to cost nothing.
    Raises TimeIsUpError: a program did not finish in time.
    """

    def __init__(self, cluster: Cluster, terms: Sequence[str], relaxation: Relaxation | None) -> None:
        self._cluster, self._terms = cluster, tuple(terms)
        self._most = cluster.most_pipelines
        self._tables: dict[str, Callable[[int, int, int], int]] = {}
        self._rates: list[Ints] | None = None
        self._parts: dict[int, Ints] = {}
        count = cluster.device_count
        self._kind_of, self._strides = (0,) * count, (0,) * count
        self.all = 0
        if relaxation is None:
            return
        self._kind_of = relaxation.arrays.kind_of
        self._strides = tuple(relaxation.states.strides[kind] for kind in self._kind_of)
        self.all = sum(self._strides)
        for term in dict.fromkeys((T.PERIOD, *self._terms)):
            if term == T.PERIOD or term in ADDITIVE:
                self._tables[term] = relaxation.program(term).rest().item
        if T.THROUGHPUT in self._terms:
            self._rates = relaxation.packing().within()
            self._states, self._periods = relaxation.states, relaxation.program(T.PERIOD).rest()

    def without(self, state: int, device: int) -> int:
        """Return a set of free devices, as the programs count it, without one of them."""
        return state - self._strides[device]

    def between(self, done: Done, state: int) -> tuple[int, ...]:
        """Return bounds for plans with some pipelines and at least one more on free devices."""
        values = []
        for term in self._terms:
            if term == T.THROUGHPUT:
                values.append(self._interval(done.rate + self._rate_of(self._most - done.pipelines, state)))
            else:
                values.append(getattr(done, _FIELDS[term]) + (term == T.DEVICES))
        return tuple(values)

    def of(self, done: Done, begun: Begun, device: int, place: int, state: int) -> tuple[int, ...] | None:
        """Return bounds for plans in which a device takes the layers from a place on; None: there are none.

        `done`, `begun`: the completed pipelines, and the chunks before the place; `state`: the devices that
        are free, this one included, as the programs count them.
        """
        kind, values = self._kind_of[device], []
        longest = begun.longest_us
        if self._tables:
            rest = self._tables[T.PERIOD](kind, place, state)
            if rest >= NEVER:
                return None
            longest = max(longest, rest)
        for term in self._terms:
            if term == T.THROUGHPUT:
                left = self._most - done.pipelines - 1
                rate = self._cluster.rate(longest) + self._rate_of(left, self.without(state, device))
                if left > 0 and self._rates is not None and self._cluster.scale < NEVER:
                    periods = np.maximum(self._periods[kind, place, self._subsets(state)], begun.longest_us)
                    rate = min(rate, self._shared_rate(periods, state, left))
                values.append(self._interval(done.rate + rate))
                continue
            before = getattr(done, _FIELDS[term])
            if term == T.PERIOD:
                values.append(max(before, longest))
                continue
            own = begun.memory_bytes if term == T.PEAK_MEMORY else getattr(begun, _FIELDS[term])
            table = self._tables.get(term)
            if table is not None:
                own += table(kind, place, state)
            values.append(before + own if term in _SUMMED else max(before, own))
        return tuple(values)

    def _rate_of(self, pipelines: int, state: int) -> int:
        """Return an upper bound on the rate of at most a given number of pipelines on free devices."""
        if self._rates is None:
            return pipelines * self._cluster.scale
        return int(self._rates[min(pipelines, len(self._rates) - 1)][state]) if pipelines > 0 else 0

    def _shared_rate(self, periods: Ints, state: int, left: int) -> int:
        """Return an upper bound on the rate of a pipeline that was begun and of others behind it.

        Each way to divide the free devices between it and the others is tried: to give all of them to both
        would be far from what can be. `periods` is what it takes with each subset of them.
        """
        assert self._rates is not None
        others = self._rates[min(left, len(self._rates) - 1)][state - self._subsets(state)]
        both = np.maximum(self._cluster.scale // np.maximum(periods, 1), 1) + others
        return int(both[periods < NEVER].max(initial=0))

    def _subsets(self, state: int) -> Ints:
        """Return the subsets of a set of devices."""
        if state not in self._parts:
            counts = self._states.counted(state)
            rows = [np.arange(count + 1) * s for count, s in zip(counts, self._states.strides, strict=True)]
            found = np.zeros(1, np.int64)
            for row in rows:
                found = np.add.outer(found, row).reshape(-1)
            self._parts[state] = found
        return self._parts[state]

    def _interval(self, rate: int) -> int:
        return self._cluster.interval_ns(max(1, rate))


def values_of(cluster: Cluster, terms: Sequence[str], done: Done) -> tuple[int, ...]:
    """Return the values of terms for a plan."""
    return tuple(
        cluster.interval_ns(done.rate) if term == T.THROUGHPUT else getattr(done, _FIELDS[term])
        for term in terms
    )

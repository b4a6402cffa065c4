"""Whether units have become slower or faster: a test that is not set off by noise.

log(what a chunk took) = log(what it usually takes) + pace of its unit + noise

What a chunk usually takes is learned from its first runs. After that Page's test (CUSUM) looks for a change
of the pace: what runs took more than usual, in units of the noise of the same unit and less an allowance, is
added up as long as the sum is above zero; so is what they took less. A change is what takes a sum above a
limit. Outliers count as `_OUTLIER` at most, so a few of them in a row are no change, however slow they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import exp, log
from statistics import fmean

from ...formulations.coordination.times import Times

Chunk = tuple[int, int, int, int]
"""Network, first section, one past the last, and unit."""

LEARNED, _SETTLED = 32, 128
"""Runs from which it is learned what a chunk usually takes, and how fast a unit has become, before that is
tested; the first goes on being learned until there are as many as the second says."""

_LEAST_NOISE, _NOISE_RUNS = 0.1, 64
"""Logarithms of times are taken to spread by so much at least; over how many runs that is learned."""

_ALLOWANCE, _LIMIT, _OUTLIER = 1.0, 10.0, 3.0
"""Of the test, in units of the noise; `python -m benchmarks.drift` shows what they lead to."""


@dataclass(slots=True)
class _Usual:
    """What a chunk takes when its unit has the pace that it had at first."""

    expected: float  # logarithm of what was expected at first
    took: float = 0.0  # logarithm of what it takes, when it is learned
    runs: int = 0
    first: list[float] = field(default_factory=list)  # logarithms, until it is learned
    late: bool = False  # it was learned when the unit had another pace than at first

    def forget(self) -> None:
        """Learn it again."""
        self.runs = 0
        self.first.clear()

    def learn(self, took: float) -> bool:
        """Take one of its first runs; return whether it is learned now."""
        self.runs += 1
        self.first.append(took)
        if self.runs < LEARNED:
            return False
        self.took = fmean(self.first)
        return True


@dataclass(slots=True)
class _Sum:
    """One of the two sums of the test, and how far off the runs were since it was zero."""

    value: float = 0.0
    since: list[float] = field(default_factory=list)

    def add(self, value: float, off: float) -> bool:
        """Add what a run took more than usual; return whether that is a change."""
        self.value += value
        if self.value <= 0:
            self.value = 0.0
            self.since.clear()
            return False
        self.since.append(off)
        return self.value > _LIMIT


@dataclass(slots=True)
class _Pace:
    """How many times as long as at first the chunks of a unit take, as a logarithm."""

    value: float = 0.0
    runs: int = LEARNED  # since it has changed
    noise: float = _LEAST_NOISE
    noise_runs: int = 0
    slower: _Sum = field(default_factory=_Sum)
    faster: _Sum = field(default_factory=_Sum)

    @property
    def suspicious(self) -> bool:
        """Whether a change may have begun: what is usual, and the noise, are not learned from that."""
        return max(self.slower.value, self.faster.value) > _LIMIT / 2

    def learn(self, off: float) -> None:
        """Take how far a run was from what was usual, for the noise."""
        self.noise_runs = min(self.noise_runs + 1, _NOISE_RUNS)
        seen = max(_LEAST_NOISE, 1.25 * min(abs(off), _OUTLIER * self.noise))
        self.noise += (seen - self.noise) / self.noise_runs

    def test(self, off: float) -> bool:
        """Take how far a run of a chunk that is learned was from what is usual; return whether it changed."""
        z = max(-_OUTLIER, min(_OUTLIER, off / self.noise))
        slower, faster = self.slower.add(z - _ALLOWANCE, off), self.faster.add(-z - _ALLOWANCE, off)
        if slower or faster:
            since = (self.slower if slower else self.faster).since
            self.value += fmean(since)
            self.runs = len(since)
            self.slower, self.faster = _Sum(), _Sum()
        elif self.runs < LEARNED:  # the few runs that gave it away say only about how fast it is now
            self.runs += 1
            self.value += off / self.runs
        if not self.suspicious:
            self.learn(off)
        return slower or faster


class Paces:
    """How fast units are against themselves before, from what their chunks took.

    `version` changes with whatever it knows of paces, and with each chunk that it has learned.
    """

    def __init__(self) -> None:
        self.version = 0
        self._chunks: dict[Chunk, _Usual] = {}
        self._units: dict[int, _Pace] = {}

    def took(self, chunk: Chunk, took_us: float, expected_us: float) -> None:
        """Take what a chunk took; `expected_us` counts when it is its first run."""
        usual = self._chunks.get(chunk)
        if usual is None:
            usual = self._chunks[chunk] = _Usual(log(expected_us))
        unit = self._units.setdefault(chunk[-1], _Pace())
        before = unit.value
        took = log(max(1.0, took_us)) - before
        if usual.runs < LEARNED:
            if usual.learn(took):
                self.version += 1
                usual.late = before != 0
                for each in usual.first:
                    unit.learn(each - usual.took)
                usual.first.clear()
            return
        off = took - usual.took
        changed = unit.test(off)
        self.version += unit.value != before
        if changed:
            for other, known in self._chunks.items():
                # A quota, for one, slows long chunks by another factor than short ones.
                if other[-1] == chunk[-1] and (known.late or known.runs < LEARNED):
                    known.forget()
        elif usual.runs < _SETTLED and not unit.suspicious:
            usual.runs += 1
            usual.took += max(-unit.noise, min(unit.noise, off)) / usual.runs

    def now(self, units: int) -> tuple[float, ...]:
        """Return the pace of each unit: the logarithm of how many times as long as at first it takes."""
        return tuple(self._units[unit].value if unit in self._units else 0.0 for unit in range(units))

    def off(self, chunk: Chunk, time_us: float) -> float | None:
        """Return the logarithm of how many times this time a chunk takes now; None: it is not learned."""
        usual = self._chunks.get(chunk)
        if usual is None or usual.runs < LEARNED:
            return None
        return usual.took + self._units[chunk[-1]].value - log(time_us)

    def charged(self, times: Times) -> Times:
        """Return expected times as units are now: measured, or as much off as what was measured there.

        The pace of a unit is known from few of its chunks, and counts for all.
        """
        factors = [self._factor(unit) for unit in range(len(times.units))]

        def charge(chunk: Chunk, time_us: float) -> float:
            usual = self._chunks.get(chunk)
            if usual is None:
                return time_us * factors[chunk[-1]]
            if usual.runs < LEARNED:
                return exp(usual.expected) * factors[chunk[-1]]
            return exp(usual.took + self._units[chunk[-1]].value)

        return times.charged(charge)

    def _factor(self, unit: int) -> float:
        """Return how many times what was expected at first the chunks of a unit take."""
        if unit not in self._units:
            return 1.0
        own = [usual for chunk, usual in self._chunks.items() if chunk[-1] == unit and usual.runs >= LEARNED]
        off = fmean([usual.took - usual.expected for usual in own]) if own else 0.0
        return exp(off + self._units[unit].value)


def imbalance(offs: Sequence[float]) -> float:
    """Return the logarithm of how many times as much one of them is off as another: all alike are none."""
    return max(offs, default=0.0) - min(offs, default=0.0)

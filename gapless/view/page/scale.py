"""Scales: where a value lies on a chart, and the round values that its axis names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_STEPS = (1, 2, 5, 10)

_TIME_UNITS = ((1_000_000, "s"), (1_000, "ms"), (1, "us"))
"""Microseconds of each unit of time, the largest first."""

LOG_FROM = 6.0
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A named place on an axis: percent of its length, and what stands there."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of a chart: its beginning and its width, percent of the whole."""

    x: float
    width: float


def share(part: float, whole: float) -> float:
    """Return a part in percent of a whole, to a thousandth; 0 of nothing."""
    return round(100 * part / whole, 3) if whole else 0.0


def span(start: float, end: float, whole: float) -> Span:
    """Return a part of a time line; rounded so that it never reaches beyond the end."""
    x = share(start, whole)
    return Span(x=x, width=round(max(0.0, share(end, whole) - x), 3))


def nice_step(length: float, most: int) -> float:
    """Return the least of ..., 0.5, 1, 2, 5, 10, ... that divides a length into at most so many steps."""
    if length <= 0:
        return 1.0
    least = length / most
    power = 10.0 ** math.floor(math.log10(least))
    return next((step * power for step in _STEPS if step * power >= least * (1 - 1e-9)), 10 * power)


def time_unit(longest_us: float) -> tuple[int, str]:
    """Return the unit in which times of an axis are best read: its microseconds, and its name."""
    return next(((us, name) for us, name in _TIME_UNITS if longest_us >= 2 * us), _TIME_UNITS[-1])


def time_ticks(end_us: float, most: int = 8) -> tuple[Tick, ...]:
    """Return the ticks of a time line that begins at 0."""
    us, name = time_unit(end_us)
    step = nice_step(end_us / us, most)
    count = math.floor(end_us / us / step + 1e-9)
    return tuple(
        Tick(at=share(number * step * us, end_us), text=f"{number * step:g} {name}")
        for number in range(count + 1)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis of positive values.

    `low`, `high`: values at its two ends.
    """

    low: float
    high: float
    logarithmic: bool = False  # whether equal distances are equal ratios

    @classmethod
    def around(cls, values: list[float]) -> Axis:
        """Return an axis that shows some positive values, with air; logarithmic if they differ much."""
        low, high = min(values), max(values)
        if low > 0 and high / low >= LOG_FROM:
            return cls(low=low / 1.15, high=high * 1.15, logarithmic=True)
        air = 0.08 * (high - low) or 0.1 * high or 1.0
        return cls(low=max(0.0, low - air), high=high + air)

    def at(self, value: float) -> float:
        """Return where a value lies, percent from the low end."""
        if self.logarithmic:
            return share(math.log(value / self.low), math.log(self.high / self.low))
        return share(value - self.low, self.high - self.low)

    def ticks(self, most: int = 6) -> tuple[Tick, ...]:
        """Return ticks for microseconds."""
        us, name = time_unit(self.high)
        return tuple(
            Tick(at=self.at(value), text=f"{value / us:g} {name}") for value in self._values(us, most)
        )

    def named(self, words: Callable[[float], str], most: int = 6) -> tuple[Tick, ...]:
        """Return ticks for values that a function puts into words."""
        return tuple(Tick(at=self.at(value), text=words(value)) for value in self._values(1, most))

    def counts(self, most: int = 6) -> tuple[Tick, ...]:
        """Return ticks for numbers of things."""
        return self.named(lambda value: f"{value:,g}", most)

    def _values(self, us: int, most: int) -> Iterator[float]:
        if not self.logarithmic:
            step = nice_step((self.high - self.low) / us, most) * us
            first, last = math.ceil(self.low / step), math.floor(self.high / step)
            yield from (number * step for number in range(first, last + 1))
            return
        power = 10.0 ** math.floor(math.log10(self.low))
        while power <= self.high:
            yield from (step * power for step in (1, 2, 5) if self.low <= step * power <= self.high)
            power *= 10

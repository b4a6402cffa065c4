"""Keys: the numbers that order plans, as exact values of plans and as lower bounds of prefixes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...formulations.limits import Limits
from ...formulations.terms import Term
from .ordering import Flags, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionBounds:
    """The best that the completions of some prefixes can reach, quantity by quantity; arrays of one length.

    For complete plans (of at least two chunks) these are the exact quantities.

    `total`, `most_total`: least and largest latency.
    """

    period: Ints  # least period
    least: Ints  # largest least busy time
    total: Ints
    most_total: Ints
    bubbles: Ints  # least bubbles
    memory: Ints  # least peak memory
    energy: Ints  # least energy
    units: Ints  # fewest units
    most_period: Ints  # largest period

    @property
    def in_flight(self) -> Ints:
        """Fewest requests in flight: nobody waits."""
        found: Ints = -(-self.total // self.most_period)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The terms that order plans, and the filters, on arrays of outlooks.

    Every term is monotone in the quantities of the outlook (a larger period with the same least
    busy time has a larger gapness, and so on), so that the value at the best of each quantity is a
    lower bound of the term over all completions, and exact on complete plans.
    """

    terms: tuple[str, ...]  # the terms, most important first
    limits: Limits  # the filters
    unit_count: int  # number of units of the platform
    device_memory: int | None  # capacity of the platform in bytes, or None
    idle_mw: int  # idle power of all units; 0 where energy does not matter

    def keys(self, outlook: CompletionBounds) -> Ints:
        """Return the values (or bounds) of the terms, by [term][column]."""
        return np.array([_VALUES[term](outlook, self.unit_count) for term in self.terms])

    def passing(self, outlook: CompletionBounds) -> Flags | None:
        """Return which columns may pass the filters and the device memory; None when all do."""
        limits, period = self.limits, outlook.period
        tests: list[Flags] = []
        if limits.max_period_us is not None:
            tests.append(period <= limits.max_period_us)
        if limits.max_latency_us is not None:
            tests.append(outlook.total <= limits.max_latency_us)
        if limits.max_stream_latency_us is not None:
            tests.append(outlook.total <= limits.max_stream_latency_us)
        if limits.max_in_flight is not None:
            tests.append(outlook.in_flight <= limits.max_in_flight)
        if limits.max_energy_nj is not None:
            tests.append(outlook.energy <= limits.max_energy_nj)
        if limits.min_balance_permille is not None:
            tests.append(1000 * outlook.least >= limits.min_balance_permille * period)
        if limits.max_gapness_us is not None:
            tests.append(period - outlook.least <= limits.max_gapness_us)
        if limits.min_utilisation_permille is not None:
            whole = self.unit_count * period
            tests.append(1000 * outlook.most_total >= limits.min_utilisation_permille * whole)
        if limits.max_bubbles_us is not None:
            tests.append(outlook.bubbles <= limits.max_bubbles_us)
        if self.device_memory is not None:
            tests.append(outlook.memory <= self.device_memory)
        return np.logical_and.reduce(tests) if tests else None

    def needs(self, *terms: str) -> bool:
        """Return whether one of these terms orders plans."""
        return any(term in self.terms for term in terms)


def _gapness(outlook: CompletionBounds, _: int) -> Ints:
    gapness: Ints = np.maximum(outlook.period - outlook.least, 0)
    return gapness


def _idle(outlook: CompletionBounds, units: int) -> Ints:
    whole = units * outlook.period
    idle: Ints = np.maximum(-(-1000 * (whole - outlook.most_total) // whole), 0)
    return idle


_VALUES: dict[str, Callable[[CompletionBounds, int], Ints]] = {
    Term.PERIOD: lambda outlook, _: outlook.period,
    Term.GAPNESS: _gapness,
    Term.PAPER_GAPNESS: _gapness,
    Term.LATENCY: lambda outlook, _: outlook.total,
    Term.BUBBLES: lambda outlook, _: outlook.bubbles,
    Term.PEAK_MEMORY: lambda outlook, _: outlook.memory,
    Term.IDLE: _idle,
    Term.ENERGY: lambda outlook, _: outlook.energy,
    Term.UNITS: lambda outlook, _: outlook.units,
    Term.HOPS: lambda outlook, _: outlook.units - 1,
    Term.STREAM_LATENCY: lambda outlook, _: outlook.total,
    Term.IN_FLIGHT: lambda outlook, _: outlook.in_flight,
}

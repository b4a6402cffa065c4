"""Boxes: which chunks can be part of a plan whose terms, filters and period are bounded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...formulations.limits import Limits
from ...formulations.terms import Term
from .facts import Facts
from .tables import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A window of chunks, and what is proven about the plans that are looked for in it.

    `floor`, `most_period`: lower and upper bound on the period of these plans.
    """

    window: Window  # chunks outside of it belong to no plan that is looked for
    floor: int
    most_period: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowing:
    """How bounds on plans become bounds on chunks.

    `idle_mw`, `least_drain`: idle power of all units, and energy above it that no plan undercuts; 0 where
    energy does not matter.
    """

    limits: Limits  # the filters
    unit_count: int  # number of units of the platform
    most_chunks: int  # most chunks of a plan
    facts: Facts  # what follows from the rules
    idle_mw: int = 0
    least_drain: int = 0

    @property
    def filters_least(self) -> bool:
        """Whether a filter or a rule bounds the least busy time or the total from below."""
        limits = self.limits
        filters = (limits.min_balance_permille, limits.max_gapness_us, limits.min_utilisation_permille)
        return self.facts.bound_plans or any(limit is not None for limit in filters)

    def filtered(self, box: Box) -> Box:
        """Return the box that the filters and the rules leave.

        A plan of period T >= floor needs least busy times of at least rho T and T - g, and a total of
        at least (utilisation x units x T).
        """
        limits, floor = self.limits, box.floor
        low = box.window.low
        if limits.min_balance_permille is not None:
            low = max(low, -(-limits.min_balance_permille * floor // 1000))
        if limits.max_gapness_us is not None:
            low = max(low, floor - limits.max_gapness_us)
        least = -(-(limits.min_utilisation_permille or 0) * self.unit_count * floor // 1000)
        box = self._with_total(replace(box, window=replace(box.window, low=low)), least)
        if limits.max_latency_us is not None:
            box = self.capped(box, Term.LATENCY, limits.max_latency_us)
        if limits.max_stream_latency_us is not None:
            box = self.capped(box, Term.STREAM_LATENCY, limits.max_stream_latency_us)
        if limits.max_in_flight is not None:
            box = self.capped(box, Term.LATENCY, min(limits.max_in_flight, self.unit_count) * box.most_period)
        if limits.max_energy_nj is not None:
            box = self.capped(box, Term.ENERGY, limits.max_energy_nj)
        if self.facts.bound_plans:
            for term, value in self.facts.plan_caps(floor, max(floor, box.most_period)):
                box = self.capped(box, term, value)
        return box

    def capped(self, box: Box, term: str, value: int) -> Box:
        """Return the box of the plans whose term is at most `value`."""
        window = box.window
        match term:
            case Term.PERIOD:
                window = replace(window, high=min(window.high, value))
                box = replace(box, most_period=min(box.most_period, value))
            case Term.LATENCY | Term.STREAM_LATENCY:
                total = value if window.most_total is None else min(value, window.most_total)
                window = replace(window, most_total=total, high=min(window.high, value))
            case Term.PEAK_MEMORY:
                memory = value if window.most_memory is None else min(value, window.most_memory)
                window = replace(window, most_memory=memory)
            case Term.ENERGY:
                drain = value - self.idle_mw * box.floor
                drain = drain if window.most_drain is None else min(drain, window.most_drain)
                window = replace(window, most_drain=drain)
                if self.idle_mw:
                    box = self.capped(box, Term.PERIOD, (value - self.least_drain) // self.idle_mw)
                    window = replace(window, high=box.window.high)
            case Term.UNITS | Term.HOPS | Term.IN_FLIGHT:  # say nothing about single chunks
                pass
            case Term.IDLE:
                least = -(-(1000 - value) * self.unit_count * box.floor // 1000)
                return self._with_total(box, least)
            case _:  # every used unit idles at most the gapness, and at most all bubbles
                window = replace(window, low=max(window.low, box.floor - value))
        return replace(box, window=window)

    def _with_total(self, box: Box, least_total: int) -> Box:
        window = box.window
        if least_total <= window.least_total:
            return box
        low = max(window.low, least_total - (self.most_chunks - 1) * window.high)
        return replace(box, window=replace(window, least_total=least_total, low=low))

"""What plans that have begun can still reach: bounds on every quantity, and the terms and filters on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...formulations.terms import Term
from ..chunking.ranking import Flags, Ints, PlanBounds, Ranking
from .table import Floats, Table

_SAFE = 1 - 1e-12
"""Sums of energies are not exact in floating point."""

_BALANCE = frozenset((Term.GAPNESS, Term.PAPER_GAPNESS, Term.BUBBLES))

_EXPONENTS = np.arange(-3, 9)
"""Rates of exchange that are tried are powers of two of the quantity itself."""

_KEPT = 3
"""Rates that are kept for each quantity: those that prove most of whole plans."""

_OFF, _OFF_SHARE = 1e-6, 1e-12
"""What floating point may be off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Which quantities order or filter plans, or are spoken of in rules."""

    energy: bool
    balance: bool
    idle: bool
    memory: bool

    @property
    def most(self) -> bool:
        """Whether it matters how much load units can get at most."""
        return self.balance or self.idle


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds(PlanBounds):
    """The best that plans can reach: `lonely` is None where none of them is whole."""

    hops: Ints
    resources: Ints

    @property
    def in_flight(self) -> Ints:
        """Requests in flight where none waits; of begun plans: two if there are two resources."""
        whole = self.lonely is not None
        found: Ints = -(-self.latency_us // self.period_us) if whole else np.minimum(self.resources, 2)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is placed of many plans, a column each.

    Attributes
    ----------
    loads
        By [unit][plan].
    hops, mask
        Borders, and a bit per unit in use.
    bytes
        What the units hold, by [unit][plan]; zeros where memory does not matter.
    """

    loads: Ints
    hops: Ints
    mask: Ints
    bytes: Ints


class Outlook:
    """Bounds on plans that have begun.

    Parameters
    ----------
    table, prices
        The arrays, and prices that bound periods.
    needs
        What is wanted.
    best
        The prices that prove most of whole plans; they sum to 1.
    idle_mw, extra_mw
        Powers; zeros where energy does not matter.
    """

    def __init__(
        self,
        table: Table,
        prices: Floats,
        needs: Needs,
        *,
        best: Floats,
        idle_mw: int,
        extra_mw: tuple[int, ...],
    ) -> None:
        self.best = best
        self.table, self.prices, self.needs = table, prices, needs
        self.idle_mw, self.extra_mw = idle_mw, np.array(extra_mw, dtype=np.int64)
        self._priced = completions(table, prices)
        self._capped: int | None = None

    def cap(self, period: int | None) -> None:
        """Look for plans of at most this period alone; None: for all."""
        self._capped = period
        if period is not None:
            self._exchange.cap(period)

    @cached_property
    def _exchange(self) -> Exchange:
        units = self.table.units
        quantities = [Quantity(loads=(1.0,) * units), Quantity(loads=(0.0,) * units, hop=1.0)]
        if self.needs.most:
            quantities.append(Quantity(loads=(-1.0,) * units))
            quantities += [Quantity(loads=tuple((-row).tolist())) for row in self.table.pools.astype(float)]
        return Exchange(self.table, self.best, quantities)

    @cached_property
    def _latency(self) -> Floats:
        return completions(self.table, np.ones((1, self.table.units)))[:, 0]

    @cached_property
    def _most_latency(self) -> Floats:
        return completions(self.table, np.ones((1, self.table.units)), largest=True)[:, 0]

    @cached_property
    def _most_load(self) -> Floats:
        """By [boundary][first unit of the resource whose load it is][unit that runs]."""
        return completions(self.table, self.table.pools.astype(float), largest=True)

    @cached_property
    def _hops(self) -> Floats:
        return completions(self.table, np.zeros((1, self.table.units)), hop=np.ones(1))[:, 0]

    @cached_property
    def _energy(self) -> Floats:
        """Energy above the idle power alone, and with idle powers priced, by [boundary][bound][unit]."""
        return completions(self.table, self._energy_rates)

    @cached_property
    def _energy_rates(self) -> Floats:
        priced = self.extra_mw + self.idle_mw * self.prices / self.table.scale
        return np.concatenate([self.extra_mw[None].astype(np.float64), priced])

    @cached_property
    def _rest_bytes(self) -> Ints:
        """Bytes of weights that the pieces from a boundary on have for themselves."""
        prefix = np.array(self.table.weights.prefix, dtype=np.int64)
        rest: Ints = prefix[-1] - prefix
        return rest

    def idle_below(self, floor: int) -> Floats:
        """Return up to where the load of a resource stays within a floor, as `_most_load`."""
        return np.maximum(floor - self._most_load, 0)

    def priced(self, at: int, unit: Ints, loads: Ints) -> Floats:
        """Return the least period of plans whose pieces up to a boundary are placed, not rounded."""
        worth = self.prices @ loads + self._priced[at].take(unit, axis=1)
        found: Floats = worth.max(axis=0) / self.table.scale
        return found

    def root(self, term: str) -> int:
        """Return what no plan has less of, of a term."""
        if term == Term.PERIOD:
            return math.ceil(float(self._priced[0].min(axis=1).max()) / self.table.scale)
        return int(self._latency[0].min()) if term in (Term.LATENCY, Term.STREAM_LATENCY) else 0

    def reachable(self, at: int, unit: Ints) -> Flags:
        """Return from which units there is a rest at all."""
        there: Flags = np.isfinite(self._priced[at, 0])[unit]
        return there

    def bounds(self, at: int, unit: Ints, state: State, period: Ints) -> Bounds:
        """Return what plans can reach whose pieces up to a boundary are placed.

        Parameters
        ----------
        at, unit, state
            The boundary, which unit runs up to there, and what was placed.
        period
            A lower bound on their periods.
        """
        needs, loads, total = self.needs, state.loads, state.loads.sum(axis=0)
        latency = total + self._latency[at][unit].astype(np.int64)
        hops = state.hops + self._hops[at][unit].astype(np.int64)
        most_latency, most, bubbles, least = total, loads, np.zeros_like(period), period
        if needs.most:
            most_latency = total + self._most_latency[at][unit].astype(np.int64)
            most = self.table.pooled(loads) + self._most_load[at].take(unit, axis=1).astype(np.int64)
        if self._capped is not None:
            low = self._exchange.least(at, unit, loads, state.hops)
            latency, hops = np.maximum(latency, low[0]), np.maximum(hops, low[1])
            if needs.most:
                most_latency, most = np.minimum(most_latency, -low[2]), np.minimum(most, -low[3:])
        if needs.balance:
            used = self.table.in_use(state.mask)
            least = np.where(used, most, period).min(axis=0)
            bubbles = np.where(used, np.maximum(period - most, 0), 0).sum(axis=0)
        energy = np.zeros_like(period)
        if needs.energy:
            rates = self._energy_rates
            ahead = self._energy[at].take(unit, axis=1)
            worth = ((rates[1:] @ loads + ahead[1:]) * _SAFE - 1.0).max(axis=0).astype(np.int64)
            drain = (self.extra_mw @ loads) + ahead[0].astype(np.int64) + self.idle_mw * period
            energy = np.maximum(worth, drain)
        return Bounds(
            period_us=period,
            latency_us=latency,
            hops=hops,
            units=np.bitwise_count(state.mask).astype(np.int64),
            resources=self.table.in_use(state.mask).sum(axis=0),
            peak_bytes=state.bytes.sum(axis=0) + (self._rest_bytes[at] if needs.memory else 0),
            energy_nj=energy,
            bubbles_us=bubbles,
            least=least,
            most_latency_us=most_latency,
        )

    def exact(self, state: State) -> Bounds:
        """Return the numbers of whole plans; their last copies out are part of the loads."""
        loads = self.table.pooled(state.loads)
        period, total = loads.max(axis=0), loads.sum(axis=0)
        used = self.table.in_use(state.mask)
        resources = used.sum(axis=0)
        return Bounds(
            period_us=period,
            latency_us=total,
            hops=state.hops,
            units=np.bitwise_count(state.mask).astype(np.int64),
            resources=resources,
            peak_bytes=state.bytes.sum(axis=0),
            energy_nj=self.extra_mw @ state.loads + self.idle_mw * period,
            bubbles_us=resources * period - total,
            least=np.where(used, loads, period).min(axis=0),
            most_latency_us=total,
            lonely=(resources == 1) & (len(self.table.chain.pools) > 1),
        )


def needs_of(ranking: Ranking, spoken: frozenset[str], *, memory: bool) -> Needs:
    """Return what has to be bounded; `spoken`: quantities of rules that are open."""
    terms, limits = {*ranking.terms, *spoken}, ranking.limits

    def asked(*names: str) -> bool:
        return any(name in terms for name in names)

    balance = (limits.max_gapness_us, limits.min_balance_permille, limits.max_bubbles_us)
    return Needs(
        energy=asked(Term.ENERGY, "energy_nj") or limits.max_energy_nj is not None,
        balance=asked(*_BALANCE, "gapness_us", "paper_gapness_us", "bubbles_us")
        or any(x is not None for x in balance),
        idle=asked(Term.IDLE, "latency_us") or limits.min_utilisation_permille is not None,
        memory=memory,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A quantity f L + h (hops) that is bounded from below."""

    loads: tuple[float, ...]
    hop: float = 0.0


class Exchange:
    """Bounds on quantities of plans of capped period: time of units exchanged for hops, latency, balance.

    Where no load may exceed C, the loads L of a plan keep w L <= C for all prices w. So for a quantity
    f L + h (hops) and any rate of exchange m >= 0

        f L + h (hops)  >=  min over all plans of ((f + m w) L + h (hops))  -  m C,

    which completions at the rates f + m w know for plans that have begun. Few hops, for instance, are not
    enough for a short period; a unit that is slow at everything cannot get as much load as the others.

    Parameters
    ----------
    table, prices
        The arrays, and prices that sum to 1.
    quantities
        What is bounded.
    """

    def __init__(self, table: Table, prices: Floats, quantities: Sequence[Quantity]) -> None:
        own, rates, hop, exchange = [], [], [], []
        # A period's worth of hops is as good a guess as any of what a hop is worth; that of a load is itself.
        long = max(1.0, float(table.time.sum(axis=0).min()))
        for place, quantity in enumerate(quantities):
            scale = max(map(abs, quantity.loads)) or 4.0 / long
            for rate in (scale * 2.0**_EXPONENTS).tolist():
                own.append(place)
                rates.append(np.array(quantity.loads) + rate * prices)
                hop.append(quantity.hop)
                exchange.append(rate)
        self._count, self._own = len(quantities), np.array(own)
        self._rates, self._hop, self._exchange = np.array(rates), np.array(hop), np.array(exchange)
        self._ahead = completions(table, self._rates, hop=self._hop)
        self._kept = np.arange(len(own))
        self._cap = 0

    def cap(self, period: int) -> None:
        """Bound plans of at most this period."""
        if period == self._cap:
            return
        proved = self._ahead[0].min(axis=1) - self._exchange * period
        best = [np.flatnonzero(self._own == place) for place in range(self._count)]
        self._kept = np.concatenate([rows[np.argsort(-proved[rows])[:_KEPT]] for rows in best])
        self._cap = period

    def least(self, at: int, unit: Ints, loads: Ints, hops: Ints) -> Ints:
        """Return lower bounds on the quantities of plans whose pieces up to a boundary are placed, by row."""
        rows = self._kept
        worth = self._rates[rows] @ loads + self._hop[rows, None] * hops
        worth += self._ahead[at][rows].take(unit, axis=1) - (self._exchange[rows] * self._cap)[:, None]
        most = worth.reshape(self._count, -1, len(unit)).max(axis=1)
        found: Ints = np.ceil(most - _OFF - _OFF_SHARE * np.abs(most)).astype(np.int64)
        return found


def completions(table: Table, rates: Floats, *, largest: bool = False, hop: Floats | None = None) -> Floats:
    """Return the least (largest) cost of the rest by [boundary][rate][unit that runs up to there].

    For rates r per unit, and while unit u runs up to boundary b, the least (or largest) sum of rates times
    loads of the rest is

        V[b][u] = best(r_u T[b][u] + V[b+1][u],  r_u X[b][u] + best of S[b][v] over v != u),
        S[b][v] = r_v (E[b][v] + T[b][v]) + V[b+1][v],     V[N][u] = r_u X[N][u].

    Prices as rates bound periods, ones bound latencies, a single one the load that a unit can get at most.
    Infinite where there is no rest. `hop`: what each change of the unit costs on top, by rate.
    """
    sign = -1.0 if largest else 1.0
    rates = sign * rates
    count, units = table.count, table.units
    found = np.empty((count + 1, len(rates), units))
    found[count] = rates * table.leave[count]
    time = np.where(table.able[:, None, :], rates * table.time[:, None, :], np.inf)
    enter, leave = rates * table.enter[:, None, :], rates * table.leave[:, None, :]
    if hop is not None:
        leave = leave + hop[:, None]
    columns = np.arange(len(rates))
    for at in range(count - 1, -1, -1):
        run = time[at] + found[at + 1]
        begun = enter[at] + run
        if at == 0:
            found[0] = begun
            break
        first = begun.argmin(axis=1)
        least = begun[columns, first]
        other = np.broadcast_to(least[:, None], begun.shape).copy()
        begun[columns, first] = np.inf
        other[columns, first] = begun.min(axis=1)
        away = leave[at] + other
        found[at] = away if table.must[at] else np.minimum(run, away)
    return sign * found

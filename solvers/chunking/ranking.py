"""Keys: the numbers that order plans, exact and as lower bounds, and the best plans so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formulations.chunking.quantities import TERMS
from ...formulations.limits import Limits, limit_rows
from ...formulations.terms import Term

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_SORT_BELOW = 64
"""Up to this number of columns, sorting all of them is cheaper than selecting first."""


def runs(begin: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return the members of several runs of integers, one after the other.

    Run r is begin[r], begin[r] + 1, ... with counts[r] members.

    The first array has the run of each member, the second the member.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) + (begin - np.cumsum(counts) + counts)[owner]


def less(rows: Ints, limit: Ints) -> Flags:
    """Return which columns of `rows` are lexicographically less than the column `limit`."""
    verdict: Flags = rows[0] < limit[0]
    tied: Flags = rows[0] == limit[0]
    for row, value in zip(rows[1:], limit[1:], strict=True):
        if not tied.any():
            break
        verdict |= tied & (row < value)
        tied &= row == value
    return verdict


def ascending(rows: Ints) -> NDArray[np.intp]:
    """Return the order of the columns, smallest first."""
    return np.lexsort(rows[::-1])


def smallest(rows: Ints, count: int) -> NDArray[np.intp]:
    """Return the indices of the `count` smallest columns, smallest first.

    Selection narrows the columns row by row, so that only about `count` of them are sorted.
    """
    size = rows.shape[1]
    if size <= max(count, _SORT_BELOW):
        return ascending(rows)[:count]
    sure: list[NDArray[np.intp]] = []
    open_ = np.arange(size)
    wanted = count
    for row in rows:
        if len(open_) <= wanted + _SORT_BELOW:
            break
        values = row[open_]
        pivot = np.partition(values, wanted - 1)[wanted - 1]
        below = open_[values < pivot]
        sure.append(below)
        wanted -= len(below)
        open_ = open_[values == pivot]
    sure.append(open_)
    chosen = np.concatenate(sure)
    return chosen[ascending(rows[:, chosen])[:count]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBounds:
    """The best that plans can reach, quantity by quantity; arrays of one length, exact for whole plans.

    What is called like a quantity of plans (`QUANTITIES`) is a lower bound on it.
    """

    period_us: Ints
    least: Ints  # largest least load of those in use
    latency_us: Ints
    most_latency_us: Ints
    bubbles_us: Ints
    peak_bytes: Ints
    energy_nj: Ints
    units: Ints
    lonely: Flags | None = None
    """Whether it is a whole plan on one resource of several; None: not all of them are whole, or none is."""

    @property
    def paper_gapness_us(self) -> Ints:
        """Least gapness, where a plan on one resource has none."""
        found: Ints = np.maximum(self.period_us - self.least, 0)
        return found

    @property
    def gapness_us(self) -> Ints:
        """Least gapness."""
        found = self.paper_gapness_us
        return found if self.lonely is None else np.where(self.lonely, self.period_us, found)

    @property
    def stream_latency_us(self) -> Ints:
        """Least latency in the stream: nobody waits."""
        return self.latency_us


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionBounds(PlanBounds):
    """The best that the completions of some prefixes can reach; exact for plans of at least two chunks."""

    most_period: Ints  # largest period

    @property
    def hops(self) -> Ints:
        """Fewest borders: one fewer than units."""
        return self.units - 1

    @property
    def in_flight(self) -> Ints:
        """Fewest requests in flight."""
        found: Ints = -(-self.latency_us // self.most_period)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The terms that order plans, and the filters, on arrays of bounds.

    Every term is monotone in the bounds (a larger period with the same least busy time has a larger gapness,
    and so on), so that its value at the best of each is a lower bound of the term over all completions, and
    exact on whole plans; but for those that know waits, which are as if nobody waited.
    """

    terms: tuple[str, ...]  # the terms, most important first
    limits: Limits  # the filters
    resources: int  # number of units, or of resources, of the platform
    device_memory: int | None  # capacity of the platform in bytes, or None
    idle_mw: int = 0  # idle power of all units; 0 where energy does not matter
    in_flight: bool = True  # whether plans that are not whole are asked how many requests are in flight

    def keys(self, bounds: PlanBounds) -> Ints:
        """Return the values (or bounds) of the terms, by [term][column]."""
        return np.array(
            [
                self._idle(bounds) if term == Term.IDLE else getattr(bounds, TERMS[term].field)
                for term in self.terms
            ]
        )

    def _idle(self, bounds: PlanBounds) -> Ints:
        whole = np.maximum(self.resources * bounds.period_us, 1)
        idle: Ints = np.maximum(-(-1000 * (whole - bounds.most_latency_us) // whole), 0)
        return idle

    def passing(self, bounds: Any) -> Flags | None:
        """Return which columns may pass the filters and the device memory; None when all do."""
        period, whole = bounds.period_us, bounds.lonely is not None
        others: dict[str, Callable[[int], Flags | None]] = {
            # a lattice lets no plan end with fewer, and others are asked when they are whole
            "min_units": lambda least: bounds.units >= least if whole else None,
            "min_balance_permille": lambda least: 1000 * (period - bounds.gapness_us) >= least * period,
            "min_utilisation_permille": lambda least: 1000 - self._idle(bounds) >= least,
            "max_in_flight": lambda most: bounds.in_flight <= most if whole or self.in_flight else None,
        }
        tests = [row for _, row in limit_rows(self.limits, partial(getattr, bounds), bounds.units, others)]
        if self.device_memory is not None:
            tests.append(bounds.peak_bytes <= self.device_memory)
        return np.logical_and.reduce(tests) if tests else None

    def needs(self, *terms: str) -> bool:
        """Return whether one of these terms orders plans."""
        return any(term in self.terms for term in terms)


class Pool:
    """At most `size` plans in canonical order, each once."""

    def __init__(self, size: int, rows: int) -> None:
        self.size = size  # how many are wanted
        # key and path of each, by [row][plan], best first
        self.ranks: Ints = np.empty((rows, 0), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.ranks[0])

    @property
    def full(self) -> bool:
        """Whether as many plans as wanted are there."""
        return len(self) >= self.size

    @property
    def worst(self) -> Ints | None:
        """The rank that a plan must undercut to enter a full pool; None while it is not full."""
        return self.ranks[:, -1] if self.full else None

    def add(self, ranks: Ints) -> None:
        """Take in the plans that belong to the best."""
        if self.full and ranks.shape[1]:
            ranks = ranks[:, less(ranks, self.ranks[:, -1])]
        if not ranks.shape[1]:
            return
        # Found again: the same plan may come from overlapping boxes.
        merged = np.concatenate((self.ranks, ranks[:, smallest(ranks, 2 * self.size)]), axis=1)
        merged = merged[:, np.lexsort(merged[::-1])]
        fresh = np.ones(merged.shape[1], dtype=np.bool_)
        fresh[1:] = (merged[:, 1:] != merged[:, :-1]).any(axis=0)
        self.ranks = np.ascontiguousarray(merged[:, fresh][:, : self.size])

    def promising(self, ranks: Ints) -> Flags | None:
        """Return which prefixes can still become one of the best plans; None when all can."""
        return less(ranks, self.ranks[:, -1]) if self.full else None

    def before(self, key: tuple[int, ...]) -> int:
        """Return how many plans have a key (cut to its length) below the given one."""
        return int(less(self.ranks[: len(key)], np.array(key)).sum()) if key else 0

"""The best plan where the program over sets of devices decides: what it does not know is left out.

It knows chunks, messages, memory of devices, cuts, conflicts, the number of pipelines and of devices, and a
largest period. Its plan is the best one if it passes everything else; its value is a bound in any case.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

from ...formulations.pipelines.plans import Pipes, ordered
from ...formulations.pipelines.tables import Cluster
from ...formulations.terms import Term
from ..protocol import NEVER as NO_DEADLINE
from ..protocol import Deadline, TimeIsUpError
from .arrays import NEVER, Ints, KindArrays
from .program import ADDITIVE, Program, States, costs_of


def copies(pipes: Pipes, kinds: tuple[int, ...]) -> Iterator[Pipes]:
    """Yield every plan with the same cuts on devices of the same kinds, each once."""
    of_kind = {kind: [device for device, own in enumerate(kinds) if own == kind] for kind in set(kinds)}
    places: dict[int, list[int]] = {}
    for *_, device in (part for pipe in pipes for part in pipe):
        places.setdefault(kinds[device], []).append(device)
    seen = set()
    for choice in product(*(permutations(of_kind[kind], len(used)) for kind, used in places.items())):
        other = {
            device: new
            for used, chosen in zip(places.values(), choice, strict=True)
            for device, new in zip(used, chosen, strict=True)
        }
        plan = ordered(tuple(tuple((i, j, other[device]) for i, j, device in pipe) for pipe in pipes))
        if plan not in seen:
            seen.add(plan)
            yield plan


NONE = -(1 << 61)
"""Stands for the rate of a set that no pipelines use whole; with the rates of others added it is negative."""

_LARGEST = 1 << 60


def useful_types(states: States, least_us: Ints) -> npt.NDArray[np.intp]:
    """Return the sets whose best pipeline is faster than that of every smaller set."""
    below = states.least_below(least_us).reshape(states.shape)
    before = np.full(states.shape, NEVER, np.int64)
    for axis in range(below.ndim):
        later, earlier = [slice(None)] * below.ndim, [slice(None)] * below.ndim
        later[axis], earlier[axis] = slice(1, None), slice(None, -1)
        np.minimum(before[tuple(later)], below[tuple(earlier)], out=before[tuple(later)])
    return np.flatnonzero(least_us < before.reshape(-1))


class Packing:
    """The best sums of rates on every set.

    Raises TimeIsUpError: the deadline has passed before it was done.
    """

    def __init__(
        self,
        states: States,
        types: Sequence[int],
        rates: Sequence[int],
        *,
        most: int,
        excluded: npt.NDArray[np.bool_] | None = None,
        deadline: Deadline = NO_DEADLINE,
    ) -> None:
        self._states, self._types = states, [(type_, states.counted(type_)) for type_ in types]
        self._rates, self._deadline = list(rates), deadline
        devices = sum(states.counts)
        number = np.int64 if devices * max(rates, default=0) < _LARGEST else object
        empty = np.full(states.shape, NONE, number)
        empty.reshape(-1)[0] = 0
        fewest = min((sum(counts) for _, counts in self._types), default=1)
        self._limited = most == 1 or most < devices // fewest
        if most == 1:
            self._tables = [empty, np.full_like(empty, NONE)]
            self._tables[1].reshape(-1)[list(types)] = rates
        elif self._limited:
            self._tables = [empty]
            for _ in range(most):
                self._tables.append(self._one_more(self._tables[-1], np.full_like(empty, NONE)))
        else:
            self._tables = [self._all(empty)]
        for table in self._tables:
            table[table < 0] = NONE
            if excluded is not None:
                table.reshape(-1)[excluded] = NONE

    def _all(self, table: Ints) -> Ints:
        """Return the best sums of any number of pipelines."""
        for (_, used), rate in zip(self._types, self._rates, strict=True):
            self._check_time()
            kind = next(kind for kind, count in enumerate(used) if count)
            step, count = used[kind], self._states.counts[kind]
            into, rest = self._places(used)
            # Each run of sets is computed from the one before, so a type is taken as often as it fits.
            for begin in range(step, count + 1, step):
                end = min(begin + step, count + 1)
                into[kind], rest[kind] = slice(begin, end), slice(begin - step, end - step)
                target = table[tuple(into)]
                np.maximum(target, table[tuple(rest)] + rate, out=target)
        return table

    def _one_more(self, before: Ints, table: Ints) -> Ints:
        """Return the best sums with one pipeline more."""
        for (_, used), rate in zip(self._types, self._rates, strict=True):
            self._check_time()
            into, rest = map(tuple, self._places(used))
            np.maximum(table[into], before[rest] + rate, out=table[into])
        return table

    def _places(self, used: tuple[int, ...]) -> tuple[list[slice], list[slice]]:
        """Return where the sets are that hold a type, and where they are without it."""
        into = [slice(count, None) for count in used]
        return into, [slice(m + 1 - count) for m, count in zip(self._states.counts, used, strict=True)]

    def _check_time(self) -> None:
        if self._deadline.passed:
            raise TimeIsUpError

    @property
    def best(self) -> Ints:
        """Largest sum of rates on exactly each set; NONE where there is none, and for no devices."""
        found = self._tables[0] if not self._limited else np.maximum.reduce(self._tables[1:])
        found = found.reshape(-1).copy()
        found[0] = NONE
        return found

    def within(self) -> list[Ints]:
        """Return the largest sums on at most each set, by the most pipelines: one table if any number is."""
        found, best = [], np.zeros_like(self._tables[0])
        for table in self._tables:
            best = np.maximum(best, table)
            own = best
            for axis in range(own.ndim):
                own = np.maximum.accumulate(own, axis=axis)
            found.append(own.reshape(-1))
        return found

    def split(self, state: int) -> list[int]:
        """Return the types whose rates add up to the best on exactly a set."""
        flat = [table.reshape(-1) for table in self._tables]
        level = 0 if not self._limited else max(range(1, len(flat)), key=lambda k: flat[k][state])
        found = []
        while state:
            counts, wanted = self._states.counted(state), flat[level][state]
            level = level - 1 if self._limited else level
            for (type_, used), rate in zip(self._types, self._rates, strict=True):
                if all(map(int.__le__, used, counts)):
                    rest = flat[level][state - type_]
                    if rest != NONE and rest + rate == wanted:
                        break
            else:
                raise AssertionError(f"no pipelines add up to the rate of set {state}")
            found.append(type_)
            state -= type_
        return found


RATED = (Term.THROUGHPUT, Term.PERIOD, Term.DEVICES)
"""Terms that are settled together, in any order: by sets of devices and a largest period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """What the program finds."""

    pipes: Pipes | None
    """A plan whose leading terms are the best, if only what the program knows counts. None where kinds were
    merged: devices of different kinds stand for one another then."""
    settled: int  # how many leading terms of the objective
    bound: int | None  # value of the first term, or None: the program does not know that term


class Relaxation:
    """The programs of one problem; each is run when it is asked for.

    `exact`: whether the kinds are those of the devices; otherwise some were merged. `most`: most pipelines;
    None: those of the problem. `most_us`, `most_devices`: largest period and number of devices, or None.
    `deadline`: when to give up with a `TimeIsUpError`.
    """

    def __init__(
        self,
        cluster: Cluster,
        arrays: KindArrays,
        *,
        exact: bool = True,
        most: int | None = None,
        most_us: int | None = None,
        most_devices: int | None = None,
        deadline: Deadline = NO_DEADLINE,
    ) -> None:
        self.arrays = arrays if most_us is None else arrays.capped(most_us)
        self.states = States(arrays.counts)
        self._cluster, self._deadline, self._most_us = cluster, deadline, most_us
        self.exact = exact
        self._most = cluster.most_pipelines if most is None else most
        self._allowed = np.ones(self.states.number, bool)
        if most_devices is not None:
            self._allowed &= self.states.sizes <= most_devices
        self._programs: dict[str, Program] = {}

    def program(self, term: str) -> Program:
        """Return the program of the period or of an additive term."""
        if term not in self._programs:
            costs = costs_of(term, self.arrays)
            self._programs[term] = Program(self.arrays, self.states, costs, self._deadline)
        return self._programs[term]

    @cached_property
    def period_us(self) -> Ints:
        """Least period of a single pipeline on exactly each set, NEVER where there is none."""
        found = self.program(Term.PERIOD).least
        most = NEVER - 1 if self._most_us is None else self._most_us
        return np.where(found <= most, found, NEVER)

    @cached_property
    def types(self) -> Ints:
        """The pipeline type set: sets whose best pipeline is faster than those of all smaller sets."""
        found: Ints = useful_types(self.states, self.period_us)
        return found

    @property
    def feasible(self) -> bool:
        """Whether there is a pipeline at all."""
        return bool((self.period_us[self._allowed] < NEVER).any())

    def packing(self, most_us: int | None = None, most: int | None = None) -> Packing:
        """Return the best sums of rates by pipelines with at most some period."""
        types = self.types if most_us is None else self.types[self.period_us[self.types] <= most_us]
        return Packing(
            self.states,
            types.tolist(),
            [self._cluster.rate(max(1, us)) for us in self.period_us[types].tolist()],
            most=self._most if most is None else most,
            excluded=self.excluded,
            deadline=self._deadline,
        )

    @cached_property
    def excluded(self) -> npt.NDArray[np.bool_] | None:
        """The sets that hold devices which exclude each other."""
        pairs = [(one, other) for one, found in enumerate(self.arrays.excluded) for other in found]
        used, none = self.states.digits > 0, np.zeros(self.states.number, bool)
        for one, other in pairs:
            none |= used[one] & used[other]
        return none if pairs else None

    def optimum(self, terms: Sequence[str]) -> Optimum | None:
        """Return the best plan by the leading terms of an objective; None: there is no plan."""
        if not self.feasible:
            return None
        rated = next((at for at, term in enumerate(terms) if term not in RATED), len(terms))
        if rated:
            return self._by_rates(terms[:rated])
        if terms[0] in ADDITIVE:
            return self._by_sum(terms)
        return Optimum(pipes=self.fastest(), settled=0, bound=None)

    def fastest(self) -> Pipes | None:
        """Return the single pipeline with the least period, on as few devices as that takes."""
        return self.plan([self._smallest(self.period_us)])

    def _smallest(self, cost: Ints) -> int:
        """Return the set with the least cost, a smallest one."""
        cost = np.where(self._allowed, cost, NEVER)
        best = np.flatnonzero(cost == cost.min())
        return int(best[np.argmin(self.states.sizes[best])])

    def _by_sum(self, terms: Sequence[str]) -> Optimum:
        cost = np.where(self.period_us < NEVER, self.program(terms[0]).least, NEVER)
        best = self._smallest(cost)
        settled = 2 if terms[1:2] == (Term.DEVICES,) else 1
        return Optimum(pipes=self._code([best], terms[0]), settled=settled, bound=int(cost[best]))

    def _by_rates(self, terms: Sequence[str]) -> Optimum:
        """Settle the terms one after the other, each under what those before have left (see `RATED`)."""
        most = self._most if Term.THROUGHPUT in terms else 1
        packing, rate, allowed, bound = self.packing(most=most), 0, self._allowed, None
        for term in (*terms, Term.DEVICES):
            best = np.where(allowed, packing.best, NONE)
            if term == Term.THROUGHPUT:
                value = self._cluster.interval_ns(int(best.max()))
                rate = self._cluster.least_rate(value)
            elif term == Term.DEVICES:
                value = int(self.states.sizes[best >= max(1, rate)].min())
                allowed = allowed & (self.states.sizes <= value)
            else:
                value, packing = self._least_period(packing, most, allowed, max(1, rate))
            bound = value if bound is None else bound
        state = int(np.argmax(np.where(allowed, packing.best, NONE)))
        return Optimum(pipes=self._code(packing.split(state), Term.PERIOD), settled=len(terms), bound=bound)

    def _least_period(self, packing: Packing, most: int, allowed: Ints, rate: int) -> tuple[int, Packing]:
        """Return the least period with which allowed sets reach a rate, and the rates with it."""
        periods = np.unique(self.period_us[self.types])
        low, high = 0, len(periods) - 1
        while low < high:
            middle = (low + high) // 2
            tried = self.packing(int(periods[middle]), most)
            if (tried.best[allowed] >= rate).any():
                high, packing = middle, tried
            else:
                low = middle + 1
        return int(periods[low]), packing

    def plan(self, types: Sequence[int]) -> Pipes | None:
        """Return the plan with the fastest pipeline on each of some sets; None where kinds were merged."""
        return self._code(types, Term.PERIOD)

    def _code(self, types: Sequence[int], term: str) -> Pipes | None:
        """Return the plan with the best pipeline on each of some sets, on the first devices of the kinds."""
        if not self.exact:
            return None
        free: defaultdict[int, list[int]] = defaultdict(list)
        for device in reversed(range(self._cluster.device_count)):
            free[self.arrays.kind_of[device]].append(device)
        cuts = self.arrays.cuts
        return ordered(
            tuple(
                tuple(
                    (cuts[i], cuts[j], free[kind].pop()) for kind, i, j in self.program(term).pipeline(type_)
                )
                for type_ in types
            )
        )

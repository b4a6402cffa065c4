"""All plans, best first as far as bounds can say: what the program over sets of devices does not decide.

A plan is built chunk by chunk from the front. A branch is left out when it leads to no valid plan, or to none
that is better than those that are kept: the program says what the rest takes at least. So it is exact for
every term, limit and rule; how long it takes depends on the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, combinations, product
from math import comb
from typing import NamedTuple

import numpy as np

from ...formulations.cooperation.plans import Parts
from ...formulations.cooperation.quantities import TERMS
from ...formulations.cooperation.service import Part, Service
from ...formulations.cooperation.tables import Groups
from ...formulations.expr import Interval, IntVar, Variable
from ...formulations.problem import Problem
from ...formulations.terms import Quantity as Q
from ...formulations.terms import Term as T
from ..branch_and_bound import BranchAndBound, Values
from ..pipelines.arrays import NEVER
from ..protocol import Deadline, SolveOptions
from .kinds import Bools, Kinds
from .program import Cost, Line, Program

_OF_DEVICE: dict[str, str] = {Q.BUSY: "compute_us", Q.EXTRA: "extra_permille", Q.MEMORY: "memory_bytes"}
_FIELDS = {info.field: name for name, info in TERMS.items()}


class Known:
    """The least and the greatest value that a quantity can still take."""

    def __init__(self, groups: Groups, parts: Parts, bounds: Mapping[str, int]) -> None:
        self._groups, self._parts, self._bounds = groups, parts, bounds
        self._own: dict[int, Part] = {device: part for part in parts for device in part[2]}

    def __call__(self, variable: Variable) -> Interval:
        """Return the interval of a quantity."""
        name, high = variable.name, variable.high if isinstance(variable, IntVar) else 1
        value = None
        if name in _READ:
            value = _READ[name](self, *variable.args)
        elif name in _OF_DEVICE:
            value = self._number(_OF_DEVICE[name], *variable.args)
        if value is not None:
            return value, value
        return max(0, min(high, self._bounds.get(_FIELDS.get(name, ""), 0))), high

    def _at(self, layer: int) -> Part | None:
        return next((part for part in self._parts if part[0] <= layer < part[1]), None)

    def _on(self, layer: int, device: int) -> int | None:
        part = self._at(layer)
        if part is not None:
            return int(device in part[2])
        return 0 if device in self._own else None

    def _uses(self, device: int) -> int | None:
        return 1 if device in self._own else None

    def _leads(self, device: int) -> int | None:
        return int(self._service(device).leader == device) if device in self._own else None

    def _together(self, one: int, other: int) -> int | None:
        found = self._own.get(one, self._own.get(other))
        return None if found is None else int(one in found[2] and other in found[2])

    def _size(self, layer: int) -> int | None:
        part = self._at(layer)
        return None if part is None else len(part[2])

    def _number(self, field: str, device: int) -> int | None:
        if device not in self._own:
            return None
        values: tuple[int, ...] = getattr(self._service(device), field)
        return values[self._own[device][2].index(device)]

    def _service(self, device: int) -> Service:
        service = self._groups.service(self._own[device])
        assert service is not None
        return service


_READ: dict[str, Callable[..., int | None]] = {
    Q.ON: Known._on,
    Q.USES: Known._uses,
    Q.LEADS: Known._leads,
    Q.TOGETHER: Known._together,
    Q.SIZE: Known._size,
}


SUMS = (T.LATENCY, T.ENERGY, T.REDUNDANCY, T.PEAK_MEMORY, T.DEVICES)
"""Terms that chunks add to; the energy of waiting aside."""


class Begun(NamedTuple):
    """The first chunks of a plan.

    `place`, `free`: where the next one begins, and the set of devices that are left; `lead`, `stage_us`: the
    class of the leader of the last one, and its stage without what it sends.
    """

    line: Line
    place: int
    free: int
    lead: int
    stage_us: int
    period_us: int  # the longest stage of those before
    sums: tuple[int, ...]  # what they add to each of `SUMS`; of the last one without what it sends


class Bounds:
    """What the rest of a plan takes at least, by [place][set]."""

    def __init__(self, program: Program, terms: set[str], most_us: int = NEVER) -> None:
        shape = program.arrays.last + 1, program.kinds.states.number
        self.period_us = program.rest(program.table(Cost(most_us=most_us)))
        self.sums = []
        for term in SUMS:
            if term in terms:
                sent = int(term == T.LATENCY)
                table = program.table(Cost(program.amount(term), sent, most_us))
                self.sums.append(program.rest(table))
            else:
                self.sums.append(np.zeros(shape, np.int64))


class Branching(BranchAndBound[Line, Parts]):
    """The best plans of a problem.

    `valid`: by set of devices whether it is allowed as a part of those of a plan.
    """

    def __init__(
        self,
        problem: Problem,
        options: SolveOptions,
        program: Program,
        caps: dict[str, int],
        valid: Bools,
        *,
        deadline: Deadline,
        on_better: Callable[[], None],
    ) -> None:
        super().__init__(problem, options, deadline=deadline, on_better=on_better)
        self._program, self._valid = program, valid
        self._caps = [caps.get(term) for term in SUMS]
        self._bounded = {*caps, *self._terms}
        self._idle_mw = sum(program.arrays.groups.idle_mw)
        amounts = program.arrays.amounts
        nothing = np.zeros_like(program.stage_us)
        self._amounts = [program.latency_us, *(amounts.get(term, nothing) for term in SUMS[1:])]
        self._most_us = caps.get(T.PERIOD, NEVER - 1)

    def _search(self) -> None:
        everything, most_us = self._program.kinds.states.number - 1, self._most_us
        if self._full and self._terms[0] == T.PERIOD:
            most_us = min(most_us, self.kept[-1].values[0])
        self._bounds = Bounds(self._program, self._bounded, most_us)
        self._extend(Begun((), 0, everything, 0, 0, 0, (0,) * len(SUMS)))

    def codes(self) -> Iterator[Parts]:
        """Yield the plans that are kept, each with all that differ in devices of a kind."""
        return chain.from_iterable(copies(self._program, kept.form) for kept in self.kept)

    def _code(self, form: Line) -> Parts:
        return next(copies(self._program, form))

    def _shape(self, form: Line) -> Line:
        return form

    def _copies(self, form: Line) -> int:
        return count_copies(self._program.kinds, form)

    # Branches

    def _extend(self, begun: Begun) -> None:
        """Go on in every way with a plan that was begun."""
        self._obey_deadline()
        last = self._program.arrays.last
        for least, further in self._following(begun):
            if self._hopeless(least):
                return  # they come in the order of bounds
            if self._breaks_rules(further, least):
                continue
            if further.place == last:
                self.offer(further.line)
            else:
                self._extend(further)

    def _following(self, begun: Begun) -> Iterator[tuple[Values, Begun]]:
        """Yield (bounds on the terms, plan) with one chunk more each, in the order of the bounds."""
        program, start = self._program, begun.place
        last, number = program.arrays.last, program.arrays.number
        groups, rest = program.parts_of(begun.free)
        stops = np.repeat(np.arange(start + 1, last + 1), len(groups))
        groups, rest = np.tile(groups, last - start), np.tile(rest, last - start)
        rows = number[start, stops]
        lead = program.leaders[rows, groups]
        stage, sent = program.stage_us[rows, groups], np.zeros(len(rows), np.int64)
        period = np.full(len(rows), begun.period_us)
        if start:
            sent = program.sends_us[begun.lead, lead, start]
            period = np.maximum(period, program.with_message(np.full(len(rows), begun.stage_us), sent))
        sums = np.stack([np.full(len(rows), value) for value in begun.sums])
        sums += np.stack([np.where(stage < NEVER, table[rows, groups], 0) for table in self._amounts])
        sums[0] += np.minimum(sent, NEVER)
        later = np.where(stops < last, program.least_sends_us[lead, stops], 0)
        longest = np.maximum(period, program.with_message(stage, later))
        longest = np.maximum(longest, self._bounds.period_us[stops, rest])
        least = sums + np.stack([table[stops, rest] for table in self._bounds.sums])
        least[0] += later
        least[1] += self._idle_mw * np.minimum(longest, 1 << 40)
        possible = (longest <= self._most_us) & self._valid[program.kinds.states.number - 1 - rest]
        for row, cap in zip(least, self._caps, strict=True):
            if cap is not None:
                possible &= row <= cap
        bounds = dict(zip(SUMS, least, strict=True)) | {T.PERIOD: longest}
        if self._full:
            possible &= bounds[self._terms[0]] <= self.kept[-1].values[0]
            self.dropped |= not possible.all()
        chosen = np.flatnonzero(possible)
        terms = np.stack([bounds[term][chosen] for term in self._terms])
        for place in np.lexsort((rest[chosen], stops[chosen], *terms[::-1])).tolist():
            at = int(chosen[place])
            further = Begun(
                (*begun.line, (start, int(stops[at]), int(groups[at]))),
                int(stops[at]),
                int(rest[at]),
                int(lead[at]),
                int(stage[at]),
                int(period[at]),
                tuple(sums[:, at].tolist()),
            )
            yield tuple(terms[:, place].tolist()), further

    def _breaks_rules(self, begun: Begun, least: Values) -> bool:
        """Return whether some rule is broken however a plan goes on."""
        rules = self._problem.expression_rules
        if not rules:
            return False
        code = next(copies(self._program, begun.line))
        bounds: dict[str, int] = {str(T.PERIOD): begun.period_us}
        bounds.update(zip(SUMS, begun.sums, strict=True))
        del bounds[T.ENERGY]  # a chunk may take less than waiting does
        bounds |= dict(zip(self._terms, least, strict=True))
        known = Known(self._program.arrays.groups, code, bounds)
        return any(rule.expr.bounds(known)[1] <= 0 for rule in rules)


def copies(program: Program, line: Line) -> Iterator[Parts]:
    """Yield every plan with these cuts and so many devices of each kind; first that of the first devices."""
    kinds, cuts = program.kinds, program.arrays.groups.chain.cuts
    counts = [kinds.counts[group].tolist() for *_, group in line]
    of_kind = []
    for kind, first in enumerate(kinds.firsts):
        devices = tuple(range(first, first + kinds.states.counts[kind]))
        of_kind.append(list(_dealt(devices, [row[kind] for row in counts])))
    for choice in product(*of_kind):
        yield tuple(
            (cuts[start], cuts[stop], tuple(device for row in choice for device in row[place]))
            for place, (start, stop, _) in enumerate(line)
        )


def _dealt(devices: tuple[int, ...], counts: list[int]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield every way to give each chunk so many of some devices."""
    if not counts:
        yield ()
        return
    for own in combinations(devices, counts[0]):
        left = tuple(device for device in devices if device not in own)
        for rest in _dealt(left, counts[1:]):
            yield own, *rest


def count_copies(kinds: Kinds, line: Line) -> int:
    """Return how many plans `copies` yields."""
    found, left = 1, list(kinds.states.counts)
    for *_, group in line:
        for kind, count in enumerate(kinds.counts[group].tolist()):
            found *= comb(left[kind], count)
            left[kind] -= count
    return found

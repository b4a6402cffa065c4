"""Single requests as a model: optional chunks, one at a time on each unit (coordination, section 5).

    x[r, i, j, u]   the sections [i, j) of request r are a chunk on unit u, which takes d
    b[r, i]         when the chunk that begins at border i starts; e[r]: when the last one ends

The chosen chunks of a request are a path from its first border to its last; a chunk starts after its release,
after those that it waits for (and what they send, by their units), and after the chunk before it; chunks on
one unit, and on units that take turns, do not overlap. Of one section there is one chunk, as of tasks. "At
least" rows admit idling, which makes no term better; rules about times add that nothing starts later than it
can. With slowdown (`slowdown.py`) a later start could spare others, so that these rows are always there.

Redundant rows, which relaxations need:

    route     b[r, i] - b[r, 0] >= sum of d x that end by i;  e[r] - b[r, i] >= sum of d x from i on
    equal     equal requests are done in the order of their indices
    windows   on each unit, what begins at h or later and has q behind it takes makespan - h - q at most,
              where h + q is at most any makespan
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

from ..expr import (
    FALSE,
    BoolExpr,
    BoolVar,
    Const,
    Expr,
    IntVar,
    VariableKey,
    all_of,
    any_of,
    count,
    linear,
    max_of,
    variables,
)
from ..model import Constraint, Encoded, Model, Relaxation, Sharing, Structure, Task, Values
from ..play import Part
from ..problem import Problem
from ..terms import Quantity as Q
from ..terms import Term
from .quantities import PlayedPlan
from .reach import Reach
from .slowdown import Lengths, at
from .tables import JobPlan, JobTables, Option, ScheduleTables, Square


class ScheduleModel:
    """The model of one problem of what is served once; what is asked of it is for its formulation to say.

    `top`: how many plans are wanted; for one, plans that differ by equal requests need not all be solutions.
    `known`: a valid plan: for one wanted plan that ends first, nothing needs to end later.
    """

    tables: ScheduleTables
    name: ClassVar[str]
    pace: ClassVar[str]  # the term that is the end of everything
    times: ClassVar[frozenset[str]]  # quantities that depend on when chunks start
    windows: ClassVar[int | None] = None  # most heads, and most tails, of windows; None: see `Reach.windows`

    def __init__(self, problem: Problem, *, top: int, known: JobPlan | None) -> None:
        tables: ScheduleTables = problem.tables
        self.problem, self.tables = problem, tables
        self.requests, self.units = range(tables.request_count), range(tables.unit_count)
        self.one = top == 1
        self.paced = problem.objective.terms[0] == self.pace
        self.horizon_us = tables.horizon_us
        if known is not None and self.one and self.paced:
            self.horizon_us = PlayedPlan(tables, known).makespan_us
        self.reach = Reach(tables=tables)
        self.asked = {key[0] for rule in problem.expression_rules for key in variables(rule.expr)}
        self.slowed = tables.losses.contended
        self.exact = self.slowed or bool(self.asked & self.times)
        least_us = min(self.reach.longest_us, self.horizon_us)
        self.makespan = IntVar("end_of_all", (), least_us, self.horizon_us)

    def _own_rows(self) -> dict[str, Iterator[BoolExpr]]:
        """Return further rows, by what they are about."""
        return {}

    # Variables

    @cached_property
    def chosen(self) -> dict[int, dict[Option, BoolVar]]:
        """By request, its chunks with their literals; without those that cannot be done in time."""
        return {
            request: {
                option: BoolVar("x", (request, *option.part))
                for option in self.reach.of(request)
                if self.reach.through_us(request, option) <= self.horizon_us
            }
            for request in self.requests
        }

    @cached_property
    def lengths(self) -> Lengths:
        """How long chunks run, where they slow each other down."""
        return Lengths(self.tables, self.chosen, self.begin, self.horizon_us)

    def _length(self, request: int, option: Option) -> IntVar | int:
        """Return how long a chunk runs if it is chosen."""
        return self.lengths.of((request, option.start)) if self.slowed else option.time_us

    def begin(self, request: int, border: int) -> Expr:
        """Return when the chunk that begins at a border starts; at the last border: when the request ends.

        Where a chunk goes on over the border, this is when it starts: heads and tails of the border do not
        hold then.
        """
        assert self.reach.head_us is not None
        heads, tails = self.reach.head_us[request], self.reach.tail_us[request]
        earliest = heads[border if border == self.tables.section_count(request) else 0]
        latest = self.horizon_us - tails[border if border == 0 else -1]
        return IntVar("begin", (request, border), earliest, latest)

    @cached_property
    def _ends(self) -> list[Expr]:
        return [
            self.begin(request, 0) + self._sum(request)
            if count == 1 and not self.slowed
            else self.begin(request, count)
            for request, count in enumerate(map(self.tables.section_count, self.requests))
        ]

    def end(self, request: int) -> Expr:
        """Return when the last chunk of a request ends: of one section there is one chunk."""
        return self._ends[request]

    def _by_unit(self, request: int, amounts: Sequence[int], *, last: bool = False) -> Expr:
        """Return the amount of the unit of the first or the last chunk of a request."""
        count, own = self.tables.section_count(request), self.chosen[request].items()
        there = [(amounts[o.unit], x) for o, x in own if (o.stop == count if last else o.start == 0)]
        least = min((us for us, _ in there), default=0)
        return linear(((us - least, x) for us, x in there if us > least), least)

    def _sum(self, request: int, *, start: int = 0, stop: int | None = None) -> Expr:
        """Return the time of the chunks of a request that lie between two borders."""
        last = self.tables.section_count(request) if stop is None else stop
        own = self.chosen[request].items()
        return linear((o.time_us, x) for o, x in own if start <= o.start and o.stop <= last)

    # The model

    def encoded(self) -> Encoded[JobPlan]:
        """Return the whole encoding."""
        if self.reach.head_us is None:
            model = Model(constraints=(Constraint(name="coverage", expr=FALSE),), definitions={})
        else:
            rows = {"structure": self._paths(), "time": self._times(), "route": self._routes()}
            rows |= {"passage": self._visits(), "conflict": self._unit_rows()}
            if self.slowed:
                rows |= {"slowdown": self.lengths.rows(), "turns": self._all_turns(), "busy": self._busy()}
            rows |= self._own_rows() | {"windows": self._windows(), "prompt": self._prompt()}
            constraints = [Constraint(name=name, expr=expr) for name, found in rows.items() for expr in found]
            constraints += (Constraint(name=r.name, expr=r.expr) for r in self.problem.expression_rules)
            model = Model(
                constraints=tuple(constraints),
                definitions=self._definitions(),
                sharing=tuple(self._sharing()),
            )
        return Encoded(
            name=self.name,
            model=model,
            structure=Structure.SLOWED if self.slowed else Structure.SCHEDULE,
            complete=self.horizon_us == self.tables.horizon_us,
            decode=self._decode,
            exclude=self._exclude,
            assign=self._assign,
        )

    def _paths(self) -> Iterator[BoolExpr]:
        for request in self.requests:
            own = self.chosen[request].items()
            for border in range(self.tables.section_count(request)):
                begun = count(x for o, x in own if o.start == border)
                yield begun == (1 if border == 0 else count(x for o, x in own if o.stop == border))

    def _visits(self) -> Iterator[BoolExpr]:
        """Yield that requests pass the units as they may."""
        rank = self.tables.visits.rank
        for request, own in self.chosen.items() if self.tables.visits.once else ():
            for unit in self.units:
                if rank is None:
                    yield count(x for o, x in own.items() if o.unit == unit) <= 1
                    continue
                # What ends on this unit or a later one is not followed by what is on this one or before.
                for border in range(1, self.tables.section_count(request)):
                    ending = [x for o, x in own.items() if o.stop == border and rank[o.unit] >= rank[unit]]
                    begun = [x for o, x in own.items() if o.start == border and rank[o.unit] <= rank[unit]]
                    yield count((*ending, *begun)) <= 1

    def _times(self) -> Iterator[BoolExpr]:
        for request in self.requests:
            last = self.tables.section_count(request)
            for option, x in self.chosen[request].items() if last > 1 or self.slowed else ():
                over = self.begin(request, option.stop) - self.begin(request, option.start)
                length = self._length(request, option)
                yield x.implies(over >= length)
                if self.exact and option.stop == last:
                    yield x.implies(over <= length)
            first_us, rest_us = self.reach.first_us[request], self.reach.rest_us[request]
            if len({first_us[option.unit] for option in self.chosen[request]}) > 1:
                yield self.begin(request, 0) >= self._by_unit(request, first_us)
            for other, square in self.tables.before[request]:
                yield self.begin(request, 0) >= self.end(other)
                yield from self._delays(request, other, square)
            yield self.makespan >= self.end(request) + self._by_unit(request, rest_us, last=True)
        if self.exact:
            exits = (self._by_unit(each, self.tables.exit_us[each], last=True) for each in self.requests)
            yield any_of(self.makespan <= self.end(each) + left for each, left in enumerate(exits))

    def _delays(self, request: int, other: int, square: Square) -> Iterator[BoolExpr]:
        """Yield that a request begins some time after the end of another one, by their units."""
        for left, x in self.chosen[other].items():
            targets: dict[int, list[BoolVar]] = {}
            if left.stop == self.tables.section_count(other):
                for option, y in self.chosen[request].items():
                    if option.start == 0:
                        targets.setdefault(square[left.unit][option.unit], []).append(y)
            for us, there in targets.items():
                if us:
                    done = self.begin(other, left.start) + self._length(other, left)
                    yield (~x) | ~any_of(there) | (self.begin(request, 0) >= done + us)

    def _routes(self) -> Iterator[BoolExpr]:
        for request in self.requests:
            last = self.tables.section_count(request)
            for border in range(1, last + 1) if last > 1 or self.slowed else ():
                over = self.begin(request, border) - self.begin(request, 0)
                yield over >= self._sum(request, stop=border)
                if border < last:
                    yield self.end(request) - self.begin(request, border) >= self._sum(request, start=border)

    def _windows(self) -> Iterator[BoolExpr]:
        """Yield what chunks with late heads and long tails leave of the makespan on units that take turns."""
        if not self.paced and self.windows is None:
            return
        for windows in self.reach.windows(self.requests, self.reach.longest_us, self.windows):
            for around_us, inside in windows:
                works = (
                    (option.time_us, x)
                    for request, option in inside
                    if (x := self.chosen[request].get(option)) is not None
                )
                yield linear(works, around_us) <= self.makespan

    # Units

    def _used(self, unit: int) -> BoolVar:
        return BoolVar("unit_used", (unit,))

    def _on(self, unit: int) -> list[BoolVar]:
        return [x for own in self.chosen.values() for o, x in own.items() if o.unit == unit]

    def _unit_rows(self) -> Iterator[BoolExpr]:
        limits, exclusive = self.problem.limits, self.tables.excluded
        if limits.min_units is None and limits.max_units is None and not any(exclusive):
            return
        for unit in self.units:
            on = self._on(unit)
            yield from (x.implies(self._used(unit)) for x in on)
            yield (~self._used(unit)) | any_of(on)
            yield from (count((self._used(unit), self._used(v))) <= 1 for v in exclusive[unit] if v > unit)
        used = count(map(self._used, self.units))
        if limits.min_units is not None:
            yield used >= limits.min_units
        if limits.max_units is not None:
            yield used <= limits.max_units

    # Chunks that keep each other waiting

    def _sharing(self) -> Iterator[Sharing]:
        for units in self.tables.turns:
            tasks = tuple(
                Task(start=self.begin(request, option.start), length=option.time_us, present=x)
                for request in self.requests
                for option, x in self.chosen[request].items()
                if option.unit in units
            )
            # Tasks have fixed lengths; with slowdown these are the least ones, and rows say the rest.
            yield Sharing(tasks=tasks, rows=() if self.slowed else tuple(self._turns(units)))

    def _all_turns(self) -> Iterator[BoolExpr]:
        for units in self.tables.turns:
            yield from self._turns(units)

    def _busy_us(self, request: int, border: int, unit: int) -> IntVar:
        return IntVar("busy", (request, border, unit), 0, self.lengths.of((request, border)).high)

    def _busy(self) -> Iterator[BoolExpr]:
        """Yield how long chunks run on each unit, where that is asked for."""
        for request, border, unit in self._places() if Q.BUSY in self.asked else ():
            busy, length = self._busy_us(request, border, unit), self.lengths.of((request, border))
            there = at((request, border), unit)
            yield there.implies(busy >= length)
            yield there.implies(busy <= length)
            yield there | (busy <= 0)

    def _places(self, unit: int | None = None) -> Iterator[tuple[int, int, int]]:
        """Yield where chunks can begin: request, border and unit."""
        found = {(r, o.start, o.unit) for r, own in self.chosen.items() for o in own}
        return iter(sorted(place for place in found if unit in (None, place[2])))

    def _turns(self, units: tuple[int, ...]) -> Iterator[BoolExpr]:
        """Yield "one after the other" for each two chunks on units, by a literal for who is first."""
        places: list[tuple[int, int, BoolExpr, Expr]] = []
        behind = self.tables.behind
        for request in self.requests:
            for border in range(self.tables.section_count(request)):
                own = {o: x for o, x in self._from(request, border).items() if o.unit in units}
                if own:
                    there = any_of(own.values())
                    length: Expr = linear((o.time_us, x) for o, x in own.items())
                    if self.slowed or self.tables.section_count(request) > 1:
                        there = BoolVar("at", (request, border, *units))
                        yield count(own.values()) == there
                    if self.slowed:
                        length = self.lengths.of((request, border))
                    places.append((request, border, there, self.begin(request, border) + length))
        for first, (request, border, here, end) in enumerate(places):
            for other, place, there, other_end in places[first + 1 :]:
                if other != request and not behind[other] >> request & 1:
                    turn = BoolVar("before", (request, border, other, place))
                    apart = (~here) | ~there
                    yield apart | ~turn | (end <= self.begin(other, place))
                    yield apart | turn | (other_end <= self.begin(request, border))

    def _from(self, request: int, border: int) -> dict[Option, BoolVar]:
        return {o: x for o, x in self.chosen[request].items() if o.start == border}

    def _prompt(self) -> Iterator[BoolExpr]:
        """Yield "a chunk starts when its request is ready, or when another one leaves its unit"."""
        if not self.exact:
            return
        for request in self.requests:
            for border in range(self.tables.section_count(request)):
                start, ways = self.begin(request, border), list[BoolExpr]()
                if border == 0:
                    ways.append(start <= self._by_unit(request, self.tables.entry_us[request]))
                    ways += self._after_others(request)
                else:
                    ways.append(~any_of(self._from(request, border).values()))
                    ways += [
                        x & (start <= self.begin(request, o.start) + self._length(request, o))
                        for o, x in self.chosen[request].items()
                        if o.stop == border
                    ]
                for other in self.requests:
                    skipped = other == request or self.tables.behind[other] >> request & 1
                    for option, x in () if skipped else self.chosen[other].items():
                        near = self.tables.near[option.unit]
                        here = any_of(y for o, y in self._from(request, border).items() if o.unit in near)
                        left = self.begin(other, option.start) + self._length(other, option)
                        ways.append(all_of((x, here, start == left)))
                yield any_of(ways)

    def _after_others(self, request: int) -> Iterator[BoolExpr]:
        """Yield "it starts when what another one sends is there"."""
        start = self.begin(request, 0)
        for other, square in self.tables.before[request]:
            if not any(map(any, square)):
                yield start <= self.end(other)
                continue
            for option, x in self.chosen[other].items():
                for mine, y in self._from(request, 0).items():
                    if option.stop == self.tables.section_count(other):
                        yield x & y & (start <= self.end(other) + square[option.unit][mine.unit])

    # Quantities

    def _definitions(self) -> dict[VariableKey, Expr]:
        """Return what the quantities of the formulation are: here, those that all have."""
        found: dict[VariableKey, Expr] = {}
        for unit in self.units:
            if self.slowed:
                found[Q.BUSY, (unit,)] = linear((1, self._busy_us(*place)) for place in self._places(unit))
                continue
            found[Q.BUSY, (unit,)] = linear(
                (o.time_us, x) for own in self.chosen.values() for o, x in own.items() if o.unit == unit
            )
        for request in self.requests:
            found[Q.START, (request,)] = self.begin(request, 0)
            found[Q.FINISH, (request,)] = self.end(request)
        found[Q.WORK, ()] = linear((1, self._sum(request)) for request in self.requests)
        return found

    # From solutions to plans and back

    def _decode(self, values: Values) -> JobPlan:
        chunks, starts = [], []
        for request in self.requests:
            own = sorted(o for o, x in self.chosen[request].items() if values(x))
            chunks.append(tuple(option.part for option in own))
            for option in own:
                start_us = self.begin(request, option.start).evaluate(values)
                starts.append((start_us, start_us + option.time_us, request))
        return self.tables.ordered(tuple(request for *_, request in sorted(starts)), tuple(chunks))

    def _exclude(self, code: JobPlan) -> BoolExpr:
        """Return "a chunk is missing, or two that follow each other on a unit stand the other way round"."""
        ways: list[BoolExpr] = []
        last: dict[int, tuple[int, Option]] = {}
        for run in PlayedPlan(self.tables, code).runs:
            option = Option(*run.part, run.work_us)
            ways.append(~self.chosen[run.request][option])
            for unit in self.tables.near[option.unit]:
                request, other = last.get(unit, (run.request, option))
                if request == run.request:
                    continue
                over = self.begin(request, other.start) - self.begin(run.request, option.start)
                ways.append(over >= option.time_us)
            last[option.unit] = run.request, option
        return any_of(ways)

    def _assign(self, code: JobPlan) -> Mapping[VariableKey, int]:
        """Return the value of every variable on a plan."""
        values = PlayedPlan(self.tables, code)
        found: dict[VariableKey, int] = {("end_of_all", ()): values.makespan_us}
        starts: dict[tuple[int, int], int] = {}
        if self.slowed:
            found |= self.lengths.assign(values)
        for run in values.runs:
            start, stop, unit = run.part
            found["x", (run.request, *run.part)] = 1
            found["busy", (run.request, start, unit)] = run.end_us - run.start_us
            found |= {("at", (run.request, start, *own)): 1 for own in self.tables.turns if unit in own}
            found["unit_used", (unit,)] = 1
            found["loaded", (self.tables.chain_of[run.request], *run.part)] = 1
            for border in range(start, stop):
                found["begin", (run.request, border)] = run.start_us
            found["begin", (run.request, stop)] = run.end_us
            starts[run.request, start] = len(starts)
        for one, rank in starts.items():
            for other, place in starts.items():
                if one < other:
                    found["before", (*one, *other)] = int(rank < place)
        return found


class JobsModel(ScheduleModel):
    """The model of requests."""

    tables: JobTables
    name: ClassVar[str] = "chunks"
    pace: ClassVar[str] = Term.MAKESPAN
    times: ClassVar[frozenset[str]] = frozenset(
        {Q.START, Q.FINISH, Q.IS_LATE, Q.MAKESPAN, Q.LATE, Q.LATENESS, Q.LATENCY}
    )

    def __init__(self, problem: Problem, *, top: int, known: JobPlan | None) -> None:
        super().__init__(problem, top=top, known=known)
        self.alike = Alike(self.tables) if self.one and not problem.rules else None

    def encoded(self) -> Encoded[JobPlan]:
        """Return the whole encoding, with how requests are told apart that are equal, and a relaxation."""
        found = super().encoded()
        return replace(
            found,
            complete=self.alike is None and found.complete,
            settle=self._settle,
            relaxed=self._relaxed if self.paced and self.reach.head_us is not None else None,
        )

    def _relaxed(self, least_us: int) -> Relaxation:
        """Return the model of counts; the larger the bound on the makespan, the more windows count."""
        least_us = min(max(least_us, self.reach.longest_us), self.horizon_us)
        makespan = IntVar("least_end", (), least_us, self.horizon_us)
        return Relaxation(constraints=tuple(_Counts(self.reach, makespan).rows(least_us)), objective=makespan)

    def _settle(self, code: JobPlan) -> JobPlan:
        if self.alike is None:
            return code
        finish_us = PlayedPlan(self.tables, code).finish_us
        return self.tables.ordered(*self.alike.settled(finish_us, code.parts, code.order))

    def _own_rows(self) -> dict[str, Iterator[BoolExpr]]:
        return {"device_memory": self._memory(), "equal": self._equal(), **self._time_limits()}

    def _equal(self) -> Iterator[BoolExpr]:
        for group in () if self.alike is None else self.alike.groups:
            for one, other in pairwise(group):
                yield self.end(one) <= self.end(other)

    def _time_limits(self) -> dict[str, Iterator[BoolExpr]]:
        """Return the filters on times; those on memory are in the tables."""
        limits, found = self.problem.limits, dict[str, Iterator[BoolExpr]]()
        if limits.max_makespan_us is not None:
            found["max_makespan_us"] = iter([self.makespan <= limits.max_makespan_us])
        if limits.max_latency_us is not None:
            found["max_latency_us"] = iter([self._latency() <= limits.max_latency_us])
        if (most_us := limits.max_request_latency_us) is not None:
            found["max_request_latency_us"] = (
                self.end(index) <= request.release_us + most_us
                for index, request in enumerate(self.tables.jobs.requests)
            )
        return found

    def _latency(self) -> Expr:
        """Return release to end of all requests, weighted."""
        jobs = self.tables.jobs
        return linear((r.weight, self.end(i) - r.release_us) for i, r in enumerate(jobs.requests))

    def _memory(self) -> Iterator[BoolExpr]:
        most, bytes_of = self.tables.chains[0].device_memory, dict[BoolVar, int]()
        if most is None:
            return
        kept: dict[tuple[int, ...], BoolVar] = {}
        for request in self.requests:
            for option, x in self.chosen[request].items():
                key = (self.tables.chain_of[request], *option.part)
                loaded = kept.setdefault(key, BoolVar("loaded", key))
                bytes_of[loaded] = self.tables.memory_bytes(request, option.part)
                yield x.implies(loaded)
        yield linear((size, loaded) for loaded, size in bytes_of.items()) <= most

    def _definitions(self) -> dict[VariableKey, Expr]:
        tables, found = self.tables, super()._definitions()
        lates: list[tuple[int, Expr]] = []
        lateness: list[tuple[int, Expr]] = []
        for request, wanted in enumerate(tables.jobs.requests):
            own, end, due_us = self.chosen[request], self.end(request), tables.due_us[request]
            for layer in range(tables.chain(request).layer_count):
                for unit in self.units:
                    found[Q.ON, (request, layer, unit)] = count(
                        x
                        for o, x in own.items()
                        if o.unit == unit and layer in range(*tables.layers(request, o.part))
                    )
            for unit in self.units:
                found[Q.USES, (request, unit)] = any_of(x for o, x in own.items() if o.unit == unit)
            late: BoolExpr = FALSE if due_us is None else end >= due_us + 1
            found[Q.IS_LATE, (request,)] = late
            found[Q.CHUNKS, (request,)] = count(own.values())
            lates.append((wanted.weight, late))
            lateness.append((wanted.weight, Const(0) if due_us is None else max_of((0, end - due_us))))
        found[Q.MAKESPAN, ()] = self.makespan
        found[Q.LATE, ()], found[Q.LATENESS, ()] = linear(lates), linear(lateness)
        found[Q.LATENCY, ()] = self._latency()
        return found


class _Counts:
    """A smaller model, for a bound on the makespan: how many requests of a kind take which chunk.

    Requests of one kind have the same chunks and the same time before and behind them. Integer flows through
    their sections say how many take each chunk; each window of a unit (`Reach.windows`) has room for what it
    is given, and no request of a kind has more time than the makespan leaves. Equal requests are not told
    apart, and nothing is ordered, so that solvers prove in seconds what the whole model takes long for.
    """

    def __init__(self, reach: Reach, makespan: Expr) -> None:
        assert reach.head_us is not None
        self._reach, self._makespan = reach, makespan
        heads, tails, chain_of = reach.head_us, reach.tail_us, reach.tables.chain_of
        kinds = [(chain_of[r], heads[r], tails[r]) for r in range(len(chain_of))]
        self._count = Counter(kinds)
        self._first = {kind: request for request, kind in reversed(list(enumerate(kinds)))}
        self._many = {
            (request, option): IntVar("many", (request, *option.part), 0, self._count[kind])
            for kind, request in self._first.items()
            for option in reach.of(request)
        }

    def rows(self, least_us: int) -> Iterator[BoolExpr]:
        """Yield what holds of every plan."""
        for kind, request in self._first.items():
            yield from self._flow(request, self._count[kind])
            yield self._time(request, self._count[kind])
        for windows in self._reach.windows(self._first.values(), least_us):
            for around_us, inside in windows:
                works = ((option.time_us, self._many[request, option]) for request, option in inside)
                yield linear(works, around_us) <= self._makespan

    def _flow(self, request: int, count: int) -> Iterator[BoolExpr]:
        for border in range(self._reach.tables.section_count(request)):
            out = self._sum(request, [o for o in self._reach.of(request) if o.start == border])
            into = self._sum(request, [o for o in self._reach.of(request) if o.stop == border])
            yield out == (count if border == 0 else into)

    def _time(self, request: int, count: int) -> BoolExpr:
        """Return "all of a kind together take at most as long as each of them may"."""
        assert self._reach.head_us is not None
        around_us = self._reach.head_us[request][0] + self._reach.tail_us[request][-1]
        works = ((option.time_us, self._many[request, option]) for option in self._reach.of(request))
        return linear(works, count * around_us) <= linear([(count, self._makespan)])

    def _sum(self, request: int, options: list[Option]) -> Expr:
        return linear((1, self._many[request, option]) for option in options)


class Alike:
    """Groups of equal requests: nobody would notice if two of a group, and what waits for them, swapped.

    Two requests are equal if network, release, deadline, weight and what they wait for are, and if the
    requests that wait for them are equal, each of which waits for nothing else; or are the same ones.
    """

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables
        kinds: dict[object, int] = {}
        self._kind = [0] * tables.request_count
        """What a request is with all that waits for it, whatever it waits for itself."""
        for request in reversed(range(tables.request_count)):
            own = tables.jobs.requests[request]
            followers = tables.followers[request]
            alone = all(len(tables.after[each]) == 1 for each in followers)
            behind = sorted(self._kind[each] for each in followers) if alone else ["same", *followers]
            what = (
                own.network,
                own.release_us,
                own.deadline_us,
                own.weight,
                tuple(behind),
            )
            self._kind[request] = kinds.setdefault(what, len(kinds))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Requests that are equal, in the order of their indices; groups of one are left out."""
        found: dict[object, list[int]] = defaultdict(list)
        for request, kind in enumerate(self._kind):
            found[kind, *sorted(self._tables.after[request])].append(request)
        return tuple(tuple(group) for group in found.values() if len(group) > 1)

    def settled(
        self, finish_us: Sequence[int], parts: Sequence[tuple[Part, ...]], order: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[tuple[Part, ...], ...]]:
        """Return an equally good plan in which equal requests finish in the order of their indices.

        Order and chunks.
        """
        stands_for = list(range(len(parts)))
        # Those behind come first: whole requests swap together with what waits for them.
        for group in sorted(self.groups, key=lambda group: -group[0]):
            ranked = sorted(group, key=lambda request: (finish_us[stands_for[request]], request))
            before = stands_for.copy()
            for place, source in zip(group, ranked, strict=True):
                for own, other in zip(self._tree(place), self._tree(source), strict=True):
                    stands_for[own] = before[other]
        place_of = {source: request for request, source in enumerate(stands_for)}
        return tuple(place_of[each] for each in order), tuple(parts[source] for source in stands_for)

    def _tree(self, request: int) -> list[int]:
        """Return a request and those that wait for it, equal ones in the order of their indices."""
        found = [request]
        followers = self._tables.followers[request]
        if all(len(self._tables.after[each]) == 1 for each in followers):
            for each in sorted(followers, key=lambda each: (self._kind[each], each)):
                found += self._tree(each)
        return found

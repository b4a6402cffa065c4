"""Schedules of tasks as a model: a start time for each task, a literal for each unit that can run it.

    x[v, u]   task v is on unit u, which takes t; one each
    s[v]      when it starts; e[v] = s[v] + sum of t x
    L         the latency

    s[b] >= e[a], and x[a, u] & x[b, w] -> s[b] >= e[a] + d   where b reads from a, which takes d from u to w
    tasks on one unit, and on units that exclude each other, do not overlap
    s[v] >= sum of head x,  L >= e[v] + sum of tail x         heads and tails: the longest paths (`paths`)

"At least" rows admit idling, which makes no term better; rules about times add that nothing starts later than
it can. With a known plan, tasks that would make a plan worse on a unit are not there. Redundant rows, for
relaxations: on units that take turns, what starts at h or later and has q behind it takes L - h - q at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product

from ..expr import (
    FALSE,
    BoolExpr,
    BoolVar,
    Const,
    Expr,
    IntVar,
    VariableKey,
    any_of,
    count,
    linear,
    variables,
)
from ..model import Constraint, Encoded, Model, Sharing, Structure, Task, Values
from ..problem import Problem
from .paths import paths_of
from .quantities import ScheduleQuantity as Q
from .quantities import ScheduleTerm, ScheduleValues
from .tables import Schedule, tables_of

_WINDOWS = 4
"""So many heads, and so many tails, for redundant rows."""

_TIMES = {str(Q.START), str(Q.FINISH), str(Q.LATENCY)}


def encode_schedules(problem: Problem, *, top: int = 1, known: Schedule | None = None) -> Encoded[Schedule]:
    """Return the model of a problem; where one plan is wanted, a known one limits where tasks can be."""
    return _Starts(problem, known if top == 1 and not problem.rules else None).encoded()


class _Starts:
    """The model of one problem.

    `known`: a valid plan, where plans that are not better may be left out; or None.
    """

    def __init__(self, problem: Problem, known: Schedule | None) -> None:
        self.problem = problem
        self.tables = tables = tables_of(problem)
        self.paths = paths = paths_of(tables)
        self.horizon_us = tables.horizon_us
        if known is not None and problem.ranking[0] == ScheduleTerm.LATENCY:
            self.horizon_us = ScheduleValues(tables, known).latency_us
        self.tasks = range(tables.task_count)
        self.chosen = [
            {
                unit: BoolVar("x", (task, unit))
                for unit in tables.allowed[task]
                if paths.through_us(task, unit) <= self.horizon_us
            }
            for task in self.tasks
        ]
        self.possible = all(self.chosen)
        self.latency = IntVar("end_of_all", (), min(paths.longest_us, self.horizon_us), self.horizon_us)

    def encoded(self) -> Encoded[Schedule]:
        """Return the whole encoding."""
        rows: dict[str, list[BoolExpr]] = {"support": [FALSE]}
        if self.possible:
            rows = {
                "structure": [count(own.values()) == 1 for own in self.chosen],
                "precedence": [*self._precedence()],
                "paths": [*self._along_paths()],
                "windows": [*self._windows()],
                "unit_memory": [*self._memory()],
                "prompt": [*self._prompt()] if self._exact else [],
            } | self._limits()
        constraints = [Constraint(name=name, expr=expr) for name, found in rows.items() for expr in found]
        constraints += (Constraint(name=r.name, expr=r.expr) for r in self.problem.expression_rules)
        return Encoded(
            name="start times",
            model=Model(
                constraints=tuple(constraints),
                definitions=self._definitions() if self.possible else {},
                sharing=tuple(self._sharing()) if self.possible else (),
            ),
            structure=Structure.SCHEDULE,
            complete=self.horizon_us == self.tables.horizon_us,
            decode=self._decode,
            exclude=self._exclude,
            assign=self._assign,
        )

    # Times

    def _sum(self, task: int, amounts: Mapping[int, int]) -> Expr:
        """Return the amount of the unit that a task is on."""
        return linear((amounts[unit], x) for unit, x in self.chosen[task].items())

    def _us(self, task: int) -> dict[int, int]:
        return {unit: self.tables.time_us[task][unit] or 0 for unit in self.chosen[task]}

    @cached_property
    def start(self) -> list[Expr]:
        """When each task starts."""
        found: list[Expr] = []
        for task, own in enumerate(self.chosen):
            head, tail = self.paths.head_us[task], self.paths.tail_us[task]
            rest = min((us + tail[unit] for unit, us in self._us(task).items()), default=0)
            first = min((head[unit] for unit in own), default=0)
            found.append(IntVar("start", (task,), first, max(first, self.horizon_us - rest)))
        return found

    @cached_property
    def end(self) -> list[Expr]:
        """When each task is done."""
        return [self.start[task] + self._sum(task, self._us(task)) for task in self.tasks]

    def _precedence(self) -> Iterator[BoolExpr]:
        for task, before in enumerate(self.tables.before):
            for other, square in before:
                yield self.start[task] >= self.end[other]
                for unit, x in self.chosen[other].items():
                    targets: dict[int, list[BoolVar]] = {}
                    for target, y in self.chosen[task].items():
                        targets.setdefault(square[unit][target], []).append(y)
                    done = self.start[other] + (self.tables.time_us[other][unit] or 0)
                    for us, there in targets.items():
                        if us:
                            yield (~x) | ~any_of(there) | (self.start[task] >= done + us)

    def _along_paths(self) -> Iterator[BoolExpr]:
        for task in self.tasks:
            yield self.start[task] >= self._sum(task, dict(enumerate(self.paths.head_us[task])))
            rest = self._sum(task, dict(enumerate(self.paths.tail_us[task])))
            yield self.latency >= self.end[task] + rest

    def _windows(self) -> Iterator[BoolExpr]:
        heads = [min(self.paths.head_us[task][unit] for unit in own) for task, own in enumerate(self.chosen)]
        tails = [min(self.paths.tail_us[task][unit] for unit in own) for task, own in enumerate(self.chosen)]
        for head, tail in product(_spread(heads), _spread(tails)):
            inside = [task for task in self.tasks if heads[task] >= head and tails[task] >= tail]
            for units in self.tables.turns if len(inside) > 1 else ():
                work = linear(
                    (us, self.chosen[task][unit])
                    for task in inside
                    for unit, us in self._us(task).items()
                    if unit in units
                )
                yield self.latency >= work + (head + tail)

    # Units, memory, limits

    def _used(self, unit: int) -> BoolExpr:
        return any_of(own[unit] for own in self.chosen if unit in own)

    def _bytes(self, unit: int) -> Expr:
        on = {task: own[unit] for task, own in enumerate(self.chosen) if unit in own}
        return self.tables.weights.expr(lambda task: on.get(task, FALSE), lambda task: on.get(task, FALSE))

    def _memory(self) -> Iterator[BoolExpr]:
        weights, most = self.tables.weights, self.tables.device_memory
        for unit, capacity in enumerate(self.tables.unit_memory):
            if capacity is not None and capacity < weights.whole:
                yield self._bytes(unit) <= capacity
        if most is not None and weights.whole > most:
            yield FALSE
        elif most is not None and weights.copied > most:
            yield linear((1, self._bytes(unit)) for unit in range(self.tables.unit_count)) <= most

    def _limits(self) -> dict[str, list[BoolExpr]]:
        limits, found = self.problem.limits, dict[str, list[BoolExpr]]()
        used = count(map(self._used, range(self.tables.unit_count)))
        if limits.max_latency_us is not None:
            found["max_latency_us"] = [self.latency <= limits.max_latency_us]
        if limits.min_units is not None:
            found["min_units"] = [used >= limits.min_units]
        if limits.max_units is not None:
            found["max_units"] = [used <= limits.max_units]
        return found

    # Tasks that keep each other waiting

    def _sharing(self) -> Iterator[Sharing]:
        for units in self.tables.turns:
            tasks = tuple(
                Task(start=self.start[task], length=us, present=self.chosen[task][unit])
                for task in self.tasks
                for unit, us in self._us(task).items()
                if unit in units
            )
            yield Sharing(tasks=tasks, rows=tuple(self._one_after_the_other(units)))

    def _one_after_the_other(self, units: tuple[int, ...]) -> Iterator[BoolExpr]:
        there = [any_of(own[unit] for unit in units if unit in own) for own in self.chosen]
        for other in self.tasks:
            for one in range(other):
                if not self.tables.tasks.ancestors[other] >> one & 1:
                    turn = BoolVar("before", (one, other))
                    apart = (~there[one]) | ~there[other]
                    yield apart | ~turn | (self.end[one] <= self.start[other])
                    yield apart | turn | (self.end[other] <= self.start[one])

    # Rules about times

    @property
    def _exact(self) -> bool:
        """Whether a rule speaks about times, so that nothing may start later than it can."""
        named = {key[0] for rule in self.problem.expression_rules for key in variables(rule.expr)}
        return bool(named & _TIMES)

    def _prompt(self) -> Iterator[BoolExpr]:
        """Yield "a task starts when all that it reads is there, or when another one leaves its units"."""
        tables = self.tables
        for task, own in enumerate(self.chosen):
            start = self.start[task]
            ways = [start <= self._sum(task, dict(enumerate(tables.entry_us[task])))]
            for other, square in tables.before[task]:
                ways += [
                    x & y & (start <= self.end[other] + square[unit][target])
                    for unit, x in self.chosen[other].items()
                    for target, y in own.items()
                ]
            ways += [
                x & y & (start == self.end[other])
                for other in self.tasks
                if other != task and not tables.tasks.ancestors[other] >> task & 1
                for unit, x in self.chosen[other].items()
                for target, y in own.items()
                if unit == target or unit in tables.exclusive[target]
            ]
            yield any_of(ways)
        exits = [self._sum(task, dict(enumerate(row))) for task, row in enumerate(tables.exit_us)]
        yield any_of(self.latency <= self.end[task] + exits[task] for task in self.tasks)

    # Quantities

    def _definitions(self) -> dict[VariableKey, Expr]:
        tables, found = self.tables, dict[VariableKey, Expr]()
        for unit in range(tables.unit_count):
            for layer, task in enumerate(tables.tasks.of):
                found[Q.ON, (layer, unit)] = self.chosen[task].get(unit, Const(0))
            found[Q.USES, (unit,)] = self._used(unit)
            found[Q.MEMORY, (unit,)] = self._bytes(unit)
            found[Q.BUSY, (unit,)] = linear(
                (self.tables.time_us[task][unit] or 0, own[unit])
                for task, own in enumerate(self.chosen)
                if unit in own
            )
        for task in self.tasks:
            found[Q.START, (task,)], found[Q.FINISH, (task,)] = self.start[task], self.end[task]
        found[Q.LATENCY, ()] = self.latency
        found[Q.WORK, ()] = linear((1, self._sum(task, self._us(task))) for task in self.tasks)
        found[Q.UNITS, ()] = count(map(self._used, range(tables.unit_count)))
        return found

    # From solutions to plans and back

    def _decode(self, values: Values) -> Schedule:
        units = [next(unit for unit, x in own.items() if values(x)) for own in self.chosen]
        starts = [start.evaluate(values) for start in self.start]
        return self.tables.ordered(units, sorted(self.tasks, key=lambda task: (starts[task], task)))

    def _exclude(self, code: Schedule) -> BoolExpr:
        """Return "a task is on another unit, or two that take turns stand the other way round"."""
        ways: list[BoolExpr] = [
            ~self.chosen[task].get(unit, Const(0)) for task, unit in enumerate(code.units)
        ]
        last: dict[int, int] = {}
        for task in code.order:
            unit = code.units[task]
            near = {unit, *self.tables.exclusive[unit]} & last.keys()
            ways += [self.start[last[other]] >= self.end[task] for other in near]
            last[unit] = task
        return any_of(ways)

    def _assign(self, code: Schedule) -> Mapping[VariableKey, int]:
        """Return the value of every variable on a plan."""
        values = ScheduleValues(self.tables, code)
        found: dict[VariableKey, int] = {("end_of_all", ()): values.latency_us}
        place = {task: position for position, task in enumerate(code.order)}
        for task, unit in enumerate(code.units):
            found["start", (task,)] = values.task_start_us[task]
            found |= {("x", (task, other)): int(other == unit) for other in self.chosen[task]}
            found |= {("before", (other, task)): int(place[other] < place[task]) for other in range(task)}
        return found


def _spread(values: list[int]) -> list[int]:
    """Return a few of some values, the least one first."""
    found = sorted({*values})
    return found[:: max(1, -(-len(found) // _WINDOWS))]

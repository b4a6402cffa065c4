"""Layers side by side as a formulation, and how they run: one request at a time, in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import factorial, prod
from typing import ClassVar

from ..blocks import Blocks, blocks_of
from ..branches import runs_of
from ..demands import Demand
from ..deployment import Deployment
from ..errors import InvalidInputError, InvalidPlanError
from ..expr import FALSE, BoolExpr, Const, Expr, VariableKey, any_of, count, linear
from ..flight import checked_slots
from ..formulation import of_tables
from ..history import History, Interval, SteadyState, Usage, executed, simulated, usage_of
from ..network import LARGEST_GRAPH
from ..operation import Operation, operation_of
from ..plan import Chunk, Plan
from ..problem import Problem
from ..scores import Violation
from ..streams import Dataflow, Stream
from ..task_graphs import TaskGraph
from ..terms import Objective, PlanNumbers, Term
from ..terms import Quantity as Q
from . import tasks
from .encoding import ScheduleModel
from .formulation import ScheduleFormulation
from .tables import JobPlan
from .tasks import ScheduleValues, TaskTables, plan_of, tables_of, tasks_of


class TaskGraphOperation(Operation):
    """One request after the other; what has no pieces side by side is charged as a chain of chunks."""

    def pace(self, problem: Problem) -> str:
        """Return the latency: one request is on its way at a time."""
        return "latency"

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return one stream, whose chunks are the pieces."""
        _check_slots(task_slots)
        return Deployment(streams=(stream_of(problem, plan),))

    def check_executable(self, problem: Problem) -> None:
        """Refuse devices that links join."""
        if tasks_of(problem).over_links:
            raise InvalidInputError(
                "the plan is for several devices (links), and layers side by side run on the units of one: "
                "`gapless simulate` plays it; for a cluster make a plan of chunks (--layer-order fixed)"
            )

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield problems of two units at least, of layers and of whole branches, and that of chunks in a row.

        So layers run side by side in some plans of a race, even if a unit alone is predicted to be faster.
        Branches have fewer pieces, which a table does not say the price of. Rules are about these plans.
        """
        if problem.rules:
            return
        limits, data = problem.limits, tasks_of(problem)
        runs = tuple(run for run in runs_of(problem.network) if len(run) > 1)
        if limits.min_units is None and limits.max_units != 1 and len(problem.platform.units) > 1:
            apart = replace(problem, limits=replace(limits, min_units=2))
            yield apart
            if runs and not data.segments:
                yield replace(apart, data=replace(data, segments=runs))
        yield _chain(problem)

    def baselines(
        self, problem: Problem, sets: Sequence[tuple[str, ...]]
    ) -> Iterator[tuple[str, Deployment]]:
        """Yield the network on each unit alone."""
        chain = _chain(problem)
        return operation_of(chain).baselines(chain, sets)

    def charged(self, problem: Problem, deployment: Deployment) -> Problem:
        """Return the problem; where no chunks run side by side, that of chunks one after the other."""
        return problem if deployment.is_dataflow else _chain(problem)

    def chunk_us(self, problem: Problem, deployment: Deployment) -> tuple[tuple[int | None, ...], ...]:
        """Return the time of each piece."""
        (state,) = self.steady(problem, deployment)
        return (tuple((event.end_ns - event.start_ns) // 1000 for event in state.events),)

    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play a number of requests, one at a time."""
        _check_slots(task_slots)
        requests, _ = checked_slots(requests, interval_us, task_slots)
        stream = stream_of(problem, plan)
        runs = _runs(problem, stream)
        latency_us = _latency_us(runs)
        between_us = latency_us if interval_us is None else interval_us
        arrivals = tuple(request * between_us for request in range(requests))
        begins, free_us = [], 0
        for arrival in arrivals:
            begins.append(max(arrival, free_us))
            free_us = begins[-1] + latency_us
        events = _events(stream, runs, begins, engines=False)
        units = tables_of(problem).units
        return simulated(plan, events, units=units, arrivals_us=arrivals, streams=(stream,))

    def usage(self, problem: Problem, history: History) -> Usage:
        """Return the bytes in use over time.

        Weights are there all the time, what pieces make for others from the end of the piece that makes it to
        the end of the last one that reads it.
        """
        return usage_of(
            _changes(problem, history),
            ((event.request, *event.span_us) for event in history.events),
            base=sum(_held_bytes(problem, stream) for stream in history.streams),
            requests=len(history.output_us),
        )

    def check_deployment(self, problem: Problem, deployment: Deployment) -> None:
        """Refuse what is not one stream of the network."""
        if deployment.rounds is not None or len(deployment.streams) != 1:
            raise InvalidPlanError("it runs several requests at once, the problem is about one")

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play requests one after the other."""
        (stream,) = deployment.streams
        runs = _runs(problem, stream)
        begins = [_latency_us(runs) * request for request in range(rounds)]
        return executed(deployment, _events(stream, runs, begins, engines=True))

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return one request: the next one does the same."""
        (stream,) = deployment.streams
        runs = _runs(problem, stream)
        events = tuple(_events(stream, runs, [0], engines=True))
        return (SteadyState(period_us=float(_latency_us(runs)), events=events),)


def _check_slots(task_slots: int | None) -> None:
    if task_slots not in (None, 1):
        raise InvalidInputError(
            f"task_slots is {task_slots}: layers side by side are for one request at a time; leave it out"
        )


def _chain(problem: Problem) -> Problem:
    """Return the problem of cutting the order of the network, for the latency."""
    return replace(problem, data=None, objective=Objective(terms=("latency",)), rules=())


@dataclass(frozen=True, kw_only=True)
class _Run:
    """When a piece runs, microseconds from the beginning of its request.

    `entered_us`, `left_us`: the same, with what tensors from outside take into pieces that wait for none, and
    those to the outside out of pieces that none waits for.
    """

    entered_us: int
    start_us: int
    end_us: int
    left_us: int


def _held_bytes(problem: Problem, stream: Stream) -> int:
    """Return the weights on all units; what several tasks of a unit share is there once."""
    tables, of_unit = _by_layer(problem), dict[str, set[int]]()
    for chunk, own in zip(stream.chunks, _layers(stream), strict=True):
        of_unit.setdefault(chunk.unit, set()).update(tables.tasks.of[layer] for layer in own)
    return sum(tables.weights.of(tasks) for tasks in of_unit.values())


def _runs(problem: Problem, stream: Stream) -> list[_Run]:
    """Return when each piece runs: as soon as those that it waits for are done, and their tensors there."""
    tables = _by_layer(problem)
    layers = _layers(stream)
    own_tasks = [sorted({tables.tasks.of[layer] for layer in own}) for own in layers]
    piece_of = {task: piece for piece, own in enumerate(own_tasks) for task in own}
    units = [tables.units.index(chunk.unit) for chunk in stream.chunks]
    found: list[_Run] = []
    for own, unit, waits in zip(own_tasks, units, stream.waits, strict=True):
        start = max([tables.entry_us[task][unit] for task in own] + [found[other].end_us for other in waits])
        for task in own:
            for maker, square in tables.before[task]:
                sender = piece_of[maker]
                if task not in own_tasks[sender]:
                    start = max(start, found[sender].end_us + square[units[sender]][unit])
        end = start + sum(tables.time_us[task][unit] or 0 for task in own)
        found.append(_Run(entered_us=start if waits else 0, start_us=start, end_us=end, left_us=end))
    for piece in stream.last:
        leave = max(tables.exit_us[task][units[piece]] for task in own_tasks[piece])
        found[piece] = replace(found[piece], left_us=found[piece].end_us + leave)
    return found


def _by_layer(problem: Problem) -> TaskTables:
    """Return the tables of single layers: a piece need not be made of segments."""
    data = tasks_of(problem)
    return tables_of(replace(problem, data=replace(data, segments=())) if data.segments else problem)


def _layers(stream: Stream) -> list[Sequence[int]]:
    order = stream.order or range(stream.chunks[-1].stop)
    return [order[chunk.start : chunk.stop] for chunk in stream.chunks]


def _latency_us(runs: Sequence[_Run]) -> int:
    return max(run.left_us for run in runs)


def _events(stream: Stream, runs: Sequence[_Run], begins: list[int], *, engines: bool) -> Iterator[Interval]:
    """Yield each piece of requests that begin at some times; sending takes no time of a unit."""
    for request, begin in enumerate(begins):
        for index, (chunk, run) in enumerate(zip(stream.chunks, runs, strict=True)):
            inside = (run.start_us, run.end_us) if engines else ()
            yield Interval(
                start_ns=1000 * (begin + run.entered_us),
                end_ns=1000 * (begin + run.left_us),
                stream=0,
                request=request,
                chunk=index,
                unit=chunk.unit,
                engine_ns=tuple(1000 * (begin + at) for at in inside),
            )


def _changes(problem: Problem, trace: History) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back) of what crosses pieces, and of nothing at each start."""
    ends = {(event.request, event.chunk): event.span_us[1] for event in trace.events}
    yield from ((event.span_us[0], 0) for event in trace.events)
    network, (stream,) = problem.network, trace.streams
    piece_of = {layer: piece for piece, own in enumerate(_layers(stream)) for layer in own}
    for tensor in network.tensors:
        readers = {piece_of[target] for target in tensor.targets if target < len(network.layers)}
        maker = piece_of.get(tensor.source)
        if maker is None or not readers - {maker}:
            continue
        for request in {event.request for event in trace.events}:
            yield ends[request, maker], tensor.bytes
            yield max(ends[request, reader] for reader in readers), -tensor.bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces:
    """The pieces of a schedule, in the order in which they start: tasks that one unit runs one after another.

    A piece is one model for its engine: it begins when all that its tasks read is there, and what they make
    is there when all of it is done. So tasks become one piece only where, by the times of the schedule,
    nothing starts later for it: what the later ones read is there when the first one starts, and nobody reads
    from the earlier ones, or waits for their unit, before the last one is done.

    No piece waits for itself: each begins when those that it waits for are done, which is later than they
    begin; tasks that take no time stay apart, in the order of the schedule.
    """

    tasks: tuple[tuple[int, ...], ...]  # the tasks of each piece, in their order
    units: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    """For each piece the earlier ones that it waits for: those that make its inputs, the one before it on its
    unit, those before it on units that exclude its own; not those that another of them waits for."""


def pieces_of(tables: TaskTables, code: JobPlan) -> Pieces:
    """Return the pieces of a schedule."""
    return _Joining(tables, code).pieces()


def stream_of(problem: Problem, plan: Plan) -> Stream:
    """Return a plan as a stream: its pieces are the chunks, in a valid order of the layers."""
    tables, code = tables_of(problem), problem.formulation.code(problem, plan)
    found = pieces_of(tables, code)
    layers = [sorted(x for task in own for x in tables.tasks.members[task]) for own in found.tasks]
    order = tuple(layer for own in layers for layer in own)
    ends = pairwise(accumulate(map(len, layers), initial=0))
    alone = len(layers) == 1
    return Stream(
        name=tables.network,
        chunks=tuple(
            Chunk(network=tables.network, start=start, stop=stop, unit=tables.units[unit])
            for unit, (start, stop) in zip(found.units, ends, strict=True)
        ),
        task_slots=1,
        order=() if order == tuple(range(len(order))) else order,
        dataflow=None if alone else Dataflow(waits=found.waits, starts=plan_of(tables, code).order),
    )


class _Joining:
    """Joins tasks to pieces, in the order of their starts."""

    def __init__(self, tables: TaskTables, code: JobPlan) -> None:
        self._tables, self._code, self._units = tables, code, code.units
        self._values = ScheduleValues(tables, code)
        self._time_us = [tables.time_us[task][unit] or 0 for task, unit in enumerate(self._units)]
        self._before = self._waits()
        self._after: list[list[tuple[int, int]]] = [[] for _ in self._before]
        for task, own in enumerate(self._before):
            for other, sent_us in own:
                self._after[other].append((task, sent_us))
        self._piece: dict[int, list[int]] = {}

    def _waits(self) -> list[list[tuple[int, int]]]:
        """Return for each task those that it waits for, and how long after their end."""
        tables, units = self._tables, self._units
        found = [
            [(other, square[units[other]][units[task]]) for other, square in before]
            for task, before in enumerate(tables.before)
        ]
        last: dict[int, int] = {}
        for task in self._code.order:
            near = {*tables.near[units[task]]} & last.keys()
            found[task] += [(last[unit], 0) for unit in sorted(near)]
            last[units[task]] = task
        return found

    def pieces(self) -> Pieces:
        """Join all that can be joined."""
        last: dict[int, list[int]] = {}
        for task in self._code.order:
            unit = self._units[task]
            if unit in last and self._fits(last[unit], task):
                last[unit].append(task)
            else:
                last[unit] = [task]
            self._piece[task] = last[unit]
        starts = self._values.start_us
        place = {task: position for position, task in enumerate(self._code.order)}
        ordered = sorted(
            {own[0]: own for own in self._piece.values()}.values(),
            key=lambda own: (starts[own[0]], self._time_us[own[0]] > 0, place[own[0]]),
        )
        return Pieces(
            tasks=tuple(map(tuple, ordered)),
            units=tuple(self._units[own[0]] for own in ordered),
            waits=self._between(ordered).before,
        )

    def _between(self, ordered: list[list[int]]) -> Blocks:
        """Return the graph of the pieces."""
        number = {task: index for index, own in enumerate(ordered) for task in own}
        edges = {
            (number[other], number[task])
            for task, before in enumerate(self._before)
            for other, _ in before
            if number[other] != number[task]
        }
        return blocks_of(len(ordered), edges, ())

    def _fits(self, own: list[int], task: int) -> bool:
        """Return whether nothing starts later if a task is run with those before it on its unit."""
        begins, starts = self._values.start_us[own[0]], self._values.start_us
        entry_us = self._tables.entry_us[task][self._units[task]]
        ends = self._end_us(own) + self._time_us[task]
        if not (self._time_us[own[0]] and self._time_us[task]) or entry_us > begins:
            return False
        for other, sent_us in self._before[task]:
            if other not in own and self._end_us(self._piece[other]) + sent_us > begins:
                return False
        for one in own:
            if ends + self._tables.exit_us[one][self._units[one]] > self._values.latency_us:
                return False
            for other, sent_us in self._after[one]:
                reads_at = starts[self._piece.get(other, [other])[0]]
                if other != task and other not in own and ends + sent_us > reads_at:
                    return False
        return True

    def _end_us(self, own: list[int]) -> int:
        return self._values.start_us[own[0]] + sum(self._time_us[task] for task in own)


def _without_segments(problem: Problem) -> Problem:
    return replace(problem, data=replace(tasks_of(problem), segments=()))


_MOST_COUNTED = 20
"""Orders of more tasks than this are not counted: what counts then is that there are too many."""


def count_schedules(tables: TaskTables) -> int:
    """Return an upper bound on the number of schedules: units for tasks, times orders."""
    orders = _count_orders(tables) if tables.task_count <= _MOST_COUNTED else factorial(tables.task_count)
    return int(prod(max(1, len(own)) for own in tables.allowed)) * orders


def _count_orders(tables: TaskTables) -> int:
    """Return the number of topological orders, from the down-sets of the graph."""
    needs = [sum(1 << other for other, _ in own) for own in tables.before]
    ways = {0: 1}
    for _ in needs:
        more: dict[int, int] = {}
        for done, number in ways.items():
            for task, before in enumerate(needs):
                if not done >> task & 1 and before & ~done == 0:
                    more[done | 1 << task] = more.get(done | 1 << task, 0) + number
        ways = more
        if len(ways) > 10_000:
            return factorial(len(needs))
    return sum(ways.values())


def near_schedules(tables: TaskTables, code: JobPlan) -> Iterator[JobPlan]:
    """Yield schedules in which one task is on another unit, or two that follow each other are exchanged."""
    units = code.units
    for task, allowed in enumerate(tables.allowed):
        for unit in allowed:
            if unit != units[task]:
                yield tables.scheduled((*units[:task], unit, *units[task + 1 :]), code.order)
    for place, (one, other) in enumerate(pairwise(code.order)):
        if all(maker != one for maker, _ in tables.before[other]):
            order = (*code.order[:place], other, one, *code.order[place + 2 :])
            yield tables.scheduled(units, order)


class _TaskModel(ScheduleModel):
    """The model of one problem: tasks have start times, and units hold the weights of theirs."""

    tables: TaskTables
    name: ClassVar[str] = "start times"
    pace: ClassVar[str] = Term.LATENCY
    times: ClassVar[frozenset[str]] = frozenset({Q.START, Q.FINISH, Q.LATENCY})
    windows: ClassVar[int | None] = 4

    def _own_rows(self) -> dict[str, Iterator[BoolExpr]]:
        return {"unit_memory": self._memory(), "max_latency_us": self._timely()}

    def _bytes(self, unit: int) -> Expr:
        on = {task: x for task, own in self.chosen.items() for o, x in own.items() if o.unit == unit}
        return self.tables.weights.expr(lambda task: on.get(task, FALSE), lambda task: on.get(task, FALSE))

    def _memory(self) -> Iterator[BoolExpr]:
        weights, most = self.tables.weights, self.tables.device_memory
        for unit, capacity in enumerate(self.tables.unit_memory):
            if capacity is not None and capacity < weights.whole:
                yield self._bytes(unit) <= capacity
        if most is not None and weights.whole > most:
            yield FALSE
        elif most is not None and weights.copied > most:
            yield linear((1, self._bytes(unit)) for unit in self.units) <= most

    def _timely(self) -> Iterator[BoolExpr]:
        limit = self.problem.limits.max_latency_us
        if limit is not None:
            yield self.makespan <= limit

    def _definitions(self) -> dict[VariableKey, Expr]:
        found = super()._definitions()
        uses = [any_of(self._on(unit)) for unit in self.units]
        for unit in self.units:
            by_task = [
                next((x for o, x in self.chosen[task].items() if o.unit == unit), Const(0))
                for task in self.requests
            ]
            for layer, task in enumerate(self.tables.tasks.of):
                found[Q.ON, (layer, unit)] = by_task[task]
            found[Q.USES, (unit,)], found[Q.MEMORY, (unit,)] = uses[unit], self._bytes(unit)
        found[Q.LATENCY, ()], found[Q.UNITS, ()] = self.makespan, count(uses)
        return found


class TaskGraphFormulation(ScheduleFormulation[TaskTables]):
    """One request of one network, its layers side by side on the units of a device."""

    name: ClassVar[str] = "task_graph"
    label: ClassVar[str] = "problems of layers side by side"
    data_key: ClassVar[str | None] = "tasks"
    data_type: ClassVar[type | None] = TaskGraph
    terms = tasks.TERMS
    quantities = tasks.QUANTITIES
    limits: ClassVar[tuple[str, ...]] = (
        "max_latency_us",
        "min_units",
        "max_units",
        "max_memory_bytes",
        "max_unit_memory_bytes",
    )
    one_network: ClassVar[bool] = True
    operation = TaskGraphOperation()
    most_layers: ClassVar[int] = LARGEST_GRAPH
    incomplete: ClassVar[str] = (
        "every layer can run somewhere, but no schedule has room for all: memory or segments are in the way"
    )
    model = _TaskModel
    tables = staticmethod(tasks.build_tables)
    view = of_tables(tasks.ScheduleView)
    code = of_tables(tasks.well_formed)
    plan = of_tables(plan_of)
    numbers = of_tables(ScheduleValues)
    count = of_tables(count_schedules)
    neighbours = of_tables(near_schedules)

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield what does not go with the units and the network."""
        if len(problem.networks) != 1:
            yield f"layers side by side are of one network, the problem has {len(problem.networks)}"
        else:
            yield from tasks_of(problem).mismatches(problem.platform, problem.networks[0])

    def demands(self, problem: Problem) -> list[Demand]:
        """Return that layers of one segment stay together."""
        count = len(tasks_of(problem).segments)
        if not count:
            return []
        text = f"layers of one segment are one task; there are {count} segments"
        return [Demand(name="segments", text=text, without=_without_segments)]

    def broken(self, problem: Problem, code: JobPlan, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield support and capacities that a plan breaks."""
        assert isinstance(numbers, ScheduleValues)
        return tasks.broken(numbers)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return by unit the time and the bytes of its layers."""
        assert isinstance(numbers, ScheduleValues)
        found = {"busy_us": numbers.busy_us, "memory_bytes": numbers.memory_bytes}
        return {name: tuple(map(row.get, range(numbers.tables.unit_count))) for name, row in found.items()}

    def rate(self, numbers: PlanNumbers) -> float:
        """Return the requests a second, one after the other."""
        assert isinstance(numbers, ScheduleValues)
        return 1e6 / max(1, numbers.latency_us)

    def plan_class(self, problem: Problem) -> str:
        """Return that layers are neither split nor run twice."""
        what = "layer and segment" if tasks_of(problem).segments else "layer"
        return f"plans in which every {what} runs once, whole on one unit, as early as their order allows"


FORMULATION = TaskGraphFormulation()
"""Layers side by side."""

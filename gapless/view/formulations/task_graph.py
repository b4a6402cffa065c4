"""How layers side by side are shown: who runs what from when to when, and what makes the latency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from ...answers.blocks import Block, Column, Sentence, Table, Unit, table
from ...answers.graph_drawing import MOST_DRAWN, GraphDrawing, drawn_graph
from ...answers.layers import layer_map
from ...answers.words import counted, listed, millis, share
from ...formulations.deployment import Deployment
from ...formulations.jobs.reach import Reach
from ...formulations.jobs.tasks import ScheduleValues, TaskTables, tables_of, tasks_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ..presenter import Presenter, UnitTime
from .jobs import times_of

_MOST_RUNS, _MOST_NAMES = 24, 3
"""Rows of the table of a plan, and layers that one of them names."""


class _Run(NamedTuple):
    """Tasks that one unit runs without a break."""

    start_us: int
    end_us: int
    unit: int
    tasks: tuple[int, ...]


class TaskGraphPresenter(Presenter):
    """One request of one network, layers side by side."""

    plan_title: ClassVar[str] = "layers by unit"
    short_plans: ClassVar[bool] = False
    busy_span: ClassVar[str] = "of each unit for one request"

    def plan_text(self, plan: Plan) -> str:
        """Return how many layers each unit runs."""
        counts: dict[str, int] = {}
        for chunk in plan.chunks:
            counts[chunk.unit] = counts.get(chunk.unit, 0) + chunk.stop - chunk.start
        return ", ".join(f"{count} {unit}" for unit, count in counts.items())

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> Iterable[Block]:
        """Return the times of the layers, and what the graph is like."""
        yield layer_map(problem.network, problem.costs, layers=layers)
        yield Sentence("; ".join(text for _, text in self.facts(problem)))

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return who runs what, from when to when, and what the latency is made of."""
        yield _runs_table(_values(problem, plan))
        yield Sentence(self.pace_words(problem, plan))

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return the latency beside the longest path and the fastest single unit, and how busy units are."""
        values = _values(problem, plan)
        tables = values.tables
        latency = values.latency_us
        longest = Reach(tables=tables).longest_us
        words = f"the longest path takes {millis(longest)}, {share(longest, latency)} of the latency"
        alone = _alone_us(tables)
        if alone:
            best = min(alone, key=lambda unit: alone[unit])
            words += f"; {tables.units[best]} alone takes {millis(alone[best])}"
        busy = [
            f"{tables.units[unit]} works {share(own, latency)} of it" for unit, own in values.busy_us.items()
        ]
        return f"{words}; {listed(busy)}."

    def deployment_words(self, problem: Problem, deployment: Deployment) -> str:
        """Return that layers run side by side."""
        return f"{listed(deployment.networks)}, layers side by side"

    def latency(self, judged: Score) -> tuple[int | None, str]:
        """Return the latency of one request."""
        return judged.value("latency"), "latency of one request"

    def facts(self, problem: Problem) -> Iterator[tuple[str, str]]:
        """Yield what the graph is like."""
        tables = tables_of(problem)
        edges = sum(map(len, tables.before))
        words = [counted(len(tables.layers), "layer"), counted(tables.task_count, "task")]
        words.append(f"{counted(edges, 'pair')} of tasks that read from each other")
        if tasks_of(problem).segments:
            words.append(f"{counted(len(tasks_of(problem).segments), 'segment')} of several layers")
        yield "graph", ", ".join(words)

    def drawing(self, problem: Problem, plan: Plan) -> GraphDrawing | None:
        """Return the graph with its layers coloured by unit."""
        values = _values(problem, plan)
        tables = values.tables
        if len(tables.layers) > MOST_DRAWN:
            return None
        units = values.code.units
        unit_of = [units[task] for task in tables.tasks.of]
        used = list(values.busy_us)
        edges = {
            (tensor.source, target)
            for tensor in problem.network.tensors
            for target in tensor.targets
            if tensor.source >= 0 and target < len(tables.layers)
        }
        starts = [values.start_us[task] for task in tables.tasks.of]
        return drawn_graph(
            [
                f"{name} on {tables.units[unit]} from {millis(start)}"
                for name, unit, start in zip(tables.layers, unit_of, starts, strict=True)
            ],
            sorted(edges),
            [used.index(unit) for unit in unit_of],
            [tables.units[unit] for unit in used],
            f"{counted(len(tables.layers), 'layer')} on {counted(len(used), 'unit')}; "
            "edges between units are drawn darker.",
        )

    def unit_times(self, problem: Problem, plan: Plan) -> tuple[UnitTime, ...]:
        """Return the work of each unit, and what it waits for until the request is done."""
        return times_of(_values(problem, plan))


def _values(problem: Problem, plan: Plan) -> ScheduleValues:
    return ScheduleValues(tables_of(problem), problem.formulation.code(problem, plan))


def _alone_us(tables: TaskTables) -> dict[int, int]:
    """Return the latency of each unit that can run all layers by itself."""
    order = range(tables.task_count)
    return {
        unit: ScheduleValues(tables, tables.scheduled([unit] * tables.task_count, order)).latency_us
        for unit in range(tables.unit_count)
        if all(unit in own for own in tables.allowed)
    }


def _runs(values: ScheduleValues) -> list[_Run]:
    """Return what runs without a break, in the order of the starts."""
    found: list[_Run] = []
    last: dict[int, int] = {}
    units = values.code.units
    for task in values.code.order:
        unit, start, end = units[task], values.start_us[task], values.finish_us[task]
        place = last.get(unit)
        if place is not None and found[place].end_us == start:
            found[place] = found[place]._replace(end_us=end, tasks=(*found[place].tasks, task))
        else:
            last[unit] = len(found)
            found.append(_Run(start, end, unit, (task,)))
    return found


def _runs_table(values: ScheduleValues) -> Table:
    tables = values.tables

    def layers(run: _Run) -> list[str]:
        return [tables.layers[layer] for task in run.tasks for layer in tables.tasks.members[task]]

    columns: list[Column[_Run]] = [
        Column("unit", Unit.NAME, lambda run: tables.units[run.unit]),
        Column("from", Unit.MICROSECONDS, lambda run: run.start_us),
        Column("to", Unit.MICROSECONDS, lambda run: run.end_us),
        Column("layers", Unit.COUNT, lambda run: len(layers(run))),
        Column("which", Unit.NAME, lambda run: _named(layers(run))),
    ]
    return table("Runs of layers", columns, _runs(values), most=_MOST_RUNS)


def _named(names: Sequence[str]) -> str:
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} ... {names[-1]}"


PRESENTER = TaskGraphPresenter()

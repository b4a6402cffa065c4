"""How convex parts are shown: the chain of parts, loads and transfers, the graph by part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from ...answers.blocks import Block, Cell, Column, Sentence, Table, Tone, Unit, table, with_unused
from ...answers.graph_drawing import MOST_DRAWN, GraphDrawing, drawn_graph
from ...answers.layers import layer_map
from ...answers.words import counted, listed, millis, share
from ...formulations.deployment import Deployment
from ...formulations.partition.quantities import PartValues
from ...formulations.partition.tables import chain_of, graph_of, partition_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score
from ..presenter import Presenter

_MOST_RUNS = 6
"""Runs of layers of one unit that are listed."""


class PartitionPresenter(Presenter):
    """One network in convex parts."""

    plan_title: ClassVar[str] = "parts"
    short_plans: ClassVar[bool] = False
    alternatives: ClassVar[int] = 12
    """Units that are alike in each other's place do not count."""

    busy_span: ClassVar[str] = "of each unit for one request"

    def plan_text(self, plan: Plan) -> str:
        """Return the layers of each unit, as runs of the given order."""
        return " | ".join(
            f"{_runs(plan, unit)} {unit}" for unit in dict.fromkeys(c.unit for c in plan.chunks)
        )

    def shape(self, problem: Problem, plan: Plan) -> object:
        """Return the parts, each with the units that its own could be exchanged for."""
        graph = graph_of(problem)
        code = problem.formulation.code(problem, plan)
        kind = {unit: number for number, units in enumerate(graph.alike()) for unit in units}
        parts: dict[int, list[int]] = {}
        for layer, unit in enumerate(code):
            parts.setdefault(unit, []).append(layer)
        return frozenset((kind[unit], tuple(layers)) for unit, layers in parts.items())

    def problem_parts(
        self, problem: Problem, *, layers: range | None = None, plan: Plan | None = None
    ) -> Iterable[Block]:
        """Return the times of the layers, and what is asked of parts."""
        yield layer_map(problem.network, problem.costs, layers=layers)
        yield Sentence("; ".join(text for _, text in self.facts(problem)))

    def plan_parts(self, problem: Problem, plan: Plan, judged: Score) -> Iterable[Block]:
        """Return the parts in an order in which they can run, and who sets the pace."""
        values = _values(problem, plan)
        yield _parts_table(plan, values)
        yield Sentence(self.pace_words(problem, plan))

    def pace_words(self, problem: Problem, plan: Plan) -> str:
        """Return which unit has the largest load, and what transfers take of it."""
        values = _values(problem, plan)
        unit = max(values.busy_us, key=values.busy_us.__getitem__)
        name = values.graph.units[unit]
        words = f"{name} sets the pace: {millis(values.busy_us[unit])}"
        if values.transfer_us[unit]:
            words += f", {share(values.transfer_us[unit], values.busy_us[unit])} of it transfers"
        return f"{words}."

    def deployment_words(self, problem: Problem, deployment: Deployment) -> str:
        """Return that a network is cut into parts."""
        return f"{listed(deployment.networks)} in convex parts"

    def facts(self, problem: Problem) -> Iterator[tuple[str, str]]:
        """Yield what the graph is like, and what stays together."""
        graph, data = graph_of(problem), partition_of(problem)
        words = [counted(graph.layer_count, "layer"), counted(len(graph.edges), "edge")]
        if data.colours:
            words.append(counted(len(data.colours), "colour"))
        if data.backward:
            words.append(f"{counted(len(data.backward), 'layer')} of the backward pass")
        words.append(f"{counted(graph.blocks.count, 'block')} to place")
        yield "graph", ", ".join(words)

    def drawing(self, problem: Problem, plan: Plan) -> GraphDrawing | None:
        """Return the graph with its layers coloured by part."""
        graph = graph_of(problem)
        if graph.layer_count > MOST_DRAWN:
            return None
        code = problem.formulation.code(problem, plan)
        chain = chain_of(graph, code) or ()
        place = {unit: number for number, unit in enumerate(chain)}
        edges = {
            (tensor.source, target)
            for tensor in problem.network.tensors
            for target in tensor.targets
            if tensor.source >= 0 and target < graph.layer_count
        }
        crossing = sum(code[source] != code[target] for source, target in edges)
        return drawn_graph(
            [f"{name} on {graph.units[unit]}" for name, unit in zip(graph.layers, code, strict=True)],
            sorted(edges),
            [place[unit] for unit in code],
            [f"part {number + 1}: {graph.units[unit]}" for number, unit in enumerate(chain)],
            f"{counted(graph.layer_count, 'layer')} in {counted(len(chain), 'part')}; "
            f"{counted(crossing, 'edge')} between parts are drawn darker.",
        )


def _values(problem: Problem, plan: Plan) -> PartValues:
    found = problem.formulation.numbers(problem, problem.formulation.code(problem, plan))
    assert isinstance(found, PartValues)
    return found


def _runs(plan: Plan, unit: str) -> str:
    runs = [f"{c.start}-{c.stop - 1}" for c in plan.chunks if c.unit == unit]
    more = f" and {len(runs) - _MOST_RUNS} more" if len(runs) > _MOST_RUNS else ""
    return f"{','.join(runs[:_MOST_RUNS])}{more}"


def _parts_table(plan: Plan, values: PartValues) -> Table:
    graph = values.graph
    chain = chain_of(graph, values.code) or ()

    def load(unit: int) -> Cell:
        busy = values.busy_us[unit]
        return Cell(busy, Tone.GOOD if busy == values.period_us else Tone.PLAIN)

    columns: list[Column[int]] = [
        Column("part", Unit.COUNT, lambda unit: chain.index(unit) + 1),
        Column("unit", Unit.NAME, lambda unit: graph.units[unit]),
        Column("layers", Unit.COUNT, values.code.count),
        Column("which", Unit.TEXT, lambda unit: _runs(plan, graph.units[unit])),
        Column("load", Unit.MICROSECONDS, load),
        Column("transfers", Unit.MICROSECONDS, lambda unit: values.transfer_us[unit]),
        Column("bytes", Unit.BYTES, lambda unit: values.memory_bytes[unit]),
    ]
    unused = [name for unit, name in enumerate(graph.units) if unit not in chain]
    return with_unused(table("Parts", columns, chain, most=len(chain)), unused, at=1)


PRESENTER = PartitionPresenter()

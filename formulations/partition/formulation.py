"""Convex partitions of a layer graph as a formulation: what the rest of gapless knows about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from ..demands import Demand
from ..errors import MalformedPlanError
from ..formulation import Formulation, of_tables
from ..model import Encoded
from ..network import LARGEST_GRAPH
from ..partitions import Partition
from ..placed_layers import chunks_of_layers, too_full, units_of_layers
from ..plan import Plan
from ..problem import Problem
from ..scores import Violation, shared_cores
from ..terms import PlanNumbers
from .encoding import encode_parts
from .operation import PartitionOperation
from .quantities import QUANTITIES, TERMS, PartValues
from .tables import Code, LayerGraph, build_graph, chain_of, partition_of
from .view import PartView


def well_formed(graph: LayerGraph, plan: Plan) -> Code:
    """Return the unit of each layer."""
    code, wrong = units_of_layers(plan, graph)
    if not wrong and chain_of(graph, code) is None:
        wrong.append(Violation(rule="convexity", message=_circle(graph, code)))
    if wrong:
        raise MalformedPlanError(plan, wrong)
    return tuple(code)


def plan_of(graph: LayerGraph, code: Code) -> Plan:
    """Return a plan by name: for each unit its layers, as runs of the given order."""
    return Plan(chunks=chunks_of_layers(code, graph))


def _circle(graph: LayerGraph, code: list[int]) -> str:
    """Say which units wait for each other: two of them, or all that are left."""
    waits = {(code[a], code[b]): (a, b) for a, b in graph.edges if code[a] != code[b]}
    for (one, other), (layer, later) in waits.items():
        if (other, one) in waits:
            back, forth = waits[other, one]
            return (
                f"parts are not convex: {graph.units[other]!r} needs {graph.layers[layer]!r} of "
                f"{graph.units[one]!r} for {graph.layers[later]!r}, and {graph.units[one]!r} needs "
                f"{graph.layers[back]!r} of {graph.units[other]!r} for {graph.layers[forth]!r}"
            )
    names = ", ".join(sorted({repr(graph.units[unit]) for pair in waits for unit in pair}))
    return f"parts cannot be ordered: units {names} wait for each other in a circle"


def broken(values: PartValues) -> Iterator[Violation]:
    """Yield layers that units cannot run, divided colours, conflicts and capacities that a plan breaks."""
    graph, code = values.graph, values.code
    for layer, unit in enumerate(code):
        if graph.layer_us[layer][unit] is None:
            text = f"unit {graph.units[unit]!r} cannot run layer {graph.layers[layer]!r}"
            yield Violation(rule="support", message=text)
    for colour in graph.together:
        if len({code[layer] for layer in colour}) > 1:
            named = ", ".join(repr(graph.layers[layer]) for layer in colour[:5])
            units = ", ".join(sorted({repr(graph.units[code[layer]]) for layer in colour}))
            yield Violation(rule="colour", message=f"layers {named} belong together, but are on {units}")
    yield from shared_cores(values.busy_us, graph.exclusive, graph.units)
    yield from too_full(values.memory_bytes, graph)


def count_codes(graph: LayerGraph) -> int:
    """Return an upper bound on the number of partitions."""
    return int(graph.unit_count**graph.layer_count)


def all_codes(graph: LayerGraph) -> Iterator[Code]:
    """Yield every partition whose parts can be ordered."""
    before: list[list[int]] = [[] for _ in graph.layers]
    for layer, later in graph.edges:
        low, high = sorted((layer, later))
        before[high].append(low if layer == low else ~low)
    yield from _extended(graph, before, [], [0] * graph.unit_count)


def _extended(
    graph: LayerGraph, before: list[list[int]], code: list[int], reached: list[int]
) -> Iterator[Code]:
    """Yield all that begin with some units.

    `before`: for each layer the layers with a smaller index that it has an edge with; ~i: the edge goes to i.
    `reached`: for each unit the units that its part comes before, directly or not, as bits.
    """
    if len(code) == graph.layer_count:
        yield tuple(code)
        return
    for unit in range(graph.unit_count):
        own = list(reached)
        for other in before[len(code)]:
            source, target = (code[other], unit) if other >= 0 else (unit, code[~other])
            if source != target:
                more = own[target] | 1 << target
                own = [
                    each | more if index == source or each >> source & 1 else each
                    for index, each in enumerate(own)
                ]
        if not any(own[index] >> index & 1 for index in range(graph.unit_count)):
            code.append(unit)
            yield from _extended(graph, before, code, own)
            code.pop()


def near_codes(graph: LayerGraph, code: Code) -> Iterator[Code]:
    """Yield partitions in which one block is on another unit, or two units are in each other's place."""
    units = range(graph.unit_count)
    for block in graph.blocks.members:
        for unit in units:
            if unit != code[block[0]]:
                moved = list(code)
                for layer in block:
                    moved[layer] = unit
                if chain_of(graph, moved) is not None:
                    yield tuple(moved)
    for one in units:
        for other in range(one + 1, graph.unit_count):
            swap = {one: other, other: one}
            if one in code or other in code:
                yield tuple(swap.get(unit, unit) for unit in code)


class PartitionFormulation(Formulation[LayerGraph, Code]):
    """One network as an endless stream, its graph in convex parts, at most one for each unit."""

    name: ClassVar[str] = "partition"
    label: ClassVar[str] = "problems of convex parts"
    data_key: ClassVar[str | None] = "partition"
    data_type: ClassVar[type | None] = Partition
    terms = TERMS
    quantities = QUANTITIES
    limits: ClassVar[tuple[str, ...]] = (
        "max_period_us",
        "min_units",
        "max_units",
        "max_memory_bytes",
        "max_unit_memory_bytes",
    )
    one_network: ClassVar[bool] = True
    operation = PartitionOperation()
    most_layers: ClassVar[int] = LARGEST_GRAPH
    incomplete: ClassVar[str] = (
        "every layer can run somewhere, but no parts cover the network: colours, memory, or units that share "
        "cores are in the way"
    )
    tables = staticmethod(build_graph)
    view = of_tables(PartView)
    code = of_tables(well_formed)
    plan = of_tables(plan_of)
    numbers = of_tables(PartValues)
    count = of_tables(count_codes)
    codes = of_tables(all_codes)
    neighbours = of_tables(near_codes)

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield what does not go with the units and the network."""
        if len(problem.networks) != 1:
            yield f"parts are of one network, the problem has {len(problem.networks)}"
        else:
            yield from partition_of(problem).mismatches(problem.platform, problem.networks[0])

    def demands(self, problem: Problem) -> list[Demand]:
        """Return that layers of one colour stay together."""
        count = len(partition_of(problem).colours)
        if not count:
            return []
        text = f"layers of one colour are in one part; there are {count} colours"
        return [Demand(name="colours", text=text, without=_without_colours)]

    def broken(self, problem: Problem, code: Code, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield support, colours, conflicts and capacities that a plan breaks."""
        assert isinstance(numbers, PartValues)
        return broken(numbers)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return by unit its load, what of it are transfers, and the bytes of its layers."""
        assert isinstance(numbers, PartValues)
        found = {name: getattr(numbers, name) for name in ("busy_us", "transfer_us", "memory_bytes")}
        return {name: tuple(map(row.get, range(numbers.graph.unit_count))) for name, row in found.items()}

    def rate(self, numbers: PlanNumbers) -> float:
        """Return the requests a second."""
        assert isinstance(numbers, PartValues)
        return 1e6 / max(1, numbers.period_us)

    def key(self, problem: Problem, code: Code) -> tuple[int, ...]:
        """Return the unit of each layer."""
        return code

    def plan_class(self, problem: Problem) -> str:
        """Return that units do not get two parts."""
        return "plans of convex parts, at most one per unit"

    def outside(self, problem: Problem) -> str:
        """Return that units could be used twice."""
        return "Plans with several parts on a unit are not looked at; one of them may do."

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Code | None = None
    ) -> Encoded[Code]:
        """Return the order encoding (`encoding.py`)."""
        return encode_parts(problem, top=top, known=known)


def _without_colours(problem: Problem) -> Problem:
    return replace(problem, data=replace(partition_of(problem), colours=()))


FORMULATION = PartitionFormulation()
"""Convex parts."""

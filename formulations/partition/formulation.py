"""Convex partitions of a layer graph as a formulation: what the rest of gapless knows about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from ..demands import Demand
from ..formulation import Formulation
from ..model import Encoded
from ..network import LARGEST_GRAPH
from ..partitions import Partition
from ..plan import Plan
from ..problem import Problem
from ..scores import Violation
from ..terms import PlanNumbers
from . import judge
from .encoding import encode_parts
from .operation import PartitionOperation
from .quantities import QUANTITIES, TERMS, PartValues
from .space import all_codes, count_codes, near_codes
from .tables import Code, LayerGraph, build_graph, graph_of, partition_of
from .view import PartView


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

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield what does not go with the units and the network."""
        if len(problem.networks) != 1:
            yield f"parts are of one network, the problem has {len(problem.networks)}"
        else:
            yield from partition_of(problem).mismatches(problem.platform, problem.networks[0])

    def tables(self, problem: Problem) -> LayerGraph:
        """Return the tables of the graph."""
        return build_graph(problem)

    def view(self, problem: Problem) -> PartView:
        """Return what rules can say."""
        return PartView(graph_of(problem))

    def demands(self, problem: Problem) -> list[Demand]:
        """Return that layers of one colour stay together."""
        count = len(partition_of(problem).colours)
        if not count:
            return []
        text = f"layers of one colour are in one part; there are {count} colours"
        return [Demand(name="colours", text=text, without=_without_colours)]

    def code(self, problem: Problem, plan: Plan) -> Code:
        """Return the unit of each layer."""
        return judge.well_formed(graph_of(problem), plan)

    def plan(self, problem: Problem, code: Code) -> Plan:
        """Return the layers of each unit, as runs of the given order."""
        return judge.plan_of(graph_of(problem), code)

    def numbers(self, problem: Problem, code: Code) -> PartValues:
        """Return the numbers of a plan."""
        return PartValues(graph_of(problem), code)

    def broken(self, problem: Problem, code: Code, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield support, colours, conflicts and capacities that a plan breaks."""
        assert isinstance(numbers, PartValues)
        return judge.broken(numbers)

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

    def count(self, problem: Problem) -> int:
        """Return an upper bound on the number of plans."""
        return count_codes(graph_of(problem))

    def codes(self, problem: Problem) -> Iterator[Code]:
        """Yield every plan."""
        return all_codes(graph_of(problem))

    def neighbours(self, problem: Problem, code: Code) -> Iterator[Code]:
        """Yield plans in which one block is on another unit."""
        return near_codes(graph_of(problem), code)

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Code | None = None
    ) -> Encoded[Code]:
        """Return the order encoding (`encoding.py`)."""
        return encode_parts(problem, top=top, known=known)


def _without_colours(problem: Problem) -> Problem:
    return replace(problem, data=replace(partition_of(problem), colours=()))


FORMULATION = PartitionFormulation()
"""Convex parts."""

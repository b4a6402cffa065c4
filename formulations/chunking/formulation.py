"""Chunking as a formulation: what the rest of gapless knows about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from ..branches import order_words
from ..chain import Chain
from ..energy import unknown_energy
from ..errors import InvalidPlanError
from ..formulation import Difference, Formulation, of_tables
from ..model import Encoded
from ..passages import Passage
from ..plan import Plan
from ..problem import Problem
from ..scores import Violation
from ..terms import PlanNumbers
from . import judge
from .encoding import Parts, encode_chunks
from .operation import ChunkingOperation
from .quantities import QUANTITIES, TERMS, PlanValues
from .rules import differs
from .space import all_parts, count_parts
from .tables import build_tables, chain_of
from .view import PlanView


def plan_distance(first: Plan, second: Plan) -> int:
    """Return how many layers two plans of one network place on different units.

    0 for equal plans, at most the number of layers; a metric (the Hamming distance of the placements).
    """
    names, layers = {chunk.network for chunk in first.chunks + second.chunks}, first.chunks[-1].stop
    if len(names) > 1 or second.chunks[-1].stop != layers or first.order or second.order:
        raise InvalidPlanError(f"[{first}] and [{second}] are not plans of one network: no distance")
    pairs = ((a, b) for a in first.chunks for b in second.chunks if a.unit == b.unit)
    return layers - sum(max(0, min(a.stop, b.stop) - max(a.start, b.start)) for a, b in pairs)


class Chunking(Formulation[Chain, Parts]):
    """One network as an endless stream: consecutive layers on one unit each, every unit at most once."""

    name: ClassVar[str] = "chunking"
    label: ClassVar[str] = "problems without a workload"
    terms = TERMS
    tie_break: ClassVar[tuple[str, ...]] = ("period", "gapness", "latency")
    quantities = QUANTITIES
    co_run_costs: ClassVar[bool] = True
    one_network: ClassVar[bool] = True
    recurrent: ClassVar[bool] = True
    correctable: ClassVar[bool] = True
    operation = ChunkingOperation()
    difference = Difference(between=plan_distance, rule=lambda plan, least: differs(plan, at_least=least))
    incomplete: ClassVar[str] = (
        "every layer can run somewhere, but no sequence of chunks, at most one on each unit, "
        "covers the network"
    )
    unknown = staticmethod(unknown_energy)
    tables = staticmethod(build_tables)
    code = of_tables(judge.well_formed)
    plan = of_tables(Chain.plan)
    numbers = of_tables(PlanValues)
    count = of_tables(count_parts)
    codes = of_tables(all_parts)

    def view(self, problem: Problem) -> PlanView:
        """Return what rules can say."""
        return PlanView(problem.network.layer_names, chain_of(problem))

    def broken(self, problem: Problem, code: Parts, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield cuts, conflicts and capacities that a plan breaks."""
        assert isinstance(numbers, PlanValues)
        return judge.broken(numbers)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return busy time, bubble and bytes by unit."""
        assert isinstance(numbers, PlanValues)
        busy, units = numbers.busy_us, range(numbers.chain.unit_count)
        return {
            "busy_us": tuple(busy.get(unit) for unit in units),
            "bubble_us": tuple(numbers.period_us - busy[u] if u in busy else None for u in units),
            "memory_bytes": tuple(numbers.memory_bytes.get(unit) for unit in units),
        }

    def rate(self, numbers: PlanNumbers) -> float:
        """Return one over the period."""
        return 1e6 / numbers.term("period")

    def key(self, problem: Problem, code: Parts) -> tuple[int, ...]:
        """Return (stop, unit index) of the chunks, first chunk first."""
        return tuple(number for _, stop, unit in code for number in (stop, unit))

    def plan_class(self, problem: Problem) -> str:
        """Return that units are not used twice."""
        return f"plans with at most one chunk per unit{order_words(problem.networks)}"

    def outside(self, problem: Problem) -> str:
        """Return that units could be used twice."""
        return "Plans with several chunks on a unit are not looked at; one of them may do (--passage any)."

    def wider(self, problem: Problem) -> tuple[str, Problem] | None:
        """Return the problem whose units may come again."""
        return "--passage any", problem.with_data(Passage())

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Parts | None = None
    ) -> Encoded[Parts]:
        """Return the encoding by boundaries, or by arcs (`encoding.py`)."""
        return encode_chunks(problem, relaxation=relaxation)


FORMULATION = Chunking()

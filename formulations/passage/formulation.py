"""Passage as a formulation: what differs from chunking where units may have several chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from ..branches import order_words
from ..chain import Chain
from ..chunking import judge
from ..chunking.encoding import Parts, encode_chunks
from ..chunking.formulation import Chunking
from ..chunking.operation import ChunkingOperation
from ..chunking.space import all_parts
from ..chunking.tables import build_tables, chain_of
from ..errors import InvalidInputError
from ..formulation import of_tables
from ..model import Encoded
from ..operation import Line
from ..passages import Passage
from ..plan import Plan, comes_back
from ..problem import Problem
from ..terms import PlanNumbers, Quantity
from .quantities import QUANTITIES, TERMS, PassageValues
from .view import PassageView


def count_parts(chain: Chain) -> int:
    """Return the number of well-formed plans, by dynamic programming over boundaries and last units.

    With N pieces and M units that can run all layers it is M^N: each piece is on some unit.
    """
    units = range(chain.unit_count)
    ways = {chain.cuts[0]: [0] * chain.unit_count}
    for at, stop in enumerate(chain.cuts[1:], start=1):
        start = chain.cuts[at - 1]
        before = ways[start]
        entered = [1] * chain.unit_count if at == 1 else [sum(before)] * chain.unit_count
        ways[stop] = [entered[unit] if chain.runs(start, stop, unit) else 0 for unit in units]
    return sum(ways[chain.cuts[-1]])


class PassageOperation(ChunkingOperation):
    """One endless stream whose requests come back to units."""

    def rivals(self, problem: Problem) -> Iterator[Problem]:
        """Yield the problem with one chunk per unit, and that with pipelines side by side."""
        yield problem.with_data(None)
        yield from self.several(problem)

    def lines(self, problem: Problem, plan: Plan) -> tuple[Line, ...]:
        """Return the chunks of the plan, in order; refuse one whose items come back to a server."""
        if comes_back(plan.chunks, problem.platform):
            raise InvalidInputError(
                f"the plan [{plan}] cannot be a task of a stream, because its items come back to a unit: a "
                "device goes on to the next task when it has had its last item once; plan with --passage once"
            )
        return super().lines(problem, plan)


class AnyPassage(Chunking):
    """One network as an endless stream: consecutive layers on one unit each, which may come again.

    The period is the largest load: a cyclic schedule with it exists if enough requests are on their way
    (docs: formulations, passage).
    """

    name: ClassVar[str] = "passage"
    label: ClassVar[str] = "problems whose units may have several chunks"
    data_key: ClassVar[str | None] = "passage"
    data_type: ClassVar[type | None] = Passage
    terms = TERMS
    tie_break: ClassVar[tuple[str, ...]] = ("period", "hops", "latency")
    quantities = QUANTITIES
    unmodelled: ClassVar[frozenset[str]] = frozenset((Quantity.STREAM_LATENCY, Quantity.IN_FLIGHT))
    operation = PassageOperation()
    incomplete: ClassVar[str] = "every layer can run somewhere, but no sequence of chunks covers the network"
    numbers = of_tables(PassageValues)
    count = of_tables(count_parts)

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield that there are several networks."""
        if len(problem.networks) != 1:
            yield f"a passage is that of one network, the problem has {len(problem.networks)}"

    def tables(self, problem: Problem) -> Chain:
        """Return the tables of the network; units of one resource take turns.

        Not where costs depend on the set of units in use: there is none for units of which one waits.
        """
        chain = build_tables(problem)
        return chain if problem.by_set else chain.taking_turns(problem.platform.resources)

    def view(self, problem: Problem) -> PassageView:
        """Return what rules can say."""
        return PassageView(problem.network.layer_names, chain_of(problem))

    def code(self, problem: Problem, plan: Plan) -> Parts:
        """Return the chunks by index, in order of their layers."""
        return judge.well_formed(chain_of(problem), plan, once=False)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return busy time, bubble and bytes by unit; a unit is idle while no unit of its resource works."""
        assert isinstance(numbers, PassageValues)
        chain, loads = numbers.chain, numbers.loads_us
        bubbles = (
            numbers.period_us - loads[first] if unit in numbers.busy_us else None
            for unit, first in enumerate(chain.resources)
        )
        return {**super().columns(numbers), "bubble_us": tuple(bubbles)}

    def plan_class(self, problem: Problem) -> str:
        """Return that units may come again."""
        return f"plans with any number of chunks per unit{order_words(problem.networks)}"

    def outside(self, problem: Problem) -> str:
        """Return nothing: chunks of the given order on single units are all there is."""
        return ""

    def wider(self, problem: Problem) -> None:
        """Return nothing: this is the wider class."""

    def codes(self, problem: Problem) -> Iterator[Parts]:
        """Yield every plan."""
        return all_parts(chain_of(problem), once=False)

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Parts | None = None
    ) -> Encoded[Parts]:
        """Return the encoding by boundaries, or by arcs (`chunking/encoding.py`)."""
        return encode_chunks(problem, relaxation=relaxation, once=False)


FORMULATION = AnyPassage()
"""How plans for one network run whose units may have several chunks."""

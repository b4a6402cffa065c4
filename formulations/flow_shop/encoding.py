"""The exact formulations of workloads: which parts a problem needs, put together.

========= ================================================ ===============================
name      asked for                                        parts
========= ================================================ ===============================
slicing   nothing about times or order (P1)                cuts
ordering  the order alone (P3)                             cuts, order
alignment times, the order being given (P2)                cuts, asynchronous clocks
columns   times in the paper's columns                     cuts, order, columns
joint     times, the order being free                      cuts, order, asynchronous clocks
========= ================================================ ===============================

Slowdown and memory over time are added where the problem has them. Every encoding is a relaxation: each
plan that the judge accepts is a solution whose terms are at most the judge's. Mostly they are equal;
the solvers' search (`solvers/flow_shop/exact.py`) closes what is left plan by plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ..expr import BoolExpr, VariableKey, any_of
from ..model import Constraint, Model, Values
from ..problem import Problem
from .alignment import AsynchronousClocks
from .clocks import Clocks
from .columns import ColumnClocks
from .needs import Needs, needs_of
from .occupancy import Occupancy
from .ordering import FixedOrder, Pattern, Places, Precedences, RankedOrder, order_definitions
from .quantities import FlowQuantity, WorkloadValues
from .slicing import Slicing
from .slowdown import Lengths
from .tables import FlowShop, Schedule
from .totals import Totals
from .workload import Execution


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedWorkload:
    """A problem with a workload as a model, and the way back from its solutions to schedules.

    Attributes
    ----------
    name
        Name of the formulation.
    model
        The model.
    alike
        Groups of equal requests, which the model wants to be served in this order.
    complete
        Whether every valid plan is a solution; otherwise a best one is.
    decode
        Schedule of a solution.
    exclude
        The condition that a schedule is another one.
    assign
        The value of every variable of the model on a schedule: a complete hint.
    """

    name: str
    model: Model
    alike: tuple[tuple[int, ...], ...]
    complete: bool
    decode: Callable[[Values], Schedule]
    exclude: Callable[[Schedule], BoolExpr]
    assign: Callable[[Schedule], Mapping[VariableKey, int]]

    def settle(self, schedule: Schedule) -> Schedule:
        """Return an equally good schedule that the model admits: among equal requests, the first first."""
        order, cuts = list(schedule.order), list(schedule.cuts)
        for group in self.alike:
            served = [request for request in schedule.order if request in group]
            for request, stands_for in zip(group, served, strict=True):
                order[schedule.order.index(stands_for)] = request
                cuts[request] = schedule.cuts[stands_for]
        return Schedule(tuple(order), tuple(cuts))


def encode_workload(problem: Problem, *, top: int, horizon_us: int) -> EncodedWorkload:
    """Return the formulation of a problem with a workload.

    Parameters
    ----------
    problem
        The problem.
    top
        How many plans are wanted; for one, plans that differ by the order of equal requests only need
        not all be solutions.
    horizon_us
        A time by which every plan of interest is done, at most `FlowShop.horizon_us`.
    """
    needs = needs_of(problem)
    one = top == 1 and not problem.opaque_rules
    return _Parts(problem, needs, one_plan=one, horizon_us=horizon_us).encoded()


class _Parts:
    """The parts of one encoding."""

    def __init__(self, problem: Problem, needs: Needs, *, one_plan: bool, horizon_us: int) -> None:
        shop = problem.flow_shop
        self._problem, self._needs, self._shop = problem, needs, shop
        self._alike = _alike(shop, needs) if one_plan else ()
        self._shared = one_plan and _separable(problem, needs)
        self._pattern = self._shared and needs.order and shop.order_is_free
        block_of = [shop.chain_of.index(chain) for chain in shop.chain_of]
        self.slicing = Slicing(
            shop, exact=needs.exact, block_of=block_of if self._shared else range(shop.request_count)
        )
        self.lengths = Lengths(self.slicing, exact=needs.exact, horizon_us=horizon_us)
        order_matters = needs.clocks or needs.order or not one_plan
        self._free = order_matters and shop.order_is_free
        self._complete = horizon_us == shop.horizon_us and self._free == shop.order_is_free
        self.order, self.clocks = self._order_and_clocks(horizon_us)
        self.occupancy = self._occupancy()
        self.totals = Totals(problem, needs, self.slicing, self.clocks)

    def _order_and_clocks(self, horizon_us: int) -> tuple[RankedOrder | Pattern, Clocks | None]:
        shop, needs, free = self._shop, self._needs, self._free
        fixed = FixedOrder(shop)
        if self._pattern:
            return Pattern(shop), None
        if not needs.clocks:
            return (Places(shop, self._alike) if free else fixed), None
        if shop.workload.execution is Execution.COLUMNS:
            places = Places(shop, self._alike) if free else fixed
            columns = ColumnClocks(
                self.slicing, places, self.lengths, exact=needs.exact, horizon_us=horizon_us
            )
            return places, columns
        order = Precedences(shop, self._alike) if free else fixed
        clocks = AsynchronousClocks(
            self.slicing, order, self.lengths, exact=needs.exact, horizon_us=horizon_us
        )
        return order, clocks

    def _occupancy(self) -> Occupancy | None:
        asked = self._needs.quantities & {FlowQuantity.PEAK, FlowQuantity.MEMORY_WHILE}
        if not asked or self.clocks is None:
            return None
        return Occupancy(self.slicing, self.clocks, self._needs.quantities)

    @property
    def name(self) -> str:
        """Name of the formulation."""
        if isinstance(self.clocks, ColumnClocks):
            return "columns"
        if self.clocks is not None:
            return "alignment" if isinstance(self.order, FixedOrder) else "joint"
        return "ordering" if self._needs.order else "slicing"

    def encoded(self) -> EncodedWorkload:
        """Return the encoding."""
        quantities = self._needs.quantities
        definitions = {
            **self.slicing.definitions(quantities),
            **order_definitions(self._shop, self.order, quantities),
            **self.totals.definitions(),
        }
        rows = [*self._rows(), *self.totals.constraints()]
        if self.occupancy is not None:
            definitions |= self.occupancy.definitions()
            rows += _named("memory", self.occupancy.constraints())
        # Last: the other parts may have asked for literals of starts and of units in use.
        constraints = (*rows, *self.slicing.constraints)
        return EncodedWorkload(
            name=self.name,
            model=Model(constraints=constraints, definitions=definitions),
            alike=self._alike if not isinstance(self.order, FixedOrder | Pattern) else (),
            complete=self._complete and not (self._shared or self._alike),
            decode=self._decode,
            exclude=self._exclude,
            assign=self._assign,
        )

    def _decode(self, values: Values) -> Schedule:
        return Schedule(self.order.decode(values), self.slicing.decode(values))

    def _exclude(self, schedule: Schedule) -> BoolExpr:
        return any_of((*self.order.differs(schedule.order), *self.slicing.differs(schedule.cuts)))

    def _assign(self, schedule: Schedule) -> dict[VariableKey, int]:
        values = WorkloadValues(self._shop, schedule)
        parts = (self.slicing, self.order, self.totals)
        found = {key: value for part in parts for key, value in part.assign(values).items()}
        if self.clocks is not None:
            found |= self.clocks.assign(values)
            found |= self.lengths.assign(values)
        if self.occupancy is not None:
            found |= self.occupancy.assign(values)
        return found

    def _rows(self) -> Iterator[Constraint]:
        yield from _named("order", self.order.constraints())
        if self.clocks is not None:
            yield from _named("clocks", self.clocks.constraints())
            yield from _named("slowdown", self.lengths.constraints(self.clocks))


def _named(name: str, rows: Iterator[BoolExpr]) -> list[Constraint]:
    return [Constraint(name=name, expr=row) for row in rows]


def _separable(problem: Problem, needs: Needs) -> bool:
    """Return whether cuts and order do not touch, nor the cuts of one request those of another.

    Then equal requests can be cut alike, and the order is no more than a pattern.
    """
    apart = {
        FlowQuantity.BOTTLENECK,
        FlowQuantity.WORK,
        FlowQuantity.CONTENTION,
        FlowQuantity.DISPLACEMENT,
    }
    return needs.quantities <= apart and not problem.expression_rules


def _alike(shop: FlowShop, needs: Needs) -> tuple[tuple[int, ...], ...]:
    """Return the groups of requests that nothing tells apart."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for request, facts in enumerate(shop.workload.requests):
        if request not in needs.named:
            kind = (facts.network, facts.arrival_us, facts.deadline_us)
            groups.setdefault(kind, []).append(request)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)

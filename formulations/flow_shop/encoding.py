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
the solvers' search (`solvers/exact/search.py`) closes what is left plan by plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..errors import UnsupportedFeatureError
from ..expr import BoolExpr, VariableKey, any_of, variables
from ..model import Constraint, Encoded, Model, Structure, Values
from ..problem import Problem
from ..terms import Quantity
from ..workload import Execution
from .alignment import AsynchronousClocks, ColumnClocks
from .clocks import Clocks
from .needs import Needs, needs_of
from .occupancy import Occupancy
from .ordering import FixedOrder, Pattern, Places, Precedences, RankedOrder, order_definitions
from .slicing import Slicing
from .slowdown import Lengths
from .space import alike, settled
from .tables import Schedule, shop_of
from .totals import Totals
from .values import WorkloadValues


def encode_workload(problem: Problem, *, top: int, known: Schedule | None = None) -> Encoded[Schedule]:
    """Return the formulation of a problem with a workload.

    `top`: how many plans are wanted; for one, plans that differ by the order of equal requests only need not
    all be solutions. `known`: a valid plan: for one wanted plan, no clock needs to go beyond the time that it
    takes.
    """
    needs = needs_of(problem)
    shop = shop_of(problem)
    asked = {name for rule in problem.expression_rules for name, _ in variables(rule.expr)}
    if Quantity.CONTENTION in asked and shop.contention_by_cuts:
        raise UnsupportedFeatureError(
            "rules about contention are not encoded where the layers of a network differ in their intensity; "
            "native and exhaustive know them",
            {"contention by slice"},
        )
    one = top == 1 and not problem.opaque_rules
    horizon_us = _horizon_us(problem, known if top == 1 else None)
    encoded = _Parts(problem, needs, one_plan=one, horizon_us=horizon_us).encoded()
    if needs.exact or encoded.structure is not Structure.SLOWED:
        return encoded

    def tighter() -> tuple[Constraint, ...]:
        """Return the rows that forbid waiting, too: it can spare others a slowdown."""
        exact = _Parts(problem, replace(needs, exact=True), one_plan=one, horizon_us=horizon_us)
        return exact.encoded().model.constraints

    return replace(encoded, tighter=tighter)


def _horizon_us(problem: Problem, known: Schedule | None) -> int:
    """Return a time by which every plan that is at least as good as a known one is done."""
    shop = shop_of(problem)
    if known is None:
        return shop.horizon_us
    values = WorkloadValues(shop, known)
    latest_us = max(request.arrival_us for request in shop.workload.requests)
    ends = {"makespan": values.makespan_us, "latency": latest_us + values.latency_us}
    return min(shop.horizon_us, ends.get(problem.objective.terms[0], shop.horizon_us))


class _Parts:
    """The parts of one encoding."""

    def __init__(self, problem: Problem, needs: Needs, *, one_plan: bool, horizon_us: int) -> None:
        shop = shop_of(problem)
        self._problem, self._needs, self._shop = problem, needs, shop
        self._alike = alike(shop, needs.named) if one_plan else ()
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
        self.totals = Totals(problem, needs, self.slicing, self.lengths, self.clocks)

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
        asked = self._needs.quantities & {Quantity.PEAK, Quantity.MEMORY_WHILE}
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

    @property
    def _structure(self) -> Structure:
        if self.clocks is None:
            return Structure.INTEGRAL
        return Structure.SLOWED if self._shop.losses.contended else Structure.TIMED

    def encoded(self) -> Encoded[Schedule]:
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
        return Encoded(
            name=self.name,
            model=Model(constraints=constraints, definitions=definitions),
            structure=self._structure,
            complete=self._complete and not (self._shared or self._alike),
            decode=self._decode,
            exclude=self._exclude,
            assign=self._assign,
            settle=self._settle,
        )

    def _settle(self, schedule: Schedule) -> Schedule:
        """Return an equally good schedule that the model admits: among equal requests, the first first."""
        return schedule if isinstance(self.order, FixedOrder | Pattern) else settled(schedule, self._alike)

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
        Quantity.BOTTLENECK,
        Quantity.WORK,
        Quantity.CONTENTION,
        Quantity.DISPLACEMENT,
    }
    if shop_of(problem).contention_by_cuts:
        apart -= {Quantity.CONTENTION}
    return needs.quantities <= apart and not problem.expression_rules

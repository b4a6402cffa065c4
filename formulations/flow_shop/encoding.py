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

from collections.abc import Callable, Iterator
from dataclasses import replace

from ..deployment import Mode
from ..errors import UnsupportedFeatureError
from ..expr import (
    BoolExpr,
    Const,
    Expr,
    IntVar,
    VariableKey,
    all_of,
    any_of,
    count,
    linear,
    max_of,
    variables,
)
from ..limits import limit_rows
from ..loads import gapness
from ..model import Constraint, Encoded, Model, Structure, Values
from ..problem import Problem
from ..terms import Quantity
from ..workload import Execution
from .alignment import AsynchronousClocks, ColumnClocks
from .clocks import Clocks, cells_of
from .occupancy import Occupancy
from .ordering import FixedOrder, Pattern, Places, Precedences, RankedOrder, order_definitions
from .quantities import Needs, idle_excess, needs_of, quantities_of
from .slicing import Slicing
from .slowdown import Lengths
from .space import alike, settled
from .tables import FlowShop, Schedule, shop_of
from .values import WorkloadValues


class Totals:
    """Quantities of a whole plan."""

    def __init__(
        self, problem: Problem, needs: Needs, slicing: Slicing, lengths: Lengths, clocks: Clocks | None
    ) -> None:
        self._problem, self._needs = problem, needs
        self._shop = shop_of(problem)
        self._slicing, self._lengths, self._clocks = slicing, lengths, clocks
        self._variables = quantities_of(self._shop)
        self._requests = range(self._shop.request_count)
        self._units = range(self._shop.unit_count)

    def definitions(self) -> dict[VariableKey, Expr]:
        """Return the definitions of the quantities that are asked for."""
        makers: dict[Quantity, Callable[[], Expr]] = {
            Quantity.PERIOD: self._period,
            Quantity.GAPNESS: self._gapness,
            Quantity.WORK: self._work,
            Quantity.BOTTLENECK: self._bottleneck,
            Quantity.ENERGY: self._energy,
            Quantity.UNITS: lambda: count(map(self._slicing.unit_used, self._units)),
        }
        if self._clocks is not None:
            makers |= {
                Quantity.MAKESPAN: self._clocks.makespan_us,
                Quantity.BUBBLES: self._clocks.bubbles_us,
                Quantity.LATENCY: self._latency,
            }
        found: dict[VariableKey, Expr] = {
            (quantity, ()): make() for quantity, make in makers.items() if quantity in self._needs.quantities
        }
        found |= {(Quantity.BUSY, (unit,)): self._load(unit) for unit in self._units}
        if self._clocks is not None:
            found |= self._of_requests(self._clocks)
        return found

    def _of_requests(self, clocks: Clocks) -> dict[VariableKey, Expr]:
        found: dict[VariableKey, Expr] = {}
        for request in self._requests:
            found[Quantity.FINISH, (request,)] = clocks.finish_us(request)
            found[Quantity.START, (request,)] = self._start(request)
        if Quantity.BESIDE in self._needs.quantities:
            pairs = ((i, j) for i in self._requests for j in self._requests if i < j)
            found |= {(Quantity.BESIDE, (i, j)): self._beside(clocks, i, j) for i, j in pairs}
        return found

    def _load(self, unit: int) -> Expr:
        return linear((1, self._slicing.work_us(request, unit)) for request in self._requests)

    def _work(self) -> Expr:
        return linear((1, self._slicing.work_us(*cell)) for cell in cells_of(self._shop))

    def _bottleneck(self) -> Expr:
        longest = (max_of(self._slicing.work_us(i, unit) for unit in self._units) for i in self._requests)
        return linear((1, chunk) for chunk in longest)

    def _energy(self) -> Expr:
        """Return the energy; of a stream with slowdown what it is at least, without what slowdown adds."""
        powers, streams = self._shop.powers, self._shop.workload.mode is Mode.STREAM
        if powers is None:
            return Const(0)
        length = self._slicing.work_us if streams else lambda *cell: self._lengths.length_us(cell)
        drawn = ((powers.extra_mw[cell[1]], length(*cell)) for cell in cells_of(self._shop))
        whole = self._variables.number(Quantity.PERIOD if streams else Quantity.MAKESPAN)
        return linear([*drawn, (powers.idle_mw, whole)])

    def _latency(self) -> Expr:
        arrivals = sum(request.arrival_us for request in self._shop.workload.requests)
        variables = (self._variables.number(Quantity.FINISH, request) for request in self._requests)
        return linear(((1, finish) for finish in variables), -arrivals)

    def _gapness(self) -> Expr:
        loads = [self._load(unit) for unit in self._units]
        most = [self._variables.number(Quantity.BUSY, unit).high for unit in self._units]
        return gapness(max_of(loads), loads, [self._slicing.unit_used(unit) for unit in self._units], most)

    def _period(self) -> Expr:
        """Return the largest load, or a number that is at least that where only the simulation tells."""
        if not _period_is_played(self._shop):
            return max_of(self._load(unit) for unit in self._units)
        return IntVar("period", (), 0, self._variables.number(Quantity.PERIOD).high)

    def _start(self, request: int) -> IntVar:
        return IntVar("begin", (request,), 0, self._shop.horizon_us)

    def _beside(self, clocks: Clocks, one: int, other: int) -> BoolExpr:
        """Return "chunks of both run at the same time"."""
        pairs = (((one, k), (other, v)) for k in self._units for v in self._units if k != v)
        return any_of(
            all_of(
                (
                    self._slicing.used(*a),
                    self._slicing.used(*b),
                    clocks.start_us(a) + 1 <= clocks.end_us(b),
                    clocks.start_us(b) + 1 <= clocks.end_us(a),
                )
            )
            for a, b in pairs
        )

    def constraints(self) -> Iterator[Constraint]:
        """Yield what totals mean, and what the problem demands."""
        for row in self._meanings():
            yield Constraint(name="totals", expr=row)
        yield from self._demands()

    def _meanings(self) -> Iterator[BoolExpr]:
        quantities = self._needs.quantities
        if Quantity.PERIOD in quantities and _period_is_played(self._shop):
            yield from (self._period() >= self._load(unit) for unit in self._units)
            if self._shop.workload.task_slots == 1:
                yield self._period() >= self._work()
        if self._clocks is None:
            return
        if Quantity.BUBBLES in quantities:
            yield from self._clocks.spans()
        if Quantity.START in quantities:
            for request in self._requests:
                yield from self._first(self._clocks, request)

    def _first(self, clocks: Clocks, request: int) -> Iterator[BoolExpr]:
        """Yield "a request begins with its earliest chunk"."""
        begin, cells = self._start(request), [(request, unit) for unit in self._units]
        for cell in cells:
            yield self._slicing.used(*cell).implies(begin <= clocks.start_us(cell))
        yield any_of(self._slicing.used(*cell) & (begin >= clocks.start_us(cell)) for cell in cells)

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every variable on a schedule."""
        found: dict[VariableKey, int] = {}
        if Quantity.PERIOD in self._needs.quantities:
            found["period", ()] = values.period_us
        if Quantity.START in self._needs.quantities:
            found |= {("begin", (i,)): start for i, start in enumerate(values.start_us)}
        return found

    def _demands(self) -> Iterator[Constraint]:
        for name, expr in self._limits():
            yield Constraint(name=name, expr=expr)
        for index, request in enumerate(self._shop.workload.requests):
            if request.deadline_us is not None:
                latest = request.arrival_us + request.deadline_us
                yield Constraint(
                    name="deadline", expr=self._variables.number(Quantity.FINISH, index) <= latest
                )
        capacity = self._shop.chains[0].device_memory
        if capacity is not None and Quantity.PEAK in self._needs.quantities:
            peak = self._variables.number(Quantity.PEAK)
            yield Constraint(name="device_memory", expr=peak <= capacity)
        for rule in self._problem.expression_rules:
            yield Constraint(name=rule.name, expr=rule.expr)

    def _limits(self) -> Iterator[tuple[str, BoolExpr]]:
        """Yield the filters in use as conditions."""
        limits, total = self._problem.limits, self._variables.number
        if (most_us := limits.max_request_latency_us) is not None:
            for index, request in enumerate(self._shop.workload.requests):
                yield "max_request_latency_us", total(Quantity.FINISH, index) <= request.arrival_us + most_us
        others: dict[str, Callable[[int], BoolExpr | None]] = {
            "min_balance_permille": lambda least: (
                1000 * total(Quantity.GAPNESS) <= (1000 - least) * total(Quantity.PERIOD)
            ),
            "min_utilisation_permille": lambda least: idle_excess(self._shop, 1000 - least) <= 0,
        }
        bounded = {"min_units", "max_units"} & limits.in_use().keys()
        used = count(map(self._slicing.unit_used, self._units)) if bounded else None  # needs rows of its own
        yield from limit_rows(limits, total, used, others)


def _period_is_played(shop: FlowShop) -> bool:
    """Return whether only the simulation tells the period (`WorkloadValues.period_us`)."""
    workload = shop.workload
    free = workload.execution is Execution.ASYNCHRONOUS and workload.task_slots is None
    return workload.mode is Mode.STREAM and not (free and not shop.losses.contended)


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

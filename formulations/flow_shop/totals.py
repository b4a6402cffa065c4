"""Totals of a workload over the parts of its encoding, and what the problem demands of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..deployment import Mode
from ..expr import BoolExpr, Const, Expr, IntVar, VariableKey, all_of, any_of, count, linear, max_of
from ..limits import limit_rows
from ..loads import gapness
from ..model import Constraint
from ..problem import Problem
from ..terms import Quantity
from ..workload import Execution
from .clocks import Clocks, cells_of
from .needs import Needs
from .quantities import idle_excess, quantities_of
from .slicing import Slicing
from .slowdown import Lengths
from .tables import FlowShop, shop_of
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
        yield from limit_rows(limits, total, count(map(self._slicing.unit_used, self._units)), others)


def _period_is_played(shop: FlowShop) -> bool:
    """Return whether only the simulation tells the period (`WorkloadValues.period_us`)."""
    workload = shop.workload
    free = workload.execution is Execution.ASYNCHRONOUS and workload.task_slots is None
    return workload.mode is Mode.STREAM and not (free and not shop.losses.contended)

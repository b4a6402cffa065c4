"""Definitions that every encoding of chunks shares: totals of a plan, filters, objective terms.

An encoding says what `on`, `uses`, `cut`, `busy_us` and `memory_bytes` are; the totals follow. They
are written so that a small value never needs more than "at least" conditions: each `Max` stands where
smaller is better, which keeps the linear relaxations of the solvers tight and free of choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..chain import Chain
from ..expr import BoolExpr, Const, Expr, VariableKey, any_of, count, linear, max_of
from ..expr import variables as find_variables
from ..limits import Limits, limit_rows
from ..loads import gapness, negated
from ..model import Constraint
from ..problem import Problem
from ..terms import Quantities, Quantity, Term
from .tables import chain_of


def total_definitions(
    chain: Chain, variables: Quantities, hops: Expr, peak_bytes: Expr | None = None, *, once: bool = True
) -> dict[VariableKey, Expr]:
    """Return the definitions of the totals of a plan over `uses`, `busy_us` and `memory_bytes`.

    `hops`: the number of borders between chunks; `peak_bytes`: a definition of the peak that is tighter than
    the sum of the units' memory, or None; `once`: no unit has several chunks, so that nobody waits.
    """
    units = range(chain.unit_count)
    busy = [variables.number(Quantity.BUSY, unit) for unit in units]
    used = [variables.truth(Quantity.USES, unit) for unit in units]
    pools = chain.pools.values()
    loads = [busy[own[0]] if len(own) == 1 else linear((1, busy[unit]) for unit in own) for own in pools]
    uses = [used[own[0]] if len(own) == 1 else any_of(used[unit] for unit in own) for own in pools]
    most = [sum(busy[unit].high for unit in own) for own in pools]
    period = variables.number(Quantity.PERIOD)
    latency = linear((1, load) for load in busy)
    defined = {
        Quantity.PERIOD: max_of(loads),
        Quantity.LATENCY: latency,
        Quantity.BUBBLES: _bubbles(period, variables.number(Quantity.LATENCY), uses, max(most)),
        Quantity.PAPER_GAPNESS: period + max_of(negated(loads, uses, most)),
        Quantity.GAPNESS: gapness(period, loads, uses, most),
        Quantity.PEAK: linear((1, variables.number(Quantity.MEMORY, unit)) for unit in units),
        Quantity.UNITS: count(used),
        Quantity.HOPS: hops,
    }
    if chain.powers is not None:
        drawn = [*zip(chain.powers.extra_mw, busy, strict=True), (chain.powers.idle_mw, period)]
        defined[Quantity.ENERGY] = linear(drawn)
    if once:
        defined[Quantity.STREAM_LATENCY] = latency
        defined[Quantity.IN_FLIGHT] = _fewest_in_flight(chain, variables)
    if peak_bytes is not None:
        defined[Quantity.PEAK] = peak_bytes
    return {(quantity, ()): expr for quantity, expr in defined.items()}


def _bubbles(period: Expr, latency: Expr, uses: Sequence[BoolExpr], most: int) -> Expr:
    """Return resources in use * period - latency without a product of variables.

    With c of them, c P is the largest of k P - k B [c < k] over k = 1..M, for any B that is at least P.
    """
    used = count(uses)
    whole = max_of(linear([(k, period), (k * most, used >= k)], -k * most) for k in range(1, len(uses) + 1))
    return whole - latency


def _within_periods(chain: Chain, variables: Quantities, periods: int) -> BoolExpr:
    """Return "a request that never waits takes at most this number of periods"."""
    latency = variables.number(Quantity.LATENCY)
    busy = [variables.number(Quantity.BUSY, unit) for unit in range(chain.unit_count)]
    loads = (linear((1, busy[unit]) for unit in own) for own in chain.pools.values())
    return any_of(latency <= periods * load for load in loads)


def _fewest_in_flight(chain: Chain, variables: Quantities) -> Expr:
    """Return how many requests are on their way where none waits: 1 + sum over k of [latency > k periods].

    The loads of M units, or resources, are together at most M periods.
    """
    most = len(chain.pools)
    return most - count(_within_periods(chain, variables, periods) for periods in range(1, most))


def _least_waits(problem: Problem, chain: Chain, variables: Quantities) -> Iterator[Constraint]:
    """Yield lower bounds on what the model does not define, where it is asked for."""
    asked = {problem.formulation.terms[term].field for term in problem.ranking}
    asked |= {name for rule in problem.expression_rules for name, _ in find_variables(rule.expr)}
    least = {
        Quantity.STREAM_LATENCY: variables.number(Quantity.LATENCY),
        Quantity.IN_FLIGHT: _fewest_in_flight(chain, variables),
    }
    for quantity, bound in least.items():
        if quantity in problem.formulation.unmodelled & asked:
            yield Constraint(name=str(quantity), expr=bound <= variables.number(quantity))


def demands(problem: Problem) -> tuple[Constraint, ...]:
    """Return the limits, the capacity of the device and the user's rules, over the quantities of a plan."""
    chain = chain_of(problem)
    variables = problem.formulation.variables(problem)
    excess = problem.formulation.terms[Term.IDLE].excess
    assert excess is not None
    limited = _limits(chain, variables, problem.limits, excess)
    found = [Constraint(name=name, expr=expr) for name, expr in limited]
    found += _least_waits(problem, chain, variables)
    if chain.device_memory is not None:
        peak = variables.number(Quantity.PEAK)
        found.append(Constraint(name="device_memory", expr=peak <= chain.device_memory))
    found += (Constraint(name=rule.name, expr=rule.expr) for rule in problem.expression_rules)
    return tuple(found)


def _limits(
    chain: Chain, variables: Quantities, limits: Limits, idle_excess: Callable[[Chain, int], Expr]
) -> Iterator[tuple[str, BoolExpr]]:
    """Yield the filters in use as conditions.

    Where requests wait, those on latencies in the stream let too much pass: that is what finished plans are
    asked for (`Formulation.unmodelled`).
    """
    period, gapness = variables.number(Quantity.PERIOD), variables.number(Quantity.GAPNESS)
    latency = variables.number(Quantity.LATENCY)
    used = count(variables.truth(Quantity.USES, unit) for unit in range(chain.unit_count))
    others: dict[str, Callable[[int], BoolExpr | None]] = {
        "min_balance_permille": lambda least: 1000 * gapness <= (1000 - least) * period,
        "min_utilisation_permille": lambda least: idle_excess(chain, 1000 - least) <= Const(0),
        "max_stream_latency_us": lambda most: latency <= most,
        "max_in_flight": lambda most: (
            _within_periods(chain, variables, most) if most < chain.unit_count else None
        ),
    }
    return limit_rows(limits, variables.number, used, others)


def conflicts(chain: Chain, uses: Sequence[Expr]) -> list[Constraint]:
    """Return "not both" for each pair of units that exclude each other."""
    return [
        Constraint(name="conflict", expr=uses[unit] + uses[other] <= 1)
        for unit in range(chain.unit_count)
        for other in sorted(chain.exclusive[unit])
        if other > unit
    ]

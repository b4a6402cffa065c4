"""Definitions that every encoding of chunks shares: totals of a plan, filters, objective terms.

An encoding says what `on`, `uses`, `cut`, `busy_us` and `memory_bytes` are; the totals follow. They
are written so that a small value never needs more than "at least" conditions: each `Max` stands where
smaller is better, which keeps the linear relaxations of the solvers tight and free of choices.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..chain import Chain
from ..expr import BoolExpr, Const, Expr, VariableKey, count, linear, max_of
from ..model import Constraint
from ..objective import Limits, Term
from ..problem import Problem
from .quantities import TERM_QUANTITY, Quantity, QuantityVariables


def total_definitions(chain: Chain, peak_bytes: Expr | None = None) -> dict[VariableKey, Expr]:
    """Return the definitions of the totals of a plan over `uses`, `busy_us` and `memory_bytes`.

    Parameters
    ----------
    chain
        The tables.
    peak_bytes
        A definition of the peak that is tighter than the sum of the units' memory, or None.
    """
    variables = QuantityVariables(chain)
    units = range(chain.unit_count)
    busy, uses = [variables.busy_us(unit) for unit in units], [variables.uses(unit) for unit in units]
    most = [chain.most_busy_us(unit) for unit in units]
    period = variables.total(Quantity.PERIOD)
    latency = linear((1, load) for load in busy)
    defined = {
        Quantity.PERIOD: max_of(busy),
        Quantity.LATENCY: latency,
        Quantity.BUBBLES: _bubbles(chain, variables),
        Quantity.PAPER_GAPNESS: period + max_of(_negated(busy, uses, most)),
        Quantity.GAPNESS: gapness(period, busy, uses, most),
        Quantity.PEAK: linear((1, variables.memory_bytes(unit)) for unit in units),
    }
    if peak_bytes is not None:
        defined[Quantity.PEAK] = peak_bytes
    return {(quantity, ()): expr for quantity, expr in defined.items()}


def gapness(period: Expr, loads: Sequence[Expr], uses: Sequence[Expr], most: Sequence[int]) -> Expr:
    """Return the largest load minus the smallest one of the units in use.

    Of several units a lonely one has its period: Tmin counts as 0 there.

    Parameters
    ----------
    period
        The largest load.
    loads, uses, most
        Of each unit: its load, whether it is in use, and an upper bound on its load.
    """
    return period + max_of(_negated(loads, uses, most) + _lonely(uses, max(most)))


def _negated(loads: Sequence[Expr], uses: Sequence[Expr], most: Sequence[int]) -> list[Expr]:
    """Return minus the load of each unit, and for units not in use something that is never the largest.

    Their largest is minus Tmin; the period plus it is the gapness (BetterTogether III-D, O1).
    """
    found = []
    for unit, (load, used) in enumerate(zip(loads, uses, strict=True)):
        others = max((bound for other, bound in enumerate(most) if other != unit), default=0)
        found.append(linear([(-1, load), (others, used)], -others))
    return found


def _lonely(uses: Sequence[Expr], most: int) -> list[Expr]:
    """Return 0 for a plan on one unit of several, where Tmin counts as 0, and less than -Tmin otherwise."""
    return [linear(((-most, used) for used in uses), most)] if len(uses) > 1 else []


def _bubbles(chain: Chain, variables: QuantityVariables) -> Expr:
    """Return chunks * period - latency without a product of variables.

    With c chunks, c P is the largest of k P - k B [c < k] over k = 1..M, for any B that is at least P.
    """
    units = range(chain.unit_count)
    period = variables.total(Quantity.PERIOD)
    most = max(chain.most_busy_us(unit) for unit in units)
    chunks = count(map(variables.uses, units))
    whole = max_of(
        linear([(k, period), (k * most, chunks >= k)], -k * most) for k in range(1, chain.unit_count + 1)
    )
    return whole - variables.total(Quantity.LATENCY)


def term_expr(chain: Chain, term: Term) -> Expr:
    """Return the quantity that a term minimises; `idle_at_most` stands for the ratio IDLE."""
    return QuantityVariables(chain).total(TERM_QUANTITY[term])


def idle_excess(chain: Chain, permille: int) -> Expr:
    """Return an expression that is at most 0 exactly if idle <= `permille`.

    With M units, period P and loads L_u: idle = ceil(1000 (M P - sum L) / (M P)).
    """
    variables = QuantityVariables(chain)
    period, latency = variables.total(Quantity.PERIOD), variables.total(Quantity.LATENCY)
    return (1000 - permille) * chain.unit_count * period - 1000 * latency


def demands(problem: Problem) -> tuple[Constraint, ...]:
    """Return the limits, the capacity of the device and the user's rules, over the quantities of a plan."""
    chain = problem.chain
    found = [Constraint(name=name, expr=expr) for name, expr in _limits(chain, problem.limits).items()]
    if chain.device_memory is not None:
        peak = QuantityVariables(chain).total(Quantity.PEAK)
        found.append(Constraint(name="device_memory", expr=peak <= chain.device_memory))
    found += (Constraint(name=rule.name, expr=rule.expr) for rule in problem.expression_rules)
    return tuple(found)


def _limits(chain: Chain, limits: Limits) -> dict[str, BoolExpr]:
    """Return the filters in use as conditions on integers; the judge rounds alike."""
    variables = QuantityVariables(chain)
    period, gapness = variables.total(Quantity.PERIOD), variables.total(Quantity.GAPNESS)
    found: dict[str, BoolExpr] = {}
    if limits.max_period_us is not None:
        found["max_period_us"] = period <= limits.max_period_us
    if limits.min_units is not None:
        found["min_units"] = count(map(variables.uses, range(chain.unit_count))) >= limits.min_units
    if limits.max_units is not None:
        found["max_units"] = count(map(variables.uses, range(chain.unit_count))) <= limits.max_units
    if limits.min_balance_permille is not None:
        found["min_balance_permille"] = 1000 * gapness <= (1000 - limits.min_balance_permille) * period
    if limits.max_gapness_us is not None:
        found["max_gapness_us"] = gapness <= limits.max_gapness_us
    if limits.min_utilisation_permille is not None:
        excess = idle_excess(chain, 1000 - limits.min_utilisation_permille)
        found["min_utilisation_permille"] = excess <= Const(0)
    return found


def conflicts(chain: Chain, uses: Sequence[Expr]) -> list[Constraint]:
    """Return "not both" for each pair of units that exclude each other."""
    return [
        Constraint(name="conflict", expr=uses[unit] + uses[other] <= 1)
        for unit in range(chain.unit_count)
        for other in sorted(chain.exclusive[unit])
        if other > unit
    ]

"""Variants of a problem, to ask questions of: with or without a unit, and without each demand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...formulations.costs import CostTable
from ...formulations.demands import Demand, demands_of
from ...formulations.errors import InvalidInputError
from ...formulations.expr import BoolExpr, any_of
from ...formulations.problem import Problem
from ...formulations.rules import RuleFunction, named
from ...formulations.terms import QuantityInfo
from ...solvers.conflict import NO_COVERAGE

_CAP = "max_period_us"
"""The limit that the cap of slack mode becomes."""

_USE = ("uses", "on")
"""Quantities that say what a unit runs, as far as formulations have them; the first one counts."""

_UNITS = ("unit", "device")
"""What formulations call the index of a unit."""


def variant_of(problem: Problem, unit: str, name: str, *, used: bool, searched: bool) -> tuple[Problem, str]:
    """Return the problem without a used unit, or with an unused one, and the demand that makes it so.

    `used`: whether the explained plan uses the unit. `searched`: whether the backend that is asked reasons
    about rules. One that only checks them would hardly find a plan, but it knows from the costs where nothing
    can run: there the unit is taken out of the costs.
    The second text is how a conflict names the demand.
    """
    if searched or not used:
        return problem.with_rules(_use_rule(problem, name, unit, wanted=not used)), name
    return replace(problem, costs=_without_unit(problem.costs, unit)), NO_COVERAGE


def _without_unit(costs: CostTable, unit: str) -> CostTable:
    """Return a cost table of the same units, one of which cannot run anything."""
    column = costs.units.index(unit)
    networks = tuple(
        replace(
            entry,
            layer_us=tuple(
                tuple(None if place == column else time for place, time in enumerate(row))
                for row in entry.layer_us
            ),
        )
        for entry in costs.networks
    )
    return replace(costs, networks=networks)


def _use_rule(problem: Problem, name: str, unit: str, *, wanted: bool) -> RuleFunction:
    """Return the rule that a unit is used, or that it is not."""
    used = _used(problem, problem.platform.unit_names.index(unit))
    text = f"{unit!r} is {'' if wanted else 'not '}used"
    return named(name, text, lambda _: used if wanted else ~used)


def _used(problem: Problem, unit: int) -> BoolExpr:
    """Return "the unit runs something": any of the quantities that say what it runs."""
    formulation, tables = problem.formulation, problem.tables
    variables = formulation.variables(problem)
    for name in _USE:
        info = formulation.quantities.get(name)
        if info is not None and info.most is None and any(index.name in _UNITS for index in info.indices):
            return any_of(variables.truth(name, *args) for args in _places(info, tables, unit))
    raise InvalidInputError(f"rules about {formulation.label} cannot say that a unit is used")


def _places(info: QuantityInfo, tables: Any, unit: int) -> list[tuple[int, ...]]:
    """Return all indices of a quantity that are about one unit."""
    found: list[tuple[int, ...]] = [()]
    for index in info.indices:
        found = [
            (*args, value)
            for args in found
            for value in index.allowed(tables, *args)
            if index.name not in _UNITS or value == unit
        ]
    return found


def slack_words(given: Problem, problem: Problem) -> dict[str, str]:
    """Return what the cap of slack mode demands, by the name of the limit that it has become; or nothing."""
    slack, cap = given.objective.period_slack_permille, problem.limits.max_period_us
    if slack is None or cap == given.limits.max_period_us:
        return {}
    return {_CAP: f"the period is within {slack / 10:.1f} % of the least one: at most {cap} us"}


def demands(given: Problem, problem: Problem, slack: dict[str, str]) -> list[Demand]:
    """Return the demands of a problem; the cap of slack mode is one of them.

    `slack`: what that cap demands (`slack_words`).
    """

    def uncapped(variant: Problem) -> Problem:
        return variant.with_limits(max_period_us=given.limits.max_period_us)

    return [
        Demand(name="slack", text=slack[_CAP], without=uncapped) if demand.name in slack else demand
        for demand in demands_of(problem)
    ]

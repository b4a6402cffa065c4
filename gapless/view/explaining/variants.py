"""Variants of a problem, to ask questions of: with or without a unit, and without each demand."""

from __future__ import annotations

from dataclasses import replace

from ...formulations.chunking.view import PlanView
from ...formulations.costs import CostTable
from ...formulations.demands import Demand, demands_of
from ...formulations.expr import BoolExpr, any_of
from ...formulations.flow_shop.tables import workload_in
from ...formulations.flow_shop.view import WorkloadView
from ...formulations.network import Network
from ...formulations.problem import Problem
from ...formulations.rules import RuleFunction, named
from ...solvers.conflict import NO_COVERAGE

_CAP = "max_period_us"
"""The limit that the cap of slack mode becomes."""


def placed_networks(problem: Problem) -> list[Network]:
    """Return the networks that plans place."""
    workload = workload_in(problem)
    if workload is None:
        return [problem.network]
    asked = {request.network for request in workload.requests}
    return [network for network in problem.networks if network.name in asked]


def variant_of(problem: Problem, unit: str, name: str, *, used: bool) -> tuple[Problem, str]:
    """Return the problem without a used unit, or with an unused one, and the demand that makes it so.

    Parameters
    ----------
    problem, unit
        The problem, and the name of one of its units.
    name
        For the rule that makes the variant.
    used
        Whether the explained plan uses the unit.

    Returns
    -------
    Problem, str
        The variant, and how a conflict names the demand. With a workload a unit is taken out of the costs:
        local search only checks rules, but knows from the costs where nothing can run.
    """
    if workload_in(problem) is None or not used:
        return problem.with_rules(_use_rule(name, unit, wanted=not used)), name
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


def _use_rule(name: str, unit: str, *, wanted: bool) -> RuleFunction:
    """Return the rule that a unit is used, or that it is not."""

    def build(view: PlanView | WorkloadView) -> BoolExpr:
        if isinstance(view, WorkloadView):
            used: BoolExpr = any_of(view.uses(request, unit) for request in view.requests)
        else:
            used = view.uses(unit)
        return used if wanted else ~used

    return named(name, f"{unit!r} is {'' if wanted else 'not '}used", build)


def slack_words(given: Problem, problem: Problem) -> dict[str, str]:
    """Return what the cap of slack mode demands, by the name of the limit that it has become; or nothing."""
    slack, cap = given.objective.period_slack_permille, problem.limits.max_period_us
    if slack is None or cap == given.limits.max_period_us:
        return {}
    return {_CAP: f"the period is within {slack / 10:.1f} % of the least one: at most {cap} us"}


def demands(given: Problem, problem: Problem, slack: dict[str, str]) -> list[Demand]:
    """Return the demands of a problem; the cap of slack mode is one of them.

    Parameters
    ----------
    given, problem
        The problem as it was given, and with the cap of slack mode as a limit.
    slack
        What that cap demands (`slack_words`).
    """

    def uncapped(variant: Problem) -> Problem:
        return variant.with_limits(max_period_us=given.limits.max_period_us)

    return [
        Demand(name="slack", text=slack[_CAP], without=uncapped) if demand.name in slack else demand
        for demand in demands_of(problem)
    ]

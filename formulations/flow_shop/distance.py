"""How far two plans for a workload are apart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ..expr import BoolExpr, count
from ..formulation import Difference
from ..plan import Plan
from ..problem import Problem
from ..rules import RuleFunction, named
from .alike import groups_of, neighbours_in, settled
from .tables import shop_of, workload_of
from .view import WorkloadView

Place = tuple[str, int, str]
"""A layer of a request on a unit."""


def workload_distance(first: Plan, second: Plan) -> int:
    """Return how many layers of requests run on other units, plus how many pairs are in the other order.

    0 for equal plans; a metric. Plans that differ by who of several equal requests is who are compared as
    they stand: `settled` ones are those that say something.
    """
    layers = sum(1 for _ in _places(first)) - len({*_places(first)} & {*_places(second)})
    return layers + len({*combinations(first.order, 2)} - {*combinations(second.order, 2)})


def _places(plan: Plan) -> Iterator[Place]:
    for chunk in plan.chunks:
        yield from ((chunk.request, layer, chunk.unit) for layer in range(chunk.start, chunk.stop))


def differs(plan: Plan, at_least: int) -> RuleFunction:
    """Return the rule "at least so far from this plan" (`workload_distance`)."""

    def build(view: WorkloadView) -> BoolExpr:
        places, pairs = list(_places(plan)), list(combinations(plan.order, 2))
        same = (*(view.on(*place) for place in places), *(view.before(*pair) for pair in pairs))
        return count(same) <= len(same) - at_least

    text = f"at least {at_least} layers or pairs of requests differ from plan {plan.plan_id}"
    return named(f"differs({plan.plan_id}, {at_least})", text, build)


def settled_plan(problem: Problem, plan: Plan) -> Plan:
    """Return the plan that stands for all that differ from it by who of several equal requests is who."""
    groups = groups_of(problem)
    if not groups:
        return plan
    shop = shop_of(problem)
    return shop.plan(settled(shop.schedule(plan), groups))


def settling_rules(problem: Problem) -> tuple[RuleFunction, ...]:
    """Return the rules that hold of settled plans only."""
    names = workload_of(problem).names
    pairs = ((names[one], names[other]) for one, other in neighbours_in(groups_of(problem)))
    return tuple(_in_order(first, second) for first, second in pairs)


def _in_order(first: str, second: str) -> RuleFunction:
    text = f"{first} is served before {second}, which is like it"
    return named(f"before({first}, {second})", text, lambda view: view.before(first, second))


DIFFERENCE = Difference(between=workload_distance, rule=differs, settle=settled_plan, settling=settling_rules)

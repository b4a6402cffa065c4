"""Ready-made rules about plans of one network: each means what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gapless.formulations.chunking.quantities import PlanValues
from gapless.formulations.chunking.rules import (
    apart,
    at_least,
    at_most,
    avoid,
    busy_cap,
    cuts_only_after,
    differs,
    forbid,
    latency_cap,
    memory_cap,
    needs,
    pin,
    together,
)
from gapless.formulations.chunking.space import all_parts
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.expr import Interval, Variable
from gapless.formulations.plan import Plan
from gapless.formulations.rules import RuleFunction
from gapless.solvers.chunking.samples import sample_problem

Facts = PlanValues


def unit_of(values: Facts, layer: int) -> int:
    return next(unit for start, stop, unit in values.parts if start <= layer < stop)


def exactly(values: Facts) -> Callable[[Variable], Interval]:
    return lambda variable: (values(variable), values(variable))


LITTLE, BIG, ALL, GPU = range(4)
MIXED = chain_of(sample_problem()).plan(((0, 4, LITTLE), (4, 7, BIG)))
MEANINGS: list[tuple[RuleFunction, Callable[[Facts], bool]]] = [
    (pin("l1", unit="big"), lambda v: unit_of(v, 1) == BIG),
    (pin(1, unit="big"), lambda v: unit_of(v, 1) == BIG),
    (forbid("l0", unit="gpu"), lambda v: unit_of(v, 0) != GPU),
    (together("l0", "l2"), lambda v: unit_of(v, 0) == unit_of(v, 2)),
    (apart("l0", "l2"), lambda v: unit_of(v, 0) != unit_of(v, 2)),
    (at_most(2), lambda v: len(v.parts) <= 2),
    (at_least(3), lambda v: len(v.parts) >= 3),
    (needs("gpu", "big"), lambda v: GPU not in v.busy_us or BIG in v.busy_us),
    (avoid("all"), lambda v: ALL not in v.busy_us),
    (busy_cap("big", most_us=80), lambda v: v.busy_us.get(BIG, 0) <= 80),
    (memory_cap(700), lambda v: v.peak_bytes <= 700),
    (memory_cap(300, unit="gpu"), lambda v: v.memory_bytes.get(GPU, 0) <= 300),
    (latency_cap(most_us=300), lambda v: v.latency_us <= 300),
    (cuts_only_after("l1", 4), lambda v: all(stop in (2, 5, 7) for _, stop, _ in v.parts)),
    (cuts_only_after(), lambda v: len(v.parts) == 1),
    (differs(MIXED), lambda v: v.parts != ((0, 4, LITTLE), (4, 7, BIG))),
    (differs(MIXED, at_least=4), lambda v: sum(unit_of(v, i) != (LITTLE, BIG)[i > 3] for i in range(7)) > 3),
    (lambda view: view.position("l6") == 1, lambda v: len(v.parts) == 2),
    (lambda view: view.cut_after("l3"), lambda v: any(stop == 4 for _, stop, _ in v.parts)),
    (lambda view: view.chunks() >= 2, lambda v: len(v.parts) >= 2),
    (lambda view: view.gapness_us() <= 50, lambda v: v.gapness_us <= 50),
    (lambda view: view.bubbles_us() <= 99, lambda v: v.bubbles_us <= 99),
    (lambda view: view.period_us() <= 200, lambda v: v.period_us <= 200),
]


@pytest.mark.parametrize(("function", "meaning"), MEANINGS)
def test_a_rule_means_what_it_says(function: RuleFunction, meaning: Callable[[Facts], bool]) -> None:
    problem = sample_problem().with_rules(function)
    rule = problem.expression_rules[0]
    seen = set()
    for parts in all_parts(chain_of(problem)):
        values = PlanValues(chain_of(problem), parts)
        seen.add(rule.holds(values))
        assert rule.holds(values) == meaning(values)
        low, high = rule.expr.bounds(exactly(values))
        assert low == high == rule.holds(values)
    assert seen == {True, False}


def test_a_plan_of_another_network_is_nothing_to_differ_from() -> None:
    for plan in (Plan(chunks=MIXED.chunks[:1]), replace(MIXED, order=("r",))):
        with pytest.raises(InvalidProblemError, match="no plan of a network with 7 layers"):
            sample_problem().with_rules(differs(plan))

"""What a problem asks of its encoding, and whether "at least" conditions are enough for it."""

from __future__ import annotations

from typing import Any

import pytest

from gapless.formulations.flow_shop.quantities import most_bytes, needs_of
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Quantity
from gapless.formulations.workload import LoadPolicy, Request, Workload
from tests.workload_instances import workload_problem

TABLES: dict[str, list[list[int | None]]] = {"a": [[3, 5], [4, 2]], "b": [[2, 7]]}


def problem_of(objective: str = "makespan", **more: Any) -> Problem:
    return workload_problem(TABLES, ["a", "b"], objective=objective, **more)


@pytest.mark.parametrize(
    ("objective", "exact"),
    [
        ("makespan,latency,period,bottleneck,work", False),
        ("contention,displacement", False),
        ("idle", True),
        ("gapness", True),
        ("bubbles", True),
        ("peak_memory", True),
    ],
)
def test_terms_that_could_gain_from_longer_chunks_are_exact(objective: str, exact: bool) -> None:
    assert needs_of(problem_of(objective)).exact is exact


@pytest.mark.parametrize(
    ("rule", "exact"),
    [
        (lambda v: v.finish_us("a0") <= 9, False),
        (lambda v: v.finish_us("a0") >= 9, True),
        (lambda v: ~(v.finish_us("a0") >= 9), False),
        (lambda v: 2 * v.load_us("npu") + v.period_us() <= 40, False),
        (lambda v: v.load_us("npu") - v.load_us("big") <= 5, True),
        (lambda v: v.before("a0", "b1"), False),
        (lambda v: v.uses("a0", "npu"), True),
        (lambda v: ~v.uses("a0", "npu"), False),
        (lambda v: v.on("a0", 0, "npu"), False),
        (lambda v: ~v.beside("a0", "b1"), True),
    ],
)
def test_rules_are_read_for_what_they_gain_from(rule: Any, exact: bool) -> None:
    needs = needs_of(problem_of().with_rules(rule))
    assert needs.exact is exact


def test_named_requests() -> None:
    needs = needs_of(problem_of().with_rules(lambda v: v.chunk_us("b1", "npu") + v.load_us("big") <= 99))
    assert needs.named == {1}
    assert Quantity.CHUNK_US in needs.quantities


def test_memory_counts_only_where_it_can_bind() -> None:
    roomy, tight = problem_of(memory_bytes=1000), problem_of(memory_bytes=25)
    assert most_bytes(shop_of(roomy)) == 30
    assert Quantity.PEAK not in needs_of(roomy).quantities
    assert Quantity.PEAK in needs_of(tight).quantities
    running = Workload(requests=(Request(name="r", network="a"),), load_policy=LoadPolicy.RUNNING)
    assert most_bytes(shop_of(problem_of(workload=running))) == 30


def test_limits_bring_their_quantities() -> None:
    needs = needs_of(problem_of("work").with_limits(max_period_us=9))
    assert needs.quantities == {Quantity.WORK, Quantity.PERIOD}
    assert not needs.exact
    assert not needs.clocks
    assert needs_of(problem_of("work").with_limits(min_utilisation_permille=9)).clocks

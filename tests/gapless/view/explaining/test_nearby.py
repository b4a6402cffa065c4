"""Plans without a unit that take no search."""

from __future__ import annotations

import pytest

import gapless
from gapless.formulations.judge import check
from gapless.formulations.plan import Chunk, Plan
from gapless.view.explaining.explain import without_unit

PROBLEM = gapless.table_problem(
    [[1, 9, 3], [1, 9, 3], [None, 2, 3], [1, None, 3]], ["a", "b", "c"], network="net", objective="period"
)


def plan(*parts: tuple[int, int, str]) -> Plan:
    return Plan(chunks=tuple(Chunk(network="net", start=a, stop=b, unit=u) for a, b, u in parts))


@pytest.mark.parametrize(
    ("given", "unit", "expected"),
    [
        (plan((0, 2, "a"), (2, 4, "c")), "a", [plan((0, 4, "c"))] * 2),
        # The neighbour before it cannot run layer 2: the one behind it takes it in either case.
        (plan((0, 2, "a"), (2, 3, "b"), (3, 4, "c")), "b", [plan((0, 2, "a"), (2, 4, "c"))] * 2),
        (plan((0, 4, "c")), "c", []),  # no other unit runs all layers
    ],
)
def test_chunks_go_to_units_that_can_run_them(given: Plan, unit: str, expected: list[Plan]) -> None:
    found = list(without_unit(PROBLEM, given, unit))
    assert found == expected
    assert all(not check(PROBLEM, other) for other in found)


def test_an_explanation_without_time_still_has_alternatives() -> None:
    why = gapless.explain(PROBLEM, plan((0, 2, "a"), (2, 4, "c")), time_limit_s=1e-6)
    assert why.units[0].otherwise.plan == plan((0, 4, "c"))
    assert not why.units[0].otherwise.proven
    assert why.looked_s > 0
    assert why.limit_s == 1e-6

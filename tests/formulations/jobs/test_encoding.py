"""The model of single requests that slow each other down: every plan is a solution with its own times."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice

import pytest

from benchmarks.schedule_instances import sliced
from gapless.formulations.expr import Variable, VariableKey
from gapless.formulations.judge import examined
from tests.jobs_instances import drawn_jobs, longer, passing, slowed


def _value(known: Mapping[VariableKey, int], variable: Variable) -> int:
    return known.get(variable.key, 0)


@pytest.mark.parametrize("by_slice", [False, True])
@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_every_plan_is_a_solution(seed: int, strong: bool, by_slice: bool) -> None:
    drawn = slowed(drawn_jobs(seed, requests=3, units=2 + seed % 2), seed, strong=strong)
    drawn = longer(sliced(drawn, seed) if by_slice else drawn, 397 if seed > 2 else 1)
    problem = passing(drawn, ("any", "once", "ordered")[seed % 3])
    encoded = problem.formulation.encode(problem, top=2)
    assert encoded.assign is not None
    checked = 0
    for code in islice(problem.formulation.codes(problem), 0, 300, 29):
        numbers, broken = examined(problem, code)
        if broken:
            continue
        value = partial(_value, encoded.assign(code))
        for constraint in encoded.model.constraints:
            assert constraint.expr.evaluate(value), (constraint.name, constraint.expr)
        assert encoded.model.definitions["makespan_us", ()].evaluate(value) == numbers.term("makespan")
        assert encoded.decode(value) == code
        assert not encoded.exclude(code).evaluate(value)
        checked += 1
    assert checked

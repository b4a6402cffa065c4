"""The model of single requests that slow each other down: every plan is a solution with its own times."""

from __future__ import annotations

from itertools import islice

import pytest

from gapless.formulations.expr import Variable
from gapless.formulations.judge import examined
from tests.jobs_instances import drawn_jobs, passing, slowed


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_every_plan_is_a_solution(seed: int, strong: bool) -> None:
    drawn = slowed(drawn_jobs(seed, requests=3, units=2 + seed % 2), seed, strong=strong)
    problem = passing(drawn, ("any", "once", "ordered")[seed % 3])
    encoded = problem.formulation.encode(problem, top=2)
    assert encoded.assign is not None
    checked = 0
    for code in islice(problem.formulation.codes(problem), 0, 300, 29):
        numbers, broken = examined(problem, code)
        if broken:
            continue
        known = encoded.assign(code)

        def value(variable: Variable, known: dict = known) -> int:  # type: ignore[type-arg]
            return known.get(variable.key, 0)

        for constraint in encoded.model.constraints:
            assert constraint.expr.evaluate(value), (constraint.name, constraint.expr)
        assert encoded.model.definitions["makespan_us", ()].evaluate(value) == numbers.term("makespan")
        assert encoded.decode(value) == code
        assert not encoded.exclude(code).evaluate(value)
        checked += 1
    assert checked

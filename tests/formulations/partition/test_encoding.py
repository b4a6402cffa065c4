"""The order encoding: its windows hold what they have to, and a known plan is a solution."""

from __future__ import annotations

from itertools import islice

import pytest

from gapless.formulations.expr import variables
from gapless.formulations.judge import examined
from gapless.formulations.problem import Problem
from gapless.solvers.partition.samples import random_graph, samples

SAMPLES = samples()
PROBLEMS = [SAMPLES.plain, *SAMPLES.problems.values()]


def valid_codes(problem: Problem) -> list[tuple[int, ...]]:
    """Return every valid plan."""
    return [code for code in problem.formulation.codes(problem) if not examined(problem, code)[1]]


@pytest.mark.parametrize("problem", PROBLEMS, ids=["plain", *SAMPLES.problems])
def test_every_valid_plan_is_a_solution_of_the_whole_model(problem: Problem) -> None:
    encoded = problem.formulation.encode(problem, top=2)
    assert encoded.assign is not None
    seen = 0
    for code in valid_codes(problem):
        values = encoded.assign(code)

        def read(variable: object, values: object = values, code: object = code) -> int:
            key = variable.key  # type: ignore[attr-defined]
            definition = encoded.model.definitions.get(key)
            return values[key] if definition is None else definition.evaluate(read)  # type: ignore[index]

        for constraint in encoded.model.constraints:
            assert constraint.expr.evaluate(read), constraint.name
        numbers = problem.formulation.numbers(problem, code)
        for key, definition in encoded.model.definitions.items():
            named = problem.formulation.variables(problem).find(key[0], list(key[1]))
            assert definition.evaluate(read) == numbers(named), key
        assert encoded.decode(read) == code
        assert not encoded.exclude(code).evaluate(read)
        seen += 1
    assert seen


def test_a_known_plan_makes_the_model_smaller() -> None:
    problem = random_graph(12, 4, seed=1)
    whole = problem.formulation.encode(problem)
    best = min(
        (code for code in islice(problem.formulation.codes(problem), 3000) if not examined(problem, code)[1]),
        key=lambda code: problem.formulation.numbers(problem, code).term("period"),
    )
    small = problem.formulation.encode(problem, known=best)

    def size(encoded: object) -> int:
        rows = encoded.model.constraints  # type: ignore[attr-defined]
        return len({key for row in rows for key in variables(row.expr)})

    assert size(small) < size(whole)

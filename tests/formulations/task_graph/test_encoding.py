"""The model of start times: every valid plan is a solution, and means what the judge says."""

from __future__ import annotations

import pytest

from gapless.formulations.judge import examined
from gapless.formulations.problem import Problem
from gapless.solvers.task_graph.samples import samples

SAMPLES = samples()
PROBLEMS = {"plain": SAMPLES.plain, **SAMPLES.problems}
LATE = SAMPLES.problems["transfers"].with_rules(lambda view: view.start_us("e") >= 0)


@pytest.mark.parametrize("problem", [*PROBLEMS.values(), LATE], ids=[*PROBLEMS, "rule about times"])
def test_every_valid_plan_is_a_solution_of_the_whole_model(problem: Problem) -> None:
    encoded = problem.formulation.encode(problem, top=2)
    assert encoded.assign is not None
    assert encoded.complete
    seen = 0
    for code in problem.formulation.codes(problem):
        numbers, broken = examined(problem, code)
        if broken:
            continue
        values = encoded.assign(code)

        def read(variable: object, values: object = values) -> int:
            key = variable.key  # type: ignore[attr-defined]
            definition = encoded.model.definitions.get(key)
            return values.get(key, 0) if definition is None else definition.evaluate(read)  # type: ignore[attr-defined]

        for constraint in encoded.model.constraints:
            assert constraint.expr.evaluate(read), constraint.name
        for sharing in encoded.model.sharing:
            assert all(row.evaluate(read) for row in sharing.rows)
        for key, definition in encoded.model.definitions.items():
            named = problem.formulation.variables(problem).find(key[0], list(key[1]))
            assert definition.evaluate(read) == numbers(named), key
        assert encoded.decode(read) == code
        assert not encoded.exclude(code).evaluate(read)
        seen += 1
    assert seen


def test_a_known_plan_leaves_out_what_would_be_worse() -> None:
    problem = SAMPLES.problems["transfers"]
    plans = [code for code in problem.formulation.codes(problem) if not examined(problem, code)[1]]
    latency = {code: problem.formulation.numbers(problem, code).term("latency") for code in plans}
    best = min(plans, key=latency.__getitem__)
    encoded = problem.formulation.encode(problem, known=best)
    assert not encoded.complete
    assert encoded.assign is not None
    values = encoded.assign(best)
    assert all(row.expr.evaluate(lambda v: values.get(v.key, 0)) for row in encoded.model.constraints)

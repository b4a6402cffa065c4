"""The model of start times: every valid plan is a solution, and means what the judge says."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from gapless.formulations.expr import IntVar, Variable
from gapless.formulations.judge import examined
from gapless.formulations.model import Encoded
from gapless.formulations.problem import Problem
from gapless.solvers.task_graph.samples import samples

from .test_tasks import with_outside

SAMPLES = samples()
PROBLEMS = {"plain": SAMPLES.plain, **SAMPLES.problems, "from outside": with_outside()}
LATE, LATE_TURNS = (
    SAMPLES.problems[name].with_rules(lambda view: view.start_us("e") >= 0) for name in ("transfers", "turns")
)


class Reading:
    """The values of variables, each of which has to be within its bounds."""

    def __init__(self, encoded: Encoded[Any], values: Mapping[Any, int]) -> None:
        self._encoded, self._values, self.strange = encoded, values, list[Any]()

    def __call__(self, variable: Variable) -> int:
        definition = self._encoded.model.definitions.get(variable.key)
        if definition is not None:
            return definition.evaluate(self)
        value = self._values.get(variable.key, 0)
        if isinstance(variable, IntVar) and not variable.low <= value <= variable.high:
            self.strange.append(variable)
        return value

    def broken(self) -> list[str]:
        """Return what the values break; rows of tasks that share units are not looked at."""
        model = self._encoded.model
        found = [row.name for row in model.constraints if not row.expr.evaluate(self)]
        return found + [variable.name for variable in self.strange]

    def rows(self) -> bool:
        """Return whether all rows about tasks that share units hold."""
        return all(row.evaluate(self) for own in self._encoded.model.sharing for row in own.rows)

    def apart(self) -> bool:
        """Return whether no two tasks that share units run at the same time."""
        for sharing in self._encoded.model.sharing:
            there = [task for task in sharing.tasks if task.present.evaluate(self)]
            spans = sorted((task.start.evaluate(self), task.length) for task in there)
            if any(start + length > after for (start, length), (after, _) in pairwise(spans)):
                return False
        return True


def valid_plans(problem: Problem) -> list[Any]:
    """Return all valid plans by index."""
    return [code for code in problem.formulation.codes(problem) if not examined(problem, code)[1]]


@pytest.mark.parametrize(
    "problem", [*PROBLEMS.values(), LATE, LATE_TURNS], ids=[*PROBLEMS, "rule about times", "and turns"]
)
def test_every_valid_plan_is_a_solution_of_the_whole_model(problem: Problem) -> None:
    encoded = problem.formulation.encode(problem, top=2)
    assert encoded.assign is not None
    assert encoded.complete
    plans = valid_plans(problem)
    assert plans
    for code in problem.formulation.codes(problem):
        assert code in plans or Reading(encoded, encoded.assign(code)).broken()
    for number, code in enumerate(plans):
        numbers, values = examined(problem, code)[0], encoded.assign(code)
        read = Reading(encoded, values)
        assert read.broken() == []
        assert read.rows()
        assert read.apart()
        for key, definition in encoded.model.definitions.items():
            named = problem.formulation.variables(problem).find(key[0], list(key[1]))
            assert definition.evaluate(read) == numbers(named), key
        assert encoded.decode(read) == code
        assert not encoded.exclude(code).evaluate(read)
        assert encoded.exclude(plans[number - 1]).evaluate(read) == (len(plans) > 1)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_no_solution_has_a_task_or_the_end_earlier_than_the_plan_has_it(problem: Problem) -> None:
    encoded = problem.formulation.encode(problem, top=2)
    assert encoded.assign is not None
    for code in valid_plans(problem):
        values = encoded.assign(code)
        moments = {key: at for key, at in values.items() if key[0] == "end_of_all"}
        moments |= {("begin", (task, 0)): values["begin", (task, 0)] for task, _ in enumerate(code.parts)}
        for key, at in moments.items():
            read = Reading(encoded, {**values, key: at - 1})
            assert at == 0 or read.broken() or not (read.rows() or read.apart()), key


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

"""Quantities as variables: by name and indices, with bounds, and what is said of those that are not there."""

from __future__ import annotations

from itertools import product

import pytest

from gapless.formulations.expr import BoolVar, IntVar
from gapless.formulations.judge import examined
from gapless.formulations.problem import Problem
from gapless.formulations.registry import formulation_named, formulation_names
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.flow_shop.samples import sample_workloads

PROBLEMS = [sample_problem(), *sample_workloads()]


def every_variable(problem: Problem) -> list[BoolVar | IntVar]:
    """Return all quantities with all indices that they can have."""
    variables, found = problem.formulation.variables(problem), []
    for name, info in problem.formulation.quantities.items():
        indices: list[tuple[int, ...]] = [()]
        for index in info.indices:
            indices = [(*held, i) for held in indices for i in index.allowed(problem.tables, *held)]
        found += [variables.find(name, held) for held in indices]
    return found


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_quantity_has_a_value_within_its_bounds(problem: Problem) -> None:
    variables = every_variable(problem)
    assert {variable.name for variable in variables} == set(problem.formulation.quantities)
    assert len({variable.key for variable in variables}) == len(variables)
    for plan in list(all_plans(problem))[::17]:
        numbers, _ = examined(problem, problem.formulation.code(problem, plan))
        for variable in variables:
            low, high = (0, 1) if isinstance(variable, BoolVar) else (variable.low, variable.high)
            assert low <= numbers(variable) <= high, variable


@pytest.mark.parametrize("problem", PROBLEMS)
def test_names_of_variables_are_plain_strings(problem: Problem) -> None:
    assert {type(variable.name) for variable in every_variable(problem)} == {str}


@pytest.mark.parametrize(
    ("name", "indices", "words"),
    [
        ("on", (0,), r"on has 2 indices \(layer, unit\), not 1"),
        ("on", (7, 0), "layer 7 of on is not in 0 to 6"),
        ("on", (True, 0), "layer True of on is not"),
        ("on", ("l0", 0), "layer 'l0' of on is not"),
        ("cut", (0,), "of cut is not in 1 to 6"),
        ("period_us", (0,), r"period_us has 0 indices \(none\), not 1"),
        ("speed", (), "quantities are on, "),
    ],
)
def test_quantities_that_are_not_there(name: str, indices: tuple[object, ...], words: str) -> None:
    problem = sample_problem()
    with pytest.raises(KeyError, match=words):
        problem.formulation.variables(problem).find(name, indices)


@pytest.mark.parametrize("name", formulation_names())
def test_terms_are_quantities_or_ratios(name: str) -> None:
    formulation = formulation_named(name)
    for term, info in formulation.terms.items():
        assert term == info.name
        assert info.text
        assert info.label
        assert info.excess is not None or info.field in formulation.quantities
    pairs = product(formulation.terms.values(), repeat=2)
    assert all(one is other or one.field != other.field for one, other in pairs)

"""What is played names the chunk that was at work, in every family whose requests pass stations in line."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from gapless.formulations.history import is_message
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate
from gapless.solvers.families import family_of


def plain(family: str) -> Problem:
    """Return the plain sample of a family; its first unit has a name that comes after all others."""
    instances = family_of(family).instances
    assert instances is not None
    problem = instances().samples().plain
    names = ("z", *problem.platform.unit_names[1:])
    units = tuple(replace(unit, name=name) for unit, name in zip(problem.platform.units, names, strict=True))
    return replace(
        problem,
        platform=replace(problem.platform, units=units),
        costs=replace(problem.costs, units=names),
    )


@pytest.mark.parametrize("family", ["chunking", "passage", "pipelines", "cooperation", "partition"])
def test_every_interval_names_the_chunk_of_its_unit(family: str) -> None:
    problem = plain(family)
    formulation, operation = problem.formulation, operation_of(problem)
    seen = 0
    for code in islice(formulation.codes(problem), 60):
        played = simulate(problem, formulation.plan(problem, code), requests=2)
        for event in played.events:
            if event.unit in problem.platform.unit_names:
                assert not is_message(event, played.streams)
                seen += event.chunk > 0
        deployed = operation.deploy(problem, formulation.plan(problem, code))
        assert [s.order for s in played.streams] == [s.order for s in deployed.streams]
    assert seen

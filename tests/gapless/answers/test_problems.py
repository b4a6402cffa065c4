"""What is said of problems."""

from __future__ import annotations

from dataclasses import replace

import gapless
from gapless.answers.blocks import Sentence, Table
from gapless.answers.problems import platform_blocks, problem_blocks
from gapless.answers.words import asked_words
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.problem import Problem
from gapless.requests import with_states


def told(problem: Problem) -> dict[str, str]:
    """Return what is asked, by its names."""
    (facts,) = [
        block
        for block in problem_blocks(problem, plans=1)
        if isinstance(block, Table) and block.title == "What is asked"
    ]
    return {str(row.cells[0].value): str(row.cells[1].value) for row in facts.rows}


def test_states_are_said_where_there_are_some() -> None:
    tensors = (
        Tensor(name="h", bytes=4, source=-1, targets=(0,)),
        Tensor(name="g", bytes=4, source=0, targets=(1,)),
    )
    network = Network(name="net", layers=(Layer(name="cell"),), tensors=tensors)
    table = gapless.table_problem({"cell": [1.0]}, ["cpu"], network="net")
    problem = replace(table, networks=(network,))
    assert "states" not in told(problem)
    assert told(with_states(problem, {"h": "g"}))["states"] == "h=g"


def test_one_of_something_is_told_in_the_singular() -> None:
    problem = gapless.table_problem({"cell": [1.0]}, ["cpu"], network="net", platform="board")
    assert asked_words(problem) == ("net", " on board: 1 layer, 1 unit; least period, then gapness")
    first = next(iter(platform_blocks(problem.platform)))
    assert isinstance(first, Sentence)
    assert first.text == ": 1 unit, - of memory"

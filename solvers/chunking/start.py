"""What exact searches start from when their time is limited: the best plan of a single chunk."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.chunking.tables import chain_of
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..families import Start
from ..protocol import SolveOptions


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield the best valid plan of a single chunk, if there is one.

    It takes no time, so that there is an answer even if the time is up before a solver is loaded. Without a
    limit the searches find better plans by themselves.
    """
    if options.time_limit_s is None:
        return
    chain = chain_of(problem)
    whole = [
        ((0, chain.layer_count, unit),)
        for unit in range(chain.unit_count)
        if chain.runs(0, chain.layer_count, unit)
    ]
    rated = [(code, *examined(problem, code)) for code in whole]
    valid = [(numbers.values(problem.objective.terms), code) for code, numbers, broken in rated if not broken]
    if valid:
        yield Start(code=min(valid)[1])

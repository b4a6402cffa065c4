"""What exact searches start from: the plan of the program over sets of devices, and its bound."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..families import Start
from ..protocol import Deadline, SolveOptions, TimeIsUpError
from .branching import copies
from .optimum import Optimum, narrowed_arrays, wanted_terms
from .program import Program
from .solving import too_large

_SHARE = 0.3
"""Share of a time limit that the program may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known: a plan where the judge finds that of the program valid, and a lower bound."""
    limit_s = options.time_limit_s
    deadline = Deadline(None if limit_s is None else _SHARE * limit_s)
    if too_large(problem):
        return
    try:
        wanted = wanted_terms(problem, problem.objective.terms)
        program = Program(narrowed_arrays(problem, wanted, deadline), deadline)
        found = Optimum(problem, program).find()
    except TimeIsUpError:
        return
    if found is not None:
        code = next(copies(program, found.line))
        valid = not examined(problem, code)[1]
        yield Start(code=code if valid else None, at_least=found.value)

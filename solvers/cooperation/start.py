"""What exact searches start from: the plan of the program over sets of devices, and its bound."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..families import Start
from ..protocol import Deadline, SolveOptions, TimeIsUpError
from .branching import copies
from .optimum import Optimum, narrowed_arrays, wanted_terms
from .pico import PicoBackend
from .program import Program
from .solving import too_large

_SHARE = 0.3
"""Share of a time limit that the program may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: a plan where the judge finds it valid, and a lower bound.

    With a time limit the first plan is there before any search: the network whole on one device.
    """
    limit_s, known = options.time_limit_s, Start()
    deadline = Deadline(None if limit_s is None else _SHARE * limit_s)
    if limit_s is not None:
        rated = [(code, *examined(problem, code)) for code in PicoBackend().whole(problem)]
        terms = problem.objective.terms
        valid = [(numbers.values(terms), code) for code, numbers, broken in rated if not broken]
        known = Start(code=min(valid)[1] if valid else None)
        yield known
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
        best = known.code if examined(problem, code)[1] else code
        yield Start(code=best, at_least=found.value)

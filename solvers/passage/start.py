"""What exact searches start from: plans and a bound of the native search, after a share of the time."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..families import Start
from ..protocol import SolveOptions
from .baselines import OneUnitBackend

_SHARE = 0.1
"""Share of a time limit that the native search may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: the best valid plan of a single chunk, then what `native` finds.

    The first takes no time, so that there is an answer even if the time is up before a solver is loaded.
    Without a limit the searches find better plans by themselves.
    """
    if options.time_limit_s is None:
        return
    rated = [(code, *examined(problem, code)) for code in OneUnitBackend().place(problem)]
    valid = [(numbers.values(problem.objective.terms), code) for code, numbers, broken in rated if not broken]
    known = min(valid)[1] if valid else None
    if known is not None:
        yield Start(code=known)
    from . import FAMILY  # which names this module

    support = FAMILY.support
    if support is None or support.missing(problem):
        return
    from .solving import solve_passage  # loads numpy

    limited = SolveOptions(time_limit_s=_SHARE * options.time_limit_s, seed=options.seed)
    claim = solve_passage(problem, limited, support)
    code = problem.formulation.code(problem, claim.plans[0]) if claim.plans else known
    yield Start(code=known if code is None or examined(problem, code)[1] else code, at_least=claim.bound)

"""What exact searches start from when their time is limited: the plan and the bound of the native search."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.chunking.tables import chain_of
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..families import Start
from ..protocol import SolveOptions

_SHARE = 0.1
"""Share of a time limit that the native search may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: the best valid plan of a single chunk, then what `native` finds.

    The first takes no time, so that there is an answer even if the time is up before a solver is loaded.
    Without a limit the searches find better plans by themselves.
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
    known = Start(code=min(valid)[1]) if valid else Start()
    if valid:
        yield known
    from . import FAMILY  # which names this module

    support = FAMILY.support
    if support is None or support.missing(problem):
        return
    from .solving import solve_chunking  # loads numpy

    limited = SolveOptions(time_limit_s=_SHARE * options.time_limit_s, seed=options.seed)
    claim = solve_chunking(problem, limited, support)
    code = problem.formulation.code(problem, claim.plans[0]) if claim.plans else known.code
    if code is not None and examined(problem, code)[1]:
        code = known.code
    yield Start(code=code, at_least=claim.bound)

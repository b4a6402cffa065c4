"""What exact searches start from: a plan and a bound that are found quickly."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.problem import Problem
from ..families import Start
from ..protocol import Deadline, SolveOptions
from .solving import search_of

_SHARE = 0.1
"""Share of a time limit that the search for a plan to start from may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    The search takes a fixed number of steps, so that equal questions have equal answers, or ends when its
    plan meets the bound, or after a share of the time limit. With one, the first plan is there before the
    bound.
    """
    limit_s = options.time_limit_s
    deadline = Deadline(None if limit_s is None else _SHARE * limit_s)
    search = search_of(problem, seed=options.seed, fixed=True)
    search.begin(deadline)
    if limit_s is not None:
        yield Start(code=next(iter(search.pool.codes), None))
    bound = search.bound(deadline)
    yield Start(code=next(iter(search.pool.codes), None), at_least=bound)
    for _ in search.rounds(deadline):
        met = search.pool.meets(bound)
        if met or deadline.passed or search.pool.rejected > options.max_rejections:
            break
    yield Start(code=next(iter(search.pool.codes), None), at_least=bound)

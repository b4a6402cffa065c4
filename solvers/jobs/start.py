"""What exact searches start from: a plan and a bound that are found quickly."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.problem import Problem
from ..families import Start
from ..protocol import Deadline, SolveOptions
from .bounds import bound_of
from .solving import ROUNDS, JobsSearch

_UNHURRIED_S = 10.0
"""With a shorter limit the search for a plan to start from is limited, too."""

_SHARE = 0.1
"""Share of a short limit that it may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    Unless time is short the search takes a fixed number of steps: equal questions have equal answers.
    """
    limit_s = options.time_limit_s
    search = JobsSearch(problem, seed=options.seed)
    search.begin()
    bound = bound_of(problem, Deadline(None if limit_s is None else _SHARE * limit_s))
    yield Start(code=next(iter(search.plans), None), at_least=bound)
    hurried = limit_s is not None and limit_s < _UNHURRIED_S
    deadline = Deadline(_SHARE * limit_s if hurried and limit_s is not None else None)
    left = ROUNDS
    for better in search.rounds(deadline):
        left -= not better
        if deadline.passed or left <= 0 or search.rejected > options.max_rejections:
            break
    yield Start(code=next(iter(search.plans), None), at_least=bound)

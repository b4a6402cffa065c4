"""What exact searches start from: a schedule of the search, and its bound."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.problem import Problem
from ..families import Start
from ..protocol import Deadline, SolveOptions
from .solving import ScheduleSearch

_SHARE = 0.1
"""Share of a time limit that the search may take."""

_ROUNDS = 6
"""Rounds without a better plan that end it."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    The search takes a fixed number of rounds, so that equal questions have equal answers, or ends when its
    plan meets the bound, or after a share of the time limit.
    """
    limit_s = options.time_limit_s
    deadline = Deadline(None if limit_s is None else _SHARE * limit_s)
    search = ScheduleSearch(problem, seed=options.seed)
    search.begin(deadline)
    if limit_s is not None:
        yield Start(code=next(iter(search.pool.codes), None), at_least=search.bound)
    left = _ROUNDS
    for better in search.rounds(deadline):
        left = _ROUNDS if better else left - 1
        met = search.pool.meets(search.bound)
        if met or deadline.passed or left <= 0 or search.pool.rejected > options.max_rejections:
            break
    yield Start(code=next(iter(search.pool.codes), None), at_least=search.bound)

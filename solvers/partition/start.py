"""What exact searches start from: a partition of the search over orders, and its bound."""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.problem import Problem
from ..families import Start
from ..protocol import Deadline, SolveOptions
from .solving import Plans

_SHARE = 0.1
"""Share of a time limit that the search may take."""

_ROUNDS, _PATIENCE = 40, 20


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    The search takes a fixed number of rounds, so that equal questions have equal answers, or ends after a
    share of the time limit.
    """
    limit_s = options.time_limit_s
    deadline = Deadline(None if limit_s is None else _SHARE * limit_s)
    plans = Plans(problem, seed=options.seed)
    plans.begin(deadline)
    if limit_s is not None:
        yield Start(code=next(iter(plans.pool.codes), None), at_least=plans.bound)
    left = _PATIENCE
    for number, better in enumerate(plans.rounds(deadline)):
        left = _PATIENCE if better else left - 1
        if left <= 0 or number >= _ROUNDS or plans.pool.rejected > options.max_rejections:
            break
    yield Start(code=next(iter(plans.pool.codes), None), at_least=plans.bound)

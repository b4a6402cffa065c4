"""A smaller model for a bound on the makespan: how many requests of a kind take which chunk, without times.

Requests of one kind have the same chunks and the same time before and behind them. Integer flows through
their sections say how many take each chunk; each window of a unit (`Reach.windows`) has room for what it is
given, and no request of a kind has more time than the makespan leaves. Equal requests are not told apart, and
nothing is ordered, so that solvers prove in seconds what the whole model takes long for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..expr import BoolExpr, Expr, IntVar, linear
from ..model import Relaxation
from .reach import Reach
from .tables import Option


def by_counts(reach: Reach, least_us: int, horizon_us: int) -> Relaxation:
    """Return the model.

    `least_us`: a lower bound on the makespan: the larger it is, the more windows count.
    """
    makespan = IntVar("least_end", (), min(least_us, horizon_us), horizon_us)
    return Relaxation(constraints=tuple(_Counts(reach, makespan).rows(least_us)), objective=makespan)


class _Counts:
    """Flows of kinds of requests."""

    def __init__(self, reach: Reach, makespan: Expr) -> None:
        assert reach.head_us is not None
        self._reach, self._makespan = reach, makespan
        heads, tails, chain_of = reach.head_us, reach.tail_us, reach.tables.chain_of
        kinds = [(chain_of[r], heads[r], tails[r]) for r in range(len(chain_of))]
        self._count = Counter(kinds)
        self._first = {kind: request for request, kind in reversed(list(enumerate(kinds)))}
        self._many = {
            (request, option): IntVar("many", (request, *option.part), 0, self._count[kind])
            for kind, request in self._first.items()
            for option in reach.of(request)
        }

    def rows(self, least_us: int) -> Iterator[BoolExpr]:
        """Yield what holds of every plan."""
        for kind, request in self._first.items():
            yield from self._flow(request, self._count[kind])
            yield self._time(request, self._count[kind])
        for windows in self._reach.windows(self._first.values(), least_us):
            for around_us, inside in windows:
                works = ((option.time_us, self._many[request, option]) for request, option in inside)
                yield linear(works, around_us) <= self._makespan

    def _flow(self, request: int, count: int) -> Iterator[BoolExpr]:
        for border in range(self._reach.tables.section_count(request)):
            out = self._sum(request, [o for o in self._reach.of(request) if o.start == border])
            into = self._sum(request, [o for o in self._reach.of(request) if o.stop == border])
            yield out == (count if border == 0 else into)

    def _time(self, request: int, count: int) -> BoolExpr:
        """Return "all of a kind together take at most as long as each of them may"."""
        assert self._reach.head_us is not None
        around_us = self._reach.head_us[request][0] + self._reach.tail_us[request][-1]
        works = ((option.time_us, self._many[request, option]) for option in self._reach.of(request))
        return linear(works, count * around_us) <= linear([(count, self._makespan)])

    def _sum(self, request: int, options: list[Option]) -> Expr:
        return linear((1, self._many[request, option]) for option in options)

"""From a problem of single requests to a claim, or to what exact searches start from.

There are list schedules, rounds of annealing, a search by makespan (`makespan.py`), and a bound.

Small spaces are walked whole. Rules, limits and memory are checked on every plan that the search would take.
A plan is said to be optimal only where the objective is one term and meets its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, count, islice, takewhile

from ...formulations.jobs.quantities import JobTerm
from ...formulations.jobs.tables import JobPlan, tables_of
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..exhaustive import walked
from ..families import Start
from ..pool import Pool
from ..protocol import Claim, Deadline, SolveOptions, StopReason, Support
from ..showing import Showing
from .annealing import Annealing, list_schedules
from .bounds import bound_of
from .dispatching import dispatched
from .fines import MOST_SETS, is_checked, unit_sets
from .makespan import MakespanSearch
from .playing import Play, Sequenced

_BOUND_SHARE = 0.3
"""Share of the time after which the bound is not improved any more."""

ROUNDS = 8
"""Rounds of annealing where no time is given."""

_RESTART = 0.25
"""Warmth of rounds that go on from the best plan."""


def solve_jobs(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return good plans, and a bound."""
    return walked(problem, options) or _JobsSolve(problem, options, support).run()


class JobsSearch:
    """Rounds of annealing for one problem, each from the best plan or from a list schedule.

    `fixed`: search `ROUNDS` rounds, whatever time there is.
    """

    def __init__(self, problem: Problem, *, seed: int, most: int = 1, fixed: bool = False) -> None:
        self._problem, self.pool = problem, Pool[JobPlan](problem, most=most)
        self._fixed = fixed
        self.least_us = 0  # a lower bound on the makespan that is found meanwhile
        tables = tables_of(problem)
        self._plays = [
            play
            for units in islice(unit_sets(problem, tables), MOST_SETS)
            if all((play := Play(problem, tables, units)).routes)
        ]
        checked = is_checked(problem)
        self._searches = [
            Annealing(play, seed, broken=self._counter(play) if checked else None) for play in self._plays
        ]
        self._schedules: dict[int, list[Sequenced]] = {}

    def bound(self, deadline: Deadline) -> int:
        """Return a lower bound on the first term, after a share of the time at most."""
        return bound_of(self._problem, deadline.share(_BOUND_SHARE))

    @property
    def steps(self) -> int:
        """How many moves were tried."""
        return sum(search.steps for search in self._searches)

    def begin(self, deadline: Deadline) -> None:
        """Take the list schedules that are valid, and what policies do; after the deadline as few as will do.

        That is one for each set of units, and all of the first set while none of them is valid.
        """
        made: list[JobPlan] = []
        if self._plays:
            made += takewhile(
                lambda _: not deadline.passed, dispatched(self._problem, tables_of(self._problem))
            )
        for index, play in enumerate(self._plays):
            fitting = [code for code in made if _units_of(code) <= play.units and play.fits(code)]
            self._schedules[index] = []
            for sequence in chain(map(play.sequence, fitting), list_schedules(play)):
                self._schedules[index].append(sequence)
                if self.pool.codes and deadline.passed:
                    break
                self._offer(play, sequence)

    def rounds(self, deadline: Deadline) -> Iterator[bool]:
        """Search, a round after the other; after each plan say whether it is the best one so far."""
        for number in range(ROUNDS) if self._fixed else count():
            if not self._plays:
                return
            which = number // 2 % len(self._plays) if len(self._plays) > 1 else 0
            play, search = self._plays[which], self._searches[which]
            schedules = self._schedules[which]
            start, warmth = schedules[number % len(schedules)], 1.0
            if number % 2 and self.pool.codes and (own := self._sequence(play)) is not None:
                start, warmth = own, _RESTART
            for sequence in search.round(start, warmth=warmth, deadline=deadline):
                if self._offer(play, sequence):
                    yield True
            yield False
            if deadline.passed:
                return

    def _sequence(self, play: Play) -> Sequenced | None:
        """Return the best plan as a sequence, if it uses the units of a play only."""
        best = self.pool.codes[0]
        return play.sequence(best) if _units_of(best) <= play.units else None

    def _counter(self, play: Play) -> Callable[[Sequenced], int]:
        return lambda sequence: len(examined(self._problem, play.code(sequence))[1])

    def _offer(self, play: Play, sequence: Sequenced) -> bool:
        """Keep a plan if it is valid and wanted; return whether it is the best one."""
        return self.pool.offer(play.code(sequence))


def _units_of(code: JobPlan) -> frozenset[int]:
    return frozenset(part[2] for parts in code.parts for part in parts)


def search_of(problem: Problem, *, seed: int, most: int = 1, fixed: bool) -> JobsSearch | MakespanSearch:
    """Return the search for a problem, by the first term of its objective.

    `fixed`: it ends by itself, after as much work for all equal questions.
    """
    first = problem.objective.terms[0]
    kind = MakespanSearch if first == JobTerm.MAKESPAN else JobsSearch
    return kind(problem, seed=seed, most=most, fixed=fixed)


class _JobsSolve:
    """One solve of one problem."""

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        self._problem, self._options = problem, options
        self._handling = support.handling(problem)
        self._deadline = Deadline(options.time_limit_s)
        self._showing = Showing(options)

    def run(self) -> Claim:
        """Search until the plan meets the bound, or the time or the rounds are up."""
        limit_s = self._options.time_limit_s
        self._search = search_of(
            self._problem, seed=self._options.seed, most=self._options.top, fixed=limit_s is None
        )
        self._search.begin(self._deadline)
        self._bound = self._search.bound(self._deadline)
        for better in self._search.rounds(self._deadline):
            self._bound = max(self._bound, self._search.least_us)
            if self._proven or self._search.pool.rejected > self._options.max_rejections:
                break
            if better:
                self._showing.offer(lambda: self._claim(StopReason.TIME_LIMIT))
            if self._deadline.passed:
                break
        return self._claim(self._search.pool.stopped(self._options, self._deadline))

    @property
    def _proven(self) -> bool:
        return self._search.pool.meets(self._bound)

    def _claim(self, stop: StopReason) -> Claim:
        statistics: dict[str, int | float | str] = {"steps": self._search.steps}
        if isinstance(self._search, MakespanSearch):
            statistics["bound_by"] = self._search.least_by
        return self._search.pool.claim(
            bound=self._bound, stop=stop, handling=self._handling, statistics=statistics
        )


_START_SHARE = 0.1
"""Share of a time limit that the search for a plan to start from may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    The search takes a fixed number of steps, so that equal questions have equal answers, or ends when its
    plan meets the bound, or after a share of the time limit. With one, the first plan is there before the
    bound.
    """
    limit_s = options.time_limit_s
    deadline = Deadline(None if limit_s is None else _START_SHARE * limit_s)
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

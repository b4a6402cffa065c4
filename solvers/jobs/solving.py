"""From a problem of single requests to a claim, or to what exact searches start from.

There are list schedules, rounds of annealing, a search by makespan (`makespan.py`), and a bound.

Small spaces are walked whole. Rules, limits and memory are checked on every plan that the search would take.
A plan is said to be optimal only where the objective is one term and meets its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, count, islice, takewhile

from ...formulations.jobs.tables import JobPlan, tables_of
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..exhaustive import walked
from ..families import Start
from ..protocol import Claim, Deadline, SolveOptions, Statistics, Support
from ..rounds import RoundSearch, claim_of, starts_by
from .annealing import Annealing, Play, Sequenced, list_schedules
from .bounds import bound_of
from .dispatching import dispatched
from .makespan import MakespanSearch
from .passages import MOST_SETS, is_checked, unit_sets

_BOUND_SHARE = 0.3
"""Share of the time after which the bound is not improved any more."""

ROUNDS = 8
"""Rounds of annealing where no time is given."""

_RESTART = 0.25
"""Warmth of rounds that go on from the best plan."""


def solve_jobs(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return good plans, and a bound."""
    found = walked(problem, options)
    if found is not None:
        return found
    fixed = options.time_limit_s is None
    begun = partial(search_of, problem, seed=options.seed, most=options.top, fixed=fixed)
    return claim_of(begun, problem, options, support)


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield plans and a bound that are found quickly."""
    return starts_by(partial(search_of, problem, seed=options.seed, fixed=True), options)


class JobsSearch(RoundSearch[JobPlan]):
    """Rounds of annealing for one problem, each from the best plan or from a list schedule.

    `fixed`: search `ROUNDS` rounds, whatever time there is.
    """

    def __init__(self, problem: Problem, *, seed: int, most: int = 1, fixed: bool = False) -> None:
        super().__init__(problem, most=most)
        self._fixed = fixed
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
        self.least = bound_of(self._problem, deadline.share(_BOUND_SHARE))
        return self.least

    @property
    def statistics(self) -> Statistics:
        """How many moves were tried."""
        return {"steps": sum(search.steps for search in self._searches)}

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
    kind = MakespanSearch if first == Term.MAKESPAN else JobsSearch
    return kind(problem, seed=seed, most=most, fixed=fixed)

"""From a graph of tasks to a claim: list schedules, annealing along the critical path, and a lower bound.

Rules and limits are checked on every plan. A plan is said to be optimal where the objective is one term and
meets its bound, or where all plans were walked.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, count, islice

from ...formulations.judge import examined
from ...formulations.problem import Feature, Problem
from ...formulations.task_graph.paths import paths_of
from ...formulations.task_graph.quantities import ScheduleTerm
from ...formulations.task_graph.tables import Schedule, TaskTables, tables_of
from ..exhaustive import walked
from ..pool import Pool
from ..protocol import Claim, Deadline, SolveOptions, StopReason, Support
from ..repairing import repair
from ..showing import Showing
from ..topological_orders import by_priority
from .bounds import latency_bound
from .lists import first_schedules, list_schedule, upward_ranks
from .moves import Moves

ROUNDS = 12
"""Rounds without a better plan that end a search where no time is given."""

MOVES, _FEWEST_MOVES, _MOVES_OF_A_TASK = 3_000, 200, 100
"""Most moves of a round, for a few dozen tasks; fewest for many, whose rounds are to take about as long; and
most for each task, where there are few."""

_RESTART = 0.3
"""Warmth of rounds that go on from the best plan."""

_NOISE = 0.2
"""By how much ranks are changed for further list schedules, as a share."""

_MOST_SETS = 12
"""Most sets of units that are searched one by one, where few may be used."""


def solve_schedule(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return good plans, and a bound."""
    return walked(problem, options) or _Solve(problem, options, support).run()


class ScheduleSearch:
    """The search for one problem: its valid plans, the best first, and a bound."""

    def __init__(self, problem: Problem, *, seed: int, most: int = 1) -> None:
        self._problem, self._seed, self.pool = problem, seed, Pool[Schedule](problem, most=most)
        self._tables = tables = tables_of(problem)
        self._paths = paths_of(tables)
        checked = {Feature.LIMITS, Feature.RULES, Feature.OPAQUE_RULES}
        broken = self._count_broken if problem.features & set(map(str, checked)) else None
        self._sets = list(islice(_unit_sets(problem, tables), _MOST_SETS))
        self._moves = [
            Moves(tables, problem.ranking, units, broken=broken, seed=seed + number)
            for number, units in enumerate(self._sets)
        ]
        self.bound = self._least()

    @property
    def steps(self) -> int:
        """How many moves were tried."""
        return sum(moves.steps for moves in self._moves)

    def begin(self, deadline: Deadline) -> None:
        """Take the list schedules, and repair what breaks something if there is nothing else."""
        for units in self._sets:
            for code in first_schedules(self._tables, self._paths, units):
                self.pool.offer(code)
            if deadline.passed and self.pool.codes:
                break
        if self._problem.ranking[0] != ScheduleTerm.LATENCY:
            self.pool.offer(self._quickest())
        if not self.pool.codes and self.pool.broken:
            repair(self._problem, [*self.pool.broken], deadline, self.pool.offer)

    def rounds(self, deadline: Deadline) -> Iterator[bool]:
        """Search, a round after the other; after each plan say whether it is the best one so far."""
        tasks = self._tables.task_count
        moves = min(max(_FEWEST_MOVES, MOVES * 40 // max(40, tasks)), _MOVES_OF_A_TASK * tasks)
        for number in count():
            which = number // 2 % len(self._sets)
            start = self._start(which, number)
            if start is None:
                yield False
                continue
            warmth = _RESTART if number % 2 else 1.0
            for code in self._moves[which].round(start, moves, deadline, warmth):
                if self.pool.offer(code):
                    yield True
            yield False

    def _start(self, which: int, number: int) -> Schedule | None:
        """Return where a round begins: at the best plan, or at a list schedule with other ranks."""
        best = self.pool.codes[:1]
        if number % 2 and best and set(best[0].units) <= set(self._sets[which]):
            return best[0]
        rng = random.Random(f"ranks {self._seed} {number}")
        ranks = [rank * (1 + rng.uniform(-_NOISE, _NOISE)) for rank in upward_ranks(self._tables)]
        ahead = self._paths.tail_us if number // 2 % 2 else None
        order = by_priority(self._tables.tasks, [-rank for rank in ranks])
        found = list_schedule(self._tables, order, ahead, self._sets[which])
        if found is not None:
            self.pool.offer(found)
        return found or (best[0] if best else next(iter(self.pool.broken), None))

    def _quickest(self) -> Schedule:
        """Return the plan with each task on the unit where it takes least."""
        units = [
            min(own, key=lambda unit: (self._tables.time_us[task][unit] or 0, unit))
            for task, own in enumerate(self._tables.allowed)
        ]
        return self._tables.ordered(units, range(self._tables.task_count))

    def _least(self) -> int:
        """Return a lower bound on the first term."""
        first = self._problem.ranking[0]
        if first == ScheduleTerm.LATENCY:
            return latency_bound(self._tables, self._paths)
        if first == ScheduleTerm.WORK:
            rows = zip(self._tables.time_us, self._tables.allowed, strict=True)
            return sum(min((row[unit] or 0 for unit in own), default=0) for row, own in rows)
        return max(1, self._problem.limits.min_units or 1)

    def _count_broken(self, code: Schedule) -> int:
        return len(examined(self._problem, code)[1])


def _unit_sets(problem: Problem, tables: TaskTables) -> Iterator[tuple[int, ...]]:
    """Yield sets of units that plans may use, as large as they may be."""
    most = min(tables.unit_count, problem.limits.max_units or tables.unit_count)
    yield from combinations(range(tables.unit_count), most)


class _Solve:
    """One solve of one problem."""

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        self._problem, self._options = problem, options
        self._handling = support.handling(problem)
        self._deadline = Deadline(options.time_limit_s)
        self._showing = Showing(options)
        self._search = ScheduleSearch(problem, seed=options.seed, most=options.top)

    def run(self) -> Claim:
        """Search until the best plan meets the bound, or the time or the rounds are up."""
        search, limit_s = self._search, self._options.time_limit_s
        search.begin(self._deadline)
        left = ROUNDS
        for better in search.rounds(self._deadline):
            if self._proven or search.pool.rejected > self._options.max_rejections:
                break
            if better:
                left = ROUNDS
                self._showing.offer(lambda: self._claim(StopReason.TIME_LIMIT))
            left -= 1
            if self._deadline.passed or (limit_s is None and left <= 0):
                break
        return self._claim(search.pool.stopped(self._options, self._deadline))

    @property
    def _proven(self) -> bool:
        return self._search.pool.meets(self._search.bound)

    def _claim(self, stop: StopReason) -> Claim:
        search = self._search
        return search.pool.claim(
            bound=search.bound, stop=stop, handling=self._handling, statistics={"moves": search.steps}
        )

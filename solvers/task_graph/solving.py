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
from ..exhaustive import ExhaustiveBackend, count_plans
from ..protocol import Claim, Deadline, SolveOptions, SolveStatus, StopReason, Support
from ..repairing import repair
from ..showing import Showing
from .bounds import latency_bound
from .lists import by_priority, first_schedules, list_schedule, upward_ranks
from .moves import Moves

MOST_WALKED = 3_000
"""Spaces of so many plans are walked whole, which is a proof whatever the objective and the rules."""

_WALK_S = 2.0
"""So long that may take; with less time there is the search."""

ROUNDS = 12
"""Rounds without a better plan that end a search where no time is given."""

_MOVES = 3_000
"""Moves of a round for few tasks; for many fewer, so that rounds take about as long."""

_RESTART = 0.3
"""Warmth of rounds that go on from the best plan."""

_NOISE = 0.2
"""By how much ranks are changed for further list schedules, as a share."""

_MOST_SETS = 12
"""Most sets of units that are searched one by one, where few may be used."""

_MOST_BROKEN = 20
"""Plans that break something are kept for repair, if no other is found."""


def solve_schedule(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return good plans, and a bound."""
    hurried = options.time_limit_s is not None and options.time_limit_s < _WALK_S
    if not hurried and count_plans(problem) <= MOST_WALKED:
        return ExhaustiveBackend().solve(problem, options)
    return _Solve(problem, options, support).run()


class ScheduleSearch:
    """The search for one problem: its valid plans, the best first, and a bound.

    Parameters
    ----------
    problem, seed
        The problem, and the seed of everything that is drawn.
    most
        How many plans are kept.
    """

    def __init__(self, problem: Problem, *, seed: int, most: int = 1) -> None:
        self._problem, self._most, self._seed = problem, most, seed
        self._tables = tables = tables_of(problem)
        self._paths = paths_of(tables)
        checked = {Feature.LIMITS, Feature.RULES, Feature.OPAQUE_RULES}
        broken = self._count_broken if problem.features & set(map(str, checked)) else None
        self._sets = list(islice(_unit_sets(problem, tables), _MOST_SETS))
        self._moves = [
            Moves(tables, problem.ranking, units, broken=broken, seed=seed + number)
            for number, units in enumerate(self._sets)
        ]
        self._kept: dict[Schedule, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._broken: dict[Schedule, None] = {}
        self.rejected = 0
        self.bound = self._least()

    @property
    def steps(self) -> int:
        """How many moves were tried."""
        return sum(moves.steps for moves in self._moves)

    @property
    def codes(self) -> list[Schedule]:
        """The best valid plans, in canonical order."""
        return sorted(self._kept, key=self._kept.__getitem__)

    def begin(self, deadline: Deadline) -> None:
        """Take the list schedules, and repair what breaks something if there is nothing else."""
        for units in self._sets:
            for code in first_schedules(self._tables, self._paths, units):
                self._offer(code)
            if deadline.passed and self._kept:
                break
        if self._problem.ranking[0] != ScheduleTerm.LATENCY:
            self._offer(self._quickest())
        if not self._kept and self._broken:
            repair(self._problem, [*self._broken], deadline, self._take)

    def rounds(self, deadline: Deadline) -> Iterator[bool]:
        """Search, a round after the other; after each plan say whether it is the best one so far."""
        moves = max(200, _MOVES * 40 // max(40, self._tables.task_count))
        for number in count():
            which = number // 2 % len(self._sets)
            start = self._start(which, number)
            if start is None:
                yield False
                continue
            warmth = _RESTART if number % 2 else 1.0
            for code in self._moves[which].round(start, moves, deadline, warmth):
                if self._offer(code):
                    yield True
            yield False

    def _start(self, which: int, number: int) -> Schedule | None:
        """Return where a round begins: at the best plan, or at a list schedule with other ranks."""
        best = self.codes[:1]
        if number % 2 and best and set(best[0].units) <= set(self._sets[which]):
            return best[0]
        rng = random.Random(f"ranks {self._seed} {number}")
        ranks = [rank * (1 + rng.uniform(-_NOISE, _NOISE)) for rank in upward_ranks(self._tables)]
        ahead = self._paths.tail_us if number // 2 % 2 else None
        order = by_priority(self._tables, ranks)
        found = list_schedule(self._tables, order, ahead, self._sets[which])
        if found is not None:
            self._offer(found)
        return found or (best[0] if best else next(iter(self._broken), None))

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

    def _offer(self, code: Schedule) -> bool:
        """Keep a plan if it is valid and wanted; return whether it is the best one."""
        if code in self._kept:
            return False
        numbers, broken = examined(self._problem, code)
        if broken:
            opaque = {rule.name for rule in self._problem.opaque_rules}
            self.rejected += {violation.rule for violation in broken} <= opaque
            if len(self._broken) < _MOST_BROKEN:
                self._broken[code] = None
            return False
        best = min(self._kept.values(), default=None)
        key = numbers.values(self._problem.ranking), self._problem.formulation.key(self._problem, code)
        self._kept[code] = key
        if len(self._kept) > self._most:
            del self._kept[max(self._kept, key=self._kept.__getitem__)]
        return best is None or key < best

    def _take(self, code: Schedule) -> None:
        self._offer(code)


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
            if self._proven or search.rejected > self._options.max_rejections:
                break
            if better:
                left = ROUNDS
                self._showing.offer(lambda: self._claim(StopReason.TIME_LIMIT))
            left -= 1
            if self._deadline.passed or (limit_s is None and left <= 0):
                break
        return self._claim(self._stop())

    @property
    def _proven(self) -> bool:
        """Whether the best plan is proved to be one, and no further ones are wanted."""
        terms, best = self._problem.objective.terms, self._search.codes[:1]
        if not best or len(terms) > 1 or self._options.top > 1:
            return False
        numbers = self._problem.formulation.numbers(self._problem, best[0])
        return bool(numbers.values(terms) == (self._search.bound,))

    def _stop(self) -> StopReason:
        if self._search.rejected > self._options.max_rejections:
            return StopReason.REJECTION_LIMIT
        return StopReason.TIME_LIMIT if self._deadline.passed else StopReason.SPACE_LIMIT

    def _claim(self, stop: StopReason) -> Claim:
        """Return what the plans so far allow to claim."""
        problem, codes, proven = self._problem, self._search.codes, self._proven
        values = None
        if codes:
            values = problem.formulation.numbers(problem, codes[0]).values(problem.objective.terms)
        status = SolveStatus.OPTIMAL if proven else SolveStatus.FEASIBLE
        return Claim(
            status=status if codes else SolveStatus.NO_SOLUTION,
            stop=StopReason.COMPLETE if proven else stop,
            plans=tuple(problem.formulation.plan(problem, code) for code in codes),
            values=values,
            bound=self._search.bound,
            proven=int(proven),
            handling=self._handling,
            statistics={"moves": self._search.steps},
        )

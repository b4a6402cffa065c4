"""From a graph of tasks to a claim: list schedules, annealing along the critical path, and a proof.

Rules and limits are checked on every plan. A plan is said to be optimal where the objective is one term and
meets its bound, or where all plans were walked.
"""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import count, islice
from math import exp
from typing import Any

import numpy as np

from ...formulations.jobs.reach import Reach
from ...formulations.jobs.tables import JobPlan
from ...formulations.jobs.tasks import TaskTables, tables_of
from ...formulations.judge import examined
from ...formulations.problem import Feature, Problem
from ...formulations.terms import Term
from ..exhaustive import walked
from ..families import Start
from ..jobs.passages import MOST_SETS, unit_sets
from ..protocol import Claim, Deadline, SolveOptions, Statistics, Support
from ..repairing import repair
from ..rounds import Patience, RoundSearch, claim_of, starts_by
from ..topological_orders import by_priority

Key = tuple[int, ...]
"""What makes a schedule worse: what it breaks, then the terms of the objective."""

_WARMTH = 0.02
"""How much worse, as a share, a schedule may be to be accepted with a chance of 1/e at the beginning."""

_BY_CHANCE = 0.15
"""Share of the moves that are not about the critical path."""


class Critical:
    """A schedule with its times, and what keeps each task waiting.

    `order`: a topological order of the tasks; they start as early as they can in it.
    """

    def __init__(self, tables: TaskTables, units: list[int], order: list[int]) -> None:
        self.units, self.order = units, order
        count = tables.task_count
        last, free = [-1] * tables.unit_count, [0] * tables.unit_count
        self.waits_for, self.by_unit = [-1] * count, [False] * count
        end = [0] * count
        self.latency_us, self.last = -1, 0
        self.busy = dict.fromkeys(units, 0)
        for task in order:
            unit = units[task]
            begin, blamed, by_unit = tables.entry_us[task][unit], -1, False
            for other, square in tables.before[task]:
                at = end[other] + square[units[other]][unit]
                if at >= begin:
                    begin, blamed = at, other
            for near in tables.near[unit]:
                if free[near] > begin:
                    begin, blamed, by_unit = free[near], last[near], True
            time_us = tables.time_us[task][unit] or 0
            end[task] = free[unit] = begin + time_us
            last[unit] = task
            self.busy[unit] += time_us
            self.waits_for[task], self.by_unit[task] = blamed, by_unit
            out = end[task] + tables.exit_us[task][unit]
            if out > self.latency_us:
                self.latency_us, self.last = out, task

    def path(self) -> list[int]:
        """Return the tasks that make the latency what it is, the last one first."""
        found = [self.last]
        while self.waits_for[found[-1]] >= 0:
            found.append(self.waits_for[found[-1]])
        return found

    @property
    def terms(self) -> dict[str, int]:
        """The terms of the objective."""
        return {
            Term.LATENCY: self.latency_us,
            Term.WORK: sum(self.busy.values()),
            Term.UNITS: len(self.busy),
        }


class Moves:
    """Simulated annealing over schedules.

    `ranking`: the terms, most important first. `broken`: from a schedule to how much of rules and limits it
    breaks; None: there are none.
    """

    def __init__(
        self,
        tables: TaskTables,
        ranking: tuple[str, ...],
        units: Collection[int],
        *,
        broken: Callable[[JobPlan], int] | None = None,
        seed: int = 0,
    ) -> None:
        self._tables, self._ranking, self._broken = tables, ranking, broken
        self._rng = random.Random(f"task graph {seed}")
        self._choices = [tuple(unit for unit in own if unit in units) for own in tables.allowed]
        self._movable = [task for task, own in enumerate(self._choices) if len(own) > 1]
        self.steps = 0

    def round(self, start: JobPlan, moves: int, deadline: Deadline, warmth: float = 1.0) -> Iterator[JobPlan]:
        """Go on from a schedule; yield each that is better than all of this round."""
        now = Critical(self._tables, [*start.units], [*start.order])
        key = best = self._key(now)
        for move in range(moves):
            if deadline.passed:
                return
            other = self._moved(now)
            self.steps += 1
            if other is None:
                continue
            found = self._key(other)
            scale = _WARMTH * warmth * (1 - move / moves) * max(1, sum(key[:2]))
            worse = sum(found[:2]) - sum(key[:2])
            if found <= key or (scale > 0 and self._rng.random() < exp(-min(50.0, max(0, worse) / scale))):
                now, key = other, found
                if key < best:
                    best = key
                    yield self._tables.scheduled(now.units, now.order)

    def _key(self, now: Critical) -> Key:
        excess = 0
        for unit in now.busy:
            capacity = self._tables.unit_memory[unit]
            if capacity is not None:
                held = self._tables.weights.of(task for task, own in enumerate(now.units) if own == unit)
                excess += max(0, held - capacity)
        if self._broken is not None and not excess:
            excess = self._broken(self._tables.scheduled(now.units, now.order))
        terms = now.terms
        return (excess, *(terms[term] for term in self._ranking))

    def _moved(self, now: Critical) -> Critical | None:
        """Return a schedule that one move makes; None: there is nothing to move."""
        rng = self._rng
        if self._ranking[0] == Term.LATENCY and rng.random() >= _BY_CHANCE:
            path = now.path()
            task = rng.choice(path)
            if now.by_unit[task] and rng.random() < 0.5:
                return self._before(now, task, now.waits_for[task])
        elif rng.random() < 0.5 and len(now.order) > 1:
            task = rng.choice(now.order[1:])
            place = now.order.index(task)
            return self._before(now, task, now.order[rng.randrange(max(0, place - 10), place)])
        elif rng.random() < 0.5 and len(self._movable) > 1:
            return self._exchanged(now, *rng.sample(self._movable, 2))
        else:
            task = rng.choice(self._movable) if self._movable else 0
        others = [unit for unit in self._choices[task] if unit != now.units[task]]
        if not others:
            return None
        units = [*now.units]
        units[task] = rng.choice(others)
        return Critical(self._tables, units, now.order)

    def _exchanged(self, now: Critical, one: int, other: int) -> Critical | None:
        """Return the schedule with two tasks on the unit of each other; None: they cannot run there."""
        units = [*now.units]
        units[one], units[other] = units[other], units[one]
        if any(units[task] not in self._choices[task] for task in (one, other)):
            return None
        return Critical(self._tables, units, now.order)

    def _before(self, now: Critical, task: int, other: int) -> Critical | None:
        """Return the schedule with a task, and what it needs, before another one; None: it waits for that."""
        ancestors = self._tables.tasks.ancestors[task]
        if ancestors >> other & 1:
            return None
        start, stop = now.order.index(other), now.order.index(task)
        between = now.order[start:stop]
        ahead = [each for each in between if ancestors >> each & 1]
        rest = [each for each in between if not ancestors >> each & 1]
        order = [*now.order[:start], *ahead, task, *rest, *now.order[stop + 1 :]]
        return Critical(self._tables, now.units, order)


ROUNDS = 12
"""Rounds without a better plan that end a search where no time is given."""

MOVES, _FEWEST_MOVES, _MOVES_OF_A_TASK = 3_000, 200, 100
"""Most moves of a round, for a few dozen tasks; fewest for many, whose rounds are to take about as long; and
most for each task, where there are few."""

_RESTART = 0.3
"""Warmth of rounds that go on from the best plan."""

_NOISE = 0.2
"""By how much ranks are changed for further list schedules, as a share."""

_START_ROUNDS = 6
"""Rounds without a better plan that end that search."""

Ahead = Sequence[Sequence[int]]
"""What is added to the end of each task on each unit when units are compared."""

_PRICE_ROUNDS, _SCALE = 80, 10_000
"""Rounds in which prices are improved; prices are whole numbers up to the second."""

_MARKS = 400
"""Most heads, and most tails, that windows begin and end at."""

_WORST = np.iinfo(np.int64).max // _SCALE**2


def solve_schedule(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return good plans, and a bound."""
    found = walked(problem, options)
    if found is not None:
        return found
    begun = partial(ScheduleSearch, problem, seed=options.seed, most=options.top)
    return claim_of(begun, problem, options, support, Patience(without_better=ROUNDS))


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield plans and a bound that are found quickly."""
    begun = partial(ScheduleSearch, problem, seed=options.seed)
    return starts_by(begun, options, Patience(without_better=_START_ROUNDS))


class ScheduleSearch(RoundSearch[JobPlan]):
    """The search for one problem: its valid plans, the best first, and a bound."""

    def __init__(self, problem: Problem, *, seed: int, most: int = 1) -> None:
        super().__init__(problem, most=most)
        self._seed = seed
        self._tables = tables = tables_of(problem)
        self._reach = Reach(tables=tables)
        checked = {Feature.LIMITS, Feature.RULES, Feature.OPAQUE_RULES}
        broken = self._count_broken if problem.features & set(map(str, checked)) else None
        self._sets = list(islice(unit_sets(problem, tables), MOST_SETS))
        self._moves = [
            Moves(tables, problem.ranking, units, broken=broken, seed=seed + number)
            for number, units in enumerate(self._sets)
        ]
        self.least = self._least()

    @property
    def statistics(self) -> Statistics:
        """How many moves were tried."""
        return {"moves": sum(moves.steps for moves in self._moves)}

    def begin(self, deadline: Deadline) -> None:
        """Take the list schedules, and repair what breaks something if there is nothing else."""
        for units in self._sets:
            for code in first_schedules(self._tables, self._reach, units):
                self.pool.offer(code)
            if deadline.passed and self.pool.codes:
                break
        if self._problem.ranking[0] != Term.LATENCY:
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

    def _start(self, which: int, number: int) -> JobPlan | None:
        """Return where a round begins: at the best plan, or at a list schedule with other ranks."""
        best = self.pool.codes[:1]
        if number % 2 and best and self._sets[which].issuperset(best[0].units):
            return best[0]
        rng = random.Random(f"ranks {self._seed} {number}")
        ranks = [rank * (1 + rng.uniform(-_NOISE, _NOISE)) for rank in upward_ranks(self._tables)]
        ahead = self._reach.rest_us if number // 2 % 2 else None
        order = by_priority(self._tables.tasks, [-rank for rank in ranks])
        found = list_schedule(self._tables, order, ahead, self._sets[which])
        if found is not None:
            self.pool.offer(found)
        return found or (best[0] if best else next(iter(self.pool.broken), None))

    def _quickest(self) -> JobPlan:
        """Return the plan with each task on the unit where it takes least."""
        units = [
            min(own, key=lambda unit: (self._tables.time_us[task][unit] or 0, unit))
            for task, own in enumerate(self._tables.allowed)
        ]
        return self._tables.scheduled(units, range(self._tables.task_count))

    def _least(self) -> int:
        """Return a lower bound on the first term."""
        first = self._problem.ranking[0]
        if first == Term.LATENCY:
            return latency_bound(self._tables, self._reach)
        if first == Term.WORK:
            rows = zip(self._tables.time_us, self._tables.allowed, strict=True)
            return sum(min((row[unit] or 0 for unit in own), default=0) for row, own in rows)
        return max(1, self._problem.limits.min_units or 1)

    def _count_broken(self, code: JobPlan) -> int:
        return len(examined(self._problem, code)[1])


def upward_ranks(tables: TaskTables) -> list[float]:
    """Return for each task its longest path to the end, at mean times of units and of pairs of them."""
    pairs = max(1, tables.unit_count * (tables.unit_count - 1))
    ranks = [0.0] * tables.task_count
    for task in range(tables.task_count - 1, -1, -1):
        times = [tables.time_us[task][unit] or 0 for unit in tables.allowed[task]]
        rest = max(
            (sum(map(sum, square)) / pairs + ranks[other] for other, square in tables.readers[task]),
            default=0.0,
        )
        ranks[task] = sum(times) / max(1, len(times)) + rest
    return ranks


def list_schedule(
    tables: TaskTables, order: Sequence[int], ahead: Ahead | None = None, units: Collection[int] | None = None
) -> JobPlan | None:
    """Return the list schedule of a topological order; None: no unit can run a task.

    Each task goes to the unit where it, or what follows, ends first, also in a gap between others. Where no
    unit has room for a task, one is too full, which a repair may mend.

    `ahead`: see `Ahead`; None: nothing, as in HEFT. `units`: those that may be used; None: all.
    """
    busy: list[list[tuple[int, int]]] = [[] for _ in tables.units]
    room, held = [*tables.unit_memory], [set[int]() for _ in tables.units]
    unit_of, end, start = [0] * tables.task_count, [0] * tables.task_count, [0] * tables.task_count
    for task in order:
        best: tuple[bool, int, int, int, int] | None = None
        for unit in tables.allowed[task]:
            if units is not None and unit not in units:
                continue
            free = room[unit]
            full = free is not None and free < tables.weights.more(task, held[unit])
            ready = tables.entry_us[task][unit]
            for other, square in tables.before[task]:
                ready = max(ready, end[other] + square[unit_of[other]][unit])
            time_us = tables.time_us[task][unit] or 0
            begin = _first_gap(busy[unit], ready, time_us)
            stop = begin + time_us
            found = (full, stop + (ahead[task][unit] if ahead else 0), stop, begin, unit)
            best = found if best is None else min(best, found)
        if best is None:
            return None
        _, _, end[task], start[task], unit = best
        unit_of[task] = unit
        left = room[unit]
        room[unit] = None if left is None else left - tables.weights.more(task, held[unit])
        held[unit].add(task)
        for near in tables.near[unit]:
            insort(busy[near], (start[task], end[task]))
    return tables.scheduled(unit_of, sorted(order, key=lambda task: (start[task], task)))


def _first_gap(busy: list[tuple[int, int]], ready: int, time_us: int) -> int:
    """Return when a unit is first free for so long, not before `ready`; its busy times are sorted."""
    begin = ready
    if busy and busy[-1][1] > ready:
        for start, stop in busy:
            if stop > begin:
                if start - begin >= time_us:
                    return begin
                begin = stop
    return begin


def first_schedules(tables: TaskTables, reach: Reach, units: Collection[int] | None = None) -> list[JobPlan]:
    """Return schedules of HEFT and PEFT, by upward rank and by the longest path, and of single units.

    HEFT (Topcuoglu, Hariri and Wu 2002): by upward rank, at mean times; on the unit where the task ends
    first. PEFT (Arabnejad and Barbosa 2014, "List Scheduling Algorithm for Heterogeneous Systems by an
    Optimistic Cost Table"): on the unit where its end and the optimistic cost of what follows are least
    together; that cost is the tail of the task on the unit (`Reach.rest_us`).
    """
    tails = [
        min((option.time_us + reach.rest_us[task][option.unit] for option in own), default=0)
        for task, own in enumerate(tables.options)
    ]
    found = []
    for priority in (upward_ranks(tables), tails):
        order = by_priority(tables.tasks, [-rank for rank in priority])
        found += [list_schedule(tables, order, ahead, units) for ahead in (None, reach.rest_us)]
    order = list(range(tables.task_count))
    for unit in range(tables.unit_count) if units is None else units:
        found.append(list_schedule(tables, order, None, (unit,)))
    return [*dict.fromkeys(each for each in found if each is not None)]


def latency_bound(tables: TaskTables, reach: Reach) -> int:
    """Return a lower bound on the latency of all plans: longest paths, and work between heads and tails.

    With a price p_k >= 0 for each set k of units that take turns (`TaskTables.turns`), and W_u the sum of the
    prices of the sets of unit u, tasks S that start at h or later and have q behind them prove

        (latency - h - q) * sum of p >= sum over S of min over units of W_u * t_u,

    the dual of the relaxation that gives shares of tasks to units (Lenstra, Shmoys and Tardos 1990).
    """
    least = np.array(
        [[_WORST if time is None else time for time in row] for row in tables.time_us], dtype=np.int64
    )
    member = np.array(
        [[unit in own for unit in range(tables.unit_count)] for own in tables.turns], dtype=np.int64
    )
    heads = np.array([_least(row, own) for row, own in zip(reach.first_us, tables.allowed, strict=True)])
    tails = np.array([_least(row, own) for row, own in zip(reach.rest_us, tables.allowed, strict=True)])
    found = reach.longest_us
    for prices in (np.ones(len(member), dtype=np.int64), _prices(least, member)):
        work = (least * (prices @ member)).min(axis=1)
        found = max(found, _best_window(heads, tails, work, int(prices.sum())))
    return found


def _least(row: Sequence[int], allowed: Sequence[int]) -> int:
    return min((row[unit] for unit in allowed), default=0)


def _best_window(heads: Any, tails: Any, work: Any, total: int) -> int:
    """Return the largest of h + q + work / total over heads h and tails q, rounded up."""
    marks = [_marks(heads), _marks(tails)]
    places = [
        np.searchsorted(own, each, side="right") - 1 for own, each in zip(marks, (heads, tails), strict=True)
    ]
    grid = np.zeros((len(marks[0]), len(marks[1])), dtype=np.int64)
    np.add.at(grid, tuple(places), work)
    inside = grid[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    around = marks[0][:, None] + marks[1][None, :]
    return int(np.where(inside > 0, around - (-inside // total), 0).max())


def _marks(values: Any) -> Any:
    """Return the values, each once; of very many some, the least one among them."""
    found = np.unique(values)
    return found[:: max(1, -(-len(found) // _MARKS))]


def _prices(least: Any, member: Any) -> Any:
    """Return the prices of the sets that prove most about all tasks, as far as some rounds find them."""
    prices = np.ones(len(member)) / len(member)
    best_value, best = -1.0, prices
    tasks = np.arange(len(least))
    for turn in range(1, _PRICE_ROUNDS + 1 if len(member) > 1 else 2):
        weighed = least * (prices @ member)
        chosen = weighed.argmin(axis=1)
        value = float(weighed[tasks, chosen].sum())
        if value > best_value:
            best_value, best = value, prices
        by_unit = np.bincount(chosen, weights=least[tasks, chosen], minlength=least.shape[1])
        loads = member @ by_unit
        prices = prices * (1 + (loads / max(loads.mean(), 1e-9) - 1) / (2 + turn) ** 0.5 / 2)
        prices = np.maximum(prices, 1e-5)
        prices /= prices.sum()
    return np.maximum(1, np.round(_SCALE * best / best.max())).astype(np.int64)

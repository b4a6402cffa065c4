"""Schedules that change: tasks of the critical path go to other units, or before what keeps them waiting."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from math import exp

from ...formulations.jobs.tables import JobPlan
from ...formulations.jobs.tasks import TaskTables
from ...formulations.terms import Term
from ..protocol import Deadline

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

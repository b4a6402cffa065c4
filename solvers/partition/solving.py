"""From a layer graph to a claim: searches over orders, a bound by work, and a proof where down-sets are few.

Rules and limits are checked on every plan. A plan is said to be optimal where the objective is one term and
meets its bound, or where all chains of down-sets were compared.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from ...formulations.partition.bounds import PartBounds, bounds_of
from ...formulations.partition.tables import Code, graph_to_search
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..exhaustive import walked
from ..families import Start
from ..protocol import LEAST_S, Claim, Deadline, SolveOptions, Statistics, Support, TimeIsUpError
from ..repairing import repair
from ..rounds import Patience, RoundSearch, claim_of, starts_by
from ..topological_orders import Order, TooManySetsError, by_priority, first_orders, reshuffled
from .chains import best_chain
from .line import LOAD, Arrays, Line, Measure, best_cuts, build_arrays, most_boundaries


class Parts:
    """A partition that changes block by block."""

    def __init__(self, arrays: Arrays, line: Line) -> None:
        self._arrays, self.kinds = arrays, line.kinds
        self._time, self._cost = arrays.time.tolist(), arrays.cost.tolist()
        self._barred = arrays.barred.tolist()
        self._outside = arrays.outside.tolist()
        self.part_of = [0] * arrays.block_count
        self.loads = [0] * len(line.kinds)
        self.held: list[set[int]] = [set(blocks) for _, blocks in line.parts]
        self.bytes = [arrays.weights.of(blocks) for blocks in self.held]
        for part, (kind, blocks) in enumerate(line.parts):
            for block in blocks:
                self.part_of[block] = part
                self.loads[part] += self._time[kind][block]
        self._count: list[dict[int, int]] = []
        for tensor, blocks in enumerate(arrays.pins):
            count: dict[int, int] = {}
            for block in blocks:
                count[self.part_of[block]] = count.get(self.part_of[block], 0) + 1
            self._count.append(count)
            if len(count) > 1 or self._outside[tensor]:
                for part in count:
                    self.loads[part] += self._cost[self.kinds[part]][tensor]

    def descend(self, rng: random.Random, deadline: Deadline) -> None:
        """Take blocks from the part with the largest load, as long as that helps."""
        while not deadline.passed:
            fullest = max(range(len(self.loads)), key=self.loads.__getitem__)
            if not self._lighten(fullest, rng):
                return

    def _lighten(self, part: int, rng: random.Random) -> bool:
        """Move blocks out of a part while both loads are below what it had; return whether some were."""
        own = [block for block, other in enumerate(self.part_of) if other == part]
        rng.shuffle(own)
        before = self.loads[part]
        for block in own:
            for target in self._targets(block, part):
                less, more = self._change(block, part, target)
                if max(self.loads[part] + less, self.loads[target] + more) < self.loads[part]:
                    self._move(block, part, target, less, more)
                    break
        return self.loads[part] < before

    def _targets(self, block: int, part: int) -> Sequence[int]:
        """Return the parts that a block can move to: not before what it needs, not behind what needs it."""
        blocks, weights = self._arrays.graph.blocks, self._arrays.weights
        low = max((self.part_of[other] for other in blocks.before[block]), default=0)
        high = min((self.part_of[other] for other in blocks.after[block]), default=len(self.loads) - 1)
        if low == high:
            return ()
        found = []
        for target in range(low, high + 1):
            kind = self.kinds[target]
            capacity = self._arrays.capacity[kind]
            fits = capacity is None or (
                self.bytes[target] + weights.more(block, self.held[target]) <= capacity
            )
            if target != part and fits and not self._barred[kind][block]:
                found.append(target)
        return found

    def _change(self, block: int, part: int, target: int) -> tuple[int, int]:
        """Return by how much the loads of both parts change if a block moves."""
        own, other = self.kinds[part], self.kinds[target]
        less, more = -self._time[own][block], self._time[other][block]
        for tensor in self._arrays.tensors_of[block]:
            count, pins = self._count[tensor], len(self._arrays.pins[tensor])
            here, there = count[part], count.get(target, 0)
            outside = self._outside[tensor]
            paid_here, paid_there = outside or here < pins, there > 0
            pays_here, pays_there = here > 1, outside or there + 1 < pins
            less += (pays_here - paid_here) * self._cost[own][tensor]
            more += (pays_there - paid_there) * self._cost[other][tensor]
        return less, more

    def _move(self, block: int, part: int, target: int, less: int, more: int) -> None:
        self.part_of[block] = target
        self.loads[part] += less
        self.loads[target] += more
        weights = self._arrays.weights
        self.held[part].remove(block)
        self.bytes[part] -= weights.more(block, self.held[part])
        self.bytes[target] += weights.more(block, self.held[target])
        self.held[target].add(block)
        for tensor in self._arrays.tensors_of[block]:
            count = self._count[tensor]
            count[target] = count.get(target, 0) + 1
            count[part] -= 1
            if not count[part]:
                del count[part]


FIRST_ORDERS = 8
"""Orders to begin with; of graphs with too many blocks for one program only a few."""

_LARGE_ORDERS = 3

_NEAR = 16
"""Boundaries on either side of a cut that are tried again after a change."""


class PartSearch:
    """Partitions of one graph, better and better."""

    def __init__(self, arrays: Arrays, *, measure: Measure = LOAD, seed: int = 0) -> None:
        self._arrays, self._measure = arrays, measure
        self._rng = random.Random(f"partition {seed}")
        self._most = most_boundaries(arrays)
        self.best: Line | None = None
        self.programs = 0

    def begin(self, deadline: Deadline) -> Iterator[Line]:
        """Yield the best cuts of the first orders, each after moves of blocks; one at least."""
        large = self._arrays.block_count >= self._most
        orders = first_orders(self._arrays.graph.blocks, self._rng, _LARGE_ORDERS if large else FIRST_ORDERS)
        for order in orders:
            line = self._cut(order)
            if line is not None:
                yield self._keep(line)
                if self._measure.largest and not deadline.passed:
                    moved = self._moved(line, deadline)
                    if moved is not None:
                        yield self._keep(moved)
            if deadline.passed:
                return

    def rounds(self, deadline: Deadline) -> Iterator[Line | None]:
        """Change the best partition in a window around a cut, again and again; yield what comes of it."""
        while self.best is not None and not deadline.passed:
            yield self._keep_if(self._shaken(self.best, deadline))

    def _keep(self, line: Line) -> Line:
        if self.best is None or line.value <= self.best.value:
            self.best = line
        return line

    def _keep_if(self, line: Line | None) -> Line | None:
        return None if line is None else self._keep(line)

    def _cut(self, order: Order) -> Line | None:
        """Return the best cuts of an order; of a long one at some boundaries, then near these cuts."""
        self.programs += 1
        if len(order) < self._most:
            return best_cuts(self._arrays, order, measure=self._measure)
        coarse = best_cuts(self._arrays, order, self._even(order), self._measure)
        if coarse is None:
            return None
        near = self._most // max(1, 2 * (len(coarse.cuts) - 1))
        return best_cuts(self._arrays, order, _around(coarse.cuts, near), self._measure)

    def _even(self, order: Order) -> list[int]:
        """Return boundaries with about equal work between them."""
        work = np.cumsum(self._arrays.time.min(axis=0)[order] + 1)
        marks = np.linspace(0, work[-1], self._most // 2)
        return [0, *map(int, np.unique(np.searchsorted(work, marks[1:-1]) + 1)), len(order)]

    def _moved(self, line: Line, deadline: Deadline) -> Line | None:
        """Return a partition after moves of blocks, with the best cuts of its order."""
        parts = Parts(self._arrays, line)
        parts.descend(self._rng, deadline)
        place = {block: position for position, block in enumerate(line.order)}
        blocks = self._arrays.graph.blocks
        count = len(line.order)
        order = by_priority(blocks, [parts.part_of[b] * count + place[b] for b in range(count)])
        sizes = np.bincount(parts.part_of, minlength=len(line.kinds))
        self.programs += 1
        cuts = _around([0, *map(int, np.cumsum(sizes))], self._near(len(sizes)))
        return best_cuts(self._arrays, order, cuts, self._measure)

    def _shaken(self, line: Line, deadline: Deadline) -> Line | None:
        count = len(line.order)
        centre = self._rng.choice(line.cuts[1:-1]) if len(line.cuts) > 2 else self._rng.randrange(count)
        most = max(4, 2 * count // max(1, len(line.kinds)))
        width = self._rng.randint(3, max(3, min(most, int(most ** self._rng.random()) + 3)))
        start = max(0, min(count - width, centre - self._rng.randint(0, width)))
        blocks = self._arrays.graph.blocks
        order = reshuffled(blocks, line.order, start, min(count, start + width), self._rng)
        self.programs += 1
        cuts = _around(line.cuts, self._near(len(line.kinds)))
        found = best_cuts(self._arrays, order, cuts, self._measure)
        if found is None or not self._measure.largest or found.value > line.value * 1.02:
            return found
        return self._moved(found, deadline)

    def _near(self, parts: int) -> int:
        return min(_NEAR, self._most // max(1, 2 * parts))


def _around(cuts: Sequence[int], near: int) -> list[int]:
    """Return the boundaries near some cuts, and a few between them."""
    found = {0, cuts[-1]}
    for start, stop in pairwise(cuts):
        step = max(1, (stop - start) // 8)
        found.update(range(start, stop, step))
    for cut in cuts[1:-1]:
        found.update(range(max(0, cut - near), min(cuts[-1], cut + near) + 1))
    return sorted(found)


ROUNDS, PATIENCE = 400, 150
"""Rounds of the search where no time is given, and how many without a better plan end it."""

_START_ROUNDS, _START_PATIENCE = 40, 20
"""The same for what exact searches start from."""

_BEFORE_PROOF = 15
"""Rounds before the chains of down-sets are compared: a better plan makes that shorter."""

_PROOF_SHARE, _PROOF_S = 0.5, 20.0
"""Share of the time limit that this may take; seconds where there is none."""

_MEASURES = {
    Term.PERIOD: LOAD,
    Term.TRANSFERS: Measure(compute=0, messages=1, parts=0, largest=False),
    Term.WORK: Measure(compute=1, messages=1, parts=0, largest=False),
    Term.UNITS: Measure(compute=0, messages=0, parts=1, largest=False),
}


def solve_partition(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return good plans, and a bound."""
    found = walked(problem, options)
    if found is not None:
        return found
    begun = partial(Plans, problem, seed=options.seed, most=options.top, proves=True)
    return claim_of(begun, problem, options, support, Patience(without_better=PATIENCE, rounds=ROUNDS))


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield plans and a bound that are found quickly."""
    patience = Patience(without_better=_START_PATIENCE, rounds=_START_ROUNDS)
    return starts_by(partial(Plans, problem, seed=options.seed), options, patience)


class Plans(RoundSearch[Code]):
    """The search for one problem: its valid plans, the best first, and what is proved."""

    def __init__(self, problem: Problem, *, seed: int, most: int = 1, proves: bool = False) -> None:
        super().__init__(problem, most=most)
        self._proves = proves
        graph = graph_to_search(problem, one=most == 1)
        self.arrays: Arrays = build_arrays(problem, graph)
        self.bounds: PartBounds = bounds_of(graph, self.arrays.most_parts)
        self._first = Term(problem.ranking[0])
        self._search = PartSearch(self.arrays, measure=_MEASURES[self._first], seed=seed)
        self.least = self._least()

    @property
    def statistics(self) -> Statistics:
        """How many orders were cut."""
        return {"orders": self._search.programs}

    def begin(self, deadline: Deadline) -> None:
        """Cut the first orders, and repair what breaks something if there is nothing else."""
        for line in self._search.begin(deadline):
            self._offer(line)
        if not self.pool.codes and self.pool.broken:
            repair(self._problem, [*self.pool.broken], deadline, self.pool.offer)

    def rounds(self, deadline: Deadline) -> Iterator[bool]:
        """Search on, round by round; say after each whether there is a better plan."""
        for number, line in enumerate(self._search.rounds(deadline)):
            better = line is not None and self._offer(line)
            if number == _BEFORE_PROOF and self._proves and not self.pool.meets(self.least):
                left_s = deadline.left_s
                known = self.pool.values, self.least
                self.prove(Deadline(_PROOF_S if left_s is None else max(LEAST_S, _PROOF_SHARE * left_s)))
                better |= known != (self.pool.values, self.least)
            yield better

    def prove(self, deadline: Deadline) -> None:
        """Compare all chains of down-sets, if that is what is asked and there are few."""
        problem = self._problem
        others = {name for name in problem.limits.in_use() if name not in _KNOWN_LIMITS}
        if self._first is not Term.PERIOD or problem.rules or others or not self.pool.codes:
            return
        room = self.arrays.graph.device_memory
        if room is not None and self.arrays.weights.copied > room:
            return  # copies of shared weights may not fit, which chains of down-sets do not know
        least = self._value(self.pool.codes[0])
        try:
            line = best_chain(self.arrays, self.bounds, least - 1, deadline)
        except (TooManySetsError, TimeIsUpError):
            return
        if line is not None:
            self._offer(line)
        self.least = self._value(self.pool.codes[0])

    def _value(self, code: Code) -> int:
        return self._problem.formulation.numbers(self._problem, code).term(self._first)

    def _least(self) -> int:
        """Return a lower bound on the first term."""
        if self._first is Term.PERIOD:
            return self.bounds.least_us
        fastest = [
            min(us for us in row if us is not None)
            for row in self.arrays.graph.block_us
            if any(us is not None for us in row)
        ]
        least = {Term.WORK: sum(fastest), Term.UNITS: self.arrays.least_parts}
        return least.get(self._first, 0)

    def _offer(self, line: Line) -> bool:
        """Keep the plan of a line if it is valid and wanted; return whether it is the best one."""
        return self.pool.offer(self.arrays.code(line.parts))


_KNOWN_LIMITS = ("max_units", "min_units", "max_unit_memory_bytes", "max_memory_bytes")
"""Limits that the programs know."""

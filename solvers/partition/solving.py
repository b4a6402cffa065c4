"""From a layer graph to a claim: searches over orders, a bound by work, and a proof where down-sets are few.

Rules and limits are checked on every plan. A plan is said to be optimal where the objective is one term and
meets its bound, or where all chains of down-sets were compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...formulations.partition.bounds import PartBounds, bounds_of
from ...formulations.partition.quantities import PartTerm
from ...formulations.partition.tables import Code, graph_to_search
from ...formulations.problem import Problem
from ..down_sets import TooManySetsError
from ..exhaustive import walked
from ..pool import Pool
from ..protocol import (
    LEAST_S,
    Claim,
    Deadline,
    SolveOptions,
    StopReason,
    Support,
    TimeIsUpError,
)
from ..repairing import repair
from ..showing import Showing
from .arrays import Arrays, build_arrays
from .chains import best_chain
from .line import LOAD, Line, Measure
from .search import PartSearch

ROUNDS, PATIENCE = 400, 150
"""Rounds of the search where no time is given, and how many without a better plan end it."""

_BEFORE_PROOF = 15
"""Rounds before the chains of down-sets are compared: a better plan makes that shorter."""

_PROOF_SHARE, _PROOF_S = 0.5, 20.0
"""Share of the time limit that this may take; seconds where there is none."""

_MEASURES = {
    PartTerm.PERIOD: LOAD,
    PartTerm.TRANSFERS: Measure(compute=0, messages=1, parts=0, largest=False),
    PartTerm.WORK: Measure(compute=1, messages=1, parts=0, largest=False),
    PartTerm.UNITS: Measure(compute=0, messages=0, parts=1, largest=False),
}


def solve_partition(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return good plans, and a bound."""
    return walked(problem, options) or _Solve(problem, options, support).run()


class Plans:
    """The search for one problem: its valid plans, the best first, and what is proved."""

    def __init__(self, problem: Problem, *, seed: int, most: int = 1) -> None:
        self._problem, self.pool = problem, Pool[Code](problem, most=most)
        graph = graph_to_search(problem, one=most == 1)
        self.arrays: Arrays = build_arrays(problem, graph)
        self.bounds: PartBounds = bounds_of(graph, self.arrays.most_parts)
        self._first = PartTerm(problem.ranking[0])
        self._search = PartSearch(self.arrays, measure=_MEASURES[self._first], seed=seed)
        self.bound = self._least()

    @property
    def programs(self) -> int:
        """How many orders were cut."""
        return self._search.programs

    def begin(self, deadline: Deadline) -> None:
        """Cut the first orders, and repair what breaks something if there is nothing else."""
        for line in self._search.begin(deadline):
            self._offer(line)
        if not self.pool.codes and self.pool.broken:
            repair(self._problem, [*self.pool.broken], deadline, self.pool.offer)

    def rounds(self, deadline: Deadline) -> Iterator[bool]:
        """Search on, round by round; say after each whether there is a better plan."""
        for line in self._search.rounds(deadline):
            yield line is not None and self._offer(line)

    def prove(self, deadline: Deadline) -> None:
        """Compare all chains of down-sets, if that is what is asked and there are few."""
        problem = self._problem
        others = {name for name in problem.limits.in_use() if name not in _KNOWN_LIMITS}
        if self._first is not PartTerm.PERIOD or problem.rules or others or not self.pool.codes:
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
        self.bound = self._value(self.pool.codes[0])

    def _value(self, code: Code) -> int:
        return self._problem.formulation.numbers(self._problem, code).term(self._first)

    def _least(self) -> int:
        """Return a lower bound on the first term."""
        if self._first is PartTerm.PERIOD:
            return self.bounds.least_us
        fastest = [
            min(us for us in row if us is not None)
            for row in self.arrays.graph.block_us
            if any(us is not None for us in row)
        ]
        least = {PartTerm.WORK: sum(fastest), PartTerm.UNITS: self.arrays.least_parts}
        return least.get(self._first, 0)

    def _offer(self, line: Line) -> bool:
        """Keep the plan of a line if it is valid and wanted; return whether it is the best one."""
        return self.pool.offer(self.arrays.code(line.parts))


_KNOWN_LIMITS = ("max_units", "min_units", "max_unit_memory_bytes", "max_memory_bytes")
"""Limits that the programs know."""


class _Solve:
    """One solve of one problem."""

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        self._problem, self._options = problem, options
        self._handling = support.handling(problem)
        self._deadline = Deadline(options.time_limit_s)
        self._showing = Showing(options)
        self._plans = Plans(problem, seed=options.seed, most=options.top)

    def run(self) -> Claim:
        """Search until the best plan is proved to be one, or the time or the rounds are up."""
        plans, limit_s = self._plans, self._options.time_limit_s
        plans.begin(self._deadline)
        left = PATIENCE
        for number, better in enumerate(plans.rounds(self._deadline)):
            if number == _BEFORE_PROOF and self._options.top == 1 and not self._proven:
                left_s = self._deadline.left_s
                plans.prove(Deadline(_PROOF_S if left_s is None else max(LEAST_S, _PROOF_SHARE * left_s)))
            if self._proven or plans.pool.rejected > self._options.max_rejections:
                break
            if better:
                left = PATIENCE
                self._showing.offer(lambda: self._claim(StopReason.TIME_LIMIT))
            left -= 1
            if limit_s is None and (left <= 0 or number >= ROUNDS):
                break
        return self._claim(plans.pool.stopped(self._options, self._deadline))

    @property
    def _proven(self) -> bool:
        return self._plans.pool.meets(self._plans.bound)

    def _claim(self, stop: StopReason) -> Claim:
        plans = self._plans
        return plans.pool.claim(
            bound=plans.bound, stop=stop, handling=self._handling, statistics={"orders": plans.programs}
        )

"""Best plans first, with proof: the search that all exact third-party solvers share.

Plans are ordered by integer levels (`levels.py`). The search keeps a pool of plans that it has seen
and bars them from the solver, so every further answer is about the plans *not yet seen*; it also keeps,
for each prefix of a key, a proven lower bound of the next level over the unseen plans. The first plan
of the pool is next in order as soon as these bounds rule out an unseen one before it.

A question is asked at the first level where something is open: while few plans of a group (equal
prefix) are seen, "the least of this level, please" yields one plan a call and, when its value jumps,
the proof for the whole group. Only when a group turns out to be larger than the number of plans that
are still wanted does the search go down one level. So K plans cost about K calls, ties included.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Sequence
from math import inf

from ..formulations.chain import Part
from ..formulations.errors import BackendFailedError
from ..formulations.judge import MALFORMED, check
from ..formulations.model import Encoded, Values
from ..formulations.problem import Problem
from .engine import Answer, Engine, Query, Verdict
from .levels import Level, build_levels, key_of
from .lowering import Lowering
from .protocol import (
    Capabilities,
    Claim,
    Deadline,
    SolveOptions,
    SolveStatus,
    StopReason,
    handling_of,
)

Key = tuple[int, ...]
_PUBLISH_EVERY_S = 0.2


def enumerate_plans(
    problem: Problem,
    options: SolveOptions,
    capabilities: Capabilities,
    encoded: Encoded,
    engine: Engine,
    *,
    deadline: Deadline,
    largest_number: int,
) -> Claim:
    """Return the best plans of a problem in canonical order.

    Parameters
    ----------
    problem, options, capabilities
        What is asked, and of whom.
    encoded, engine
        The model of the problem, and an empty solver.
    deadline
        When to stop; it began before the model was built.
    largest_number
        Largest coefficient that the solver handles well in an objective.
    """
    lowering = Lowering(encoded.model)
    levels = build_levels(problem, encoded, lowering, largest_number)
    for constraint in encoded.model.constraints:
        if deadline.passed:
            break  # the search below stops before its first question
        engine.add(lowering.truth(constraint.expr))
    search = _Search(
        problem=problem,
        options=options,
        capabilities=capabilities,
        encoded=encoded,
        lowering=lowering,
        levels=levels,
        engine=engine,
        deadline=deadline,
    )
    return search.run()


class _Search:
    """The state of one enumeration; see the module."""

    def __init__(
        self,
        *,
        problem: Problem,
        options: SolveOptions,
        capabilities: Capabilities,
        encoded: Encoded,
        lowering: Lowering,
        levels: tuple[Level, ...],
        engine: Engine,
        deadline: Deadline,
    ) -> None:
        self._problem, self._options, self._capabilities = problem, options, capabilities
        self._encoded, self._lowering, self._levels = encoded, lowering, levels
        self._engine, self._deadline = engine, deadline
        self._opaque = {rule.name for rule in problem.opaque_rules}
        self._proven: list[tuple[Key, tuple[Part, ...]]] = []
        self._pool: list[tuple[Key, tuple[Part, ...]]] = []
        self._incumbent: list[tuple[Key, tuple[Part, ...]]] = []
        self._seen: set[tuple[Part, ...]] = set()
        self._least: dict[Key, float] = {}
        self._counts = {"calls": 0, "rejected": 0, "refuted": 0}
        self._stop = StopReason.COMPLETE
        self._shown = time.monotonic()

    def run(self) -> Claim:
        """Enumerate until there are enough plans, no more plans, or no more time."""
        while len(self._proven) < self._options.top and self._stop is StopReason.COMPLETE:
            level = self._open_level()
            if level is None and not self._pool:
                break
            if level is None:
                self._proven.append(self._pool.pop(0))
                self._options.publish(self._claim())
            elif self._deadline.passed:
                self._stop = StopReason.TIME_LIMIT
            else:
                self._ask(level)
        return self._claim()

    def _open_level(self) -> int | None:
        """Return the level to ask about next; None if the first plan of the pool is settled."""
        if not self._pool:
            return None if self._least.get((), 0) == inf else 0
        head = self._pool[0][0]
        wanted = self._options.top - len(self._proven)
        for index in range(len(self._levels)):
            least = self._least.get(head[:index], 0)
            if least > head[index]:
                return None
            group = sum(key[: index + 1] == head[: index + 1] for key, _ in self._pool[:wanted])
            if least < head[index] or group < wanted:
                return index
        return None

    def _ask(self, index: int) -> None:
        """Learn more about one level of the group that the first plan of the pool belongs to."""
        head = self._pool[0][0] if self._pool else None
        prefix = head[:index] if head else ()
        conditions = [self._levels[i].at_most(value) for i, value in enumerate(prefix)]
        cutoff = self._cutoff(prefix)
        if cutoff is not None:
            conditions.append(self._levels[index].at_most(cutoff))
        least = int(self._least.get(prefix, 0))
        question = self._levels[index].question(least, head[index] if head else None)

        def progress(values: Values | None, bound: int | None) -> None:
            if bound is not None:
                self._learn(prefix, question.learn(bound))
            self._show(values)

        self._take_channels()
        query = Query(
            objective=question.objective,
            conditions=tuple(conditions),
            at_least=question.at_least,
            deadline=self._deadline,
            progress=progress,
        )
        answer = self._engine.minimise(query)
        self._counts["calls"] += 1
        self._incumbent.clear()
        if answer.verdict is Verdict.INFEASIBLE:
            self._learn(prefix, inf if cutoff is None else cutoff + 1)
        elif answer.bound is not None:
            self._learn(prefix, question.learn(answer.bound))
        self._take(answer)
        if not self._proven:
            self._options.publish(self._claim())

    def _cutoff(self, prefix: Key) -> int | None:
        """Return the value beyond which plans of a group are not wanted, if that is known."""
        wanted = self._options.top - len(self._proven)
        if len(self._pool) < wanted:
            return None
        last = self._pool[wanted - 1][0]
        return last[len(prefix)] if last[: len(prefix)] == prefix else None

    def _learn(self, prefix: Key, least: float) -> None:
        self._least[prefix] = max(least, self._least.get(prefix, 0))

    def _take(self, answer: Answer) -> None:
        """Put the plan of an answer into the pool, if it is valid, and bar it from the solver."""
        if answer.values is None:
            if answer.verdict is Verdict.UNKNOWN:
                self._give_up()
            return
        parts = self._encoded.decode(answer.values)
        if parts in self._seen:
            raise BackendFailedError(f"the solver returned the plan {parts} although it is ruled out")
        self._seen.add(parts)
        self._engine.add(self._lowering.truth(self._encoded.exclude(parts)))
        broken = {violation.rule for violation in check(self._problem, self._problem.chain.plan(parts))}
        if not broken:
            insort(self._pool, (key_of(self._levels, self._problem.chain, parts), parts))
        elif broken & MALFORMED:
            raise BackendFailedError(f"the solver returned chunks {parts} that are no plan: {broken}")
        elif broken <= self._opaque:
            self._counts["rejected"] += 1
        else:
            # A solver that computes with tolerances accepted it; in exact integers it is not valid.
            self._counts["refuted"] += 1
        if self._counts["rejected"] > self._options.max_rejections:
            self._stop = StopReason.REJECTION_LIMIT

    def _give_up(self) -> None:
        if self._options.time_limit_s is None:
            raise BackendFailedError("the solver gave up without a limit and without an answer")
        self._stop = StopReason.TIME_LIMIT

    def _take_channels(self) -> None:
        while self._lowering.channels:
            self._engine.add(self._lowering.channels.pop())

    def _show(self, values: Values | None) -> None:
        """Publish what the solver holds while it still searches for the first plan."""
        if self._proven:
            return
        if values is not None:
            parts = self._encoded.decode(values)
            if parts not in self._seen and not check(self._problem, self._problem.chain.plan(parts)):
                self._incumbent = [(key_of(self._levels, self._problem.chain, parts), parts)]
        elif time.monotonic() < self._shown + _PUBLISH_EVERY_S:
            return
        self._shown = time.monotonic()
        self._options.publish(self._claim())

    def _claim(self) -> Claim:
        first = self._proven[:1] or sorted(self._pool + self._incumbent)[:1]
        found = (self._proven + sorted(self._pool + self._incumbent))[: self._options.top]
        best = first[0][0] if first else None
        settled = bool(self._proven) or (best is not None and self._terms_settled(best))
        exhausted = not self._pool and self._least.get((), 0) == inf
        terms = self._problem.objective.terms
        return Claim(
            status=_status(found=found, settled=settled, exhausted=exhausted),
            stop=self._stop,
            plans=tuple(self._problem.chain.plan(parts) for _, parts in found),
            values=best[: len(terms)] if best else None,
            bound=self._bound(best),
            proven=max(len(self._proven), int(settled)),
            exhausted=exhausted,
            handling=handling_of(self._problem, self._capabilities),
            statistics={**self._counts, "encoding": self._encoded.name},
        )

    def _terms_settled(self, best: Key) -> bool:
        """Return whether no unseen plan can be better in the terms of the objective (ties left open)."""
        for index in range(len(self._problem.objective.terms)):
            least = self._least.get(best[:index], 0)
            if least != best[index]:
                return least > best[index]
        return True

    def _bound(self, best: Key | None) -> int | None:
        if self._proven:
            return self._proven[0][0][0]
        least = self._least.get((), None)
        if best is not None and least is not None:
            return int(min(least, best[0]))
        return int(least) if least not in (None, inf) else None


def _status(*, found: Sequence[object], settled: bool, exhausted: bool) -> SolveStatus:
    if found:
        return SolveStatus.OPTIMAL if settled else SolveStatus.FEASIBLE
    return SolveStatus.INFEASIBLE if exhausted else SolveStatus.NO_SOLUTION

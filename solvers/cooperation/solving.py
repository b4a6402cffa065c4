"""From a problem of groups to a claim: the program first, then branch and bound where it must be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ...formulations.cooperation.plans import Parts
from ...formulations.cooperation.quantities import most_stage_us
from ...formulations.cooperation.tables import groups_of
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..branch_and_bound import BranchingSolve
from ..families import Start, best_start
from ..protocol import (
    Claim,
    Deadline,
    SolveOptions,
    StopReason,
    Support,
    TimeIsUpError,
    unwatched,
)
from .branching import Branching, copies
from .deals import MOST_US
from .kinds import Kinds, kinds_of
from .optimum import Optimum, caps_of, narrowed_arrays, wanted_terms
from .pico import PicoBackend
from .program import Program

MOST_ENTRIES, MOST_PAIRS = 1_500_000, 3_000_000
"""Chunks with groups, and sets with parts of them, that the tables may have."""

_SHARE = 0.7
"""Share of a time limit that is left when the heuristic has to be done."""


def solve_groups(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return the best plans of groups of devices (see `GroupSolve`)."""
    return GroupSolve(problem, options, support).run()


def too_large(problem: Problem) -> str:
    """Return why the tables of a problem cannot be built; empty if they can."""
    groups = groups_of(problem)
    states = Kinds(kinds_of(problem, groups)).states
    places = len(groups.chain.cuts) - 1
    pairs = 1
    for count in states.counts:
        pairs *= (count + 1) * (count + 2) // 2
    if states.number * places * (places + 1) // 2 > MOST_ENTRIES or pairs > MOST_PAIRS:
        return f"{states.number:,} sets of devices over {places} pieces are too many"
    if most_stage_us(groups) >= MOST_US:
        return f"a request may take more than {MOST_US:,} us"
    return ""


class GroupSolve(BranchingSolve[Parts]):
    """One solve of one problem."""

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        super().__init__(problem, options, support)
        self._proposed: list[Parts] = []

    def run(self) -> Claim:
        """Solve."""
        refused = too_large(self._problem)
        if refused or self._options.time_limit_s is not None:
            self._propose()
        if refused:
            return self._claim(self._proposed, StopReason.SPACE_LIMIT, proven=0, refused=refused)
        try:
            return self._solved()
        except TimeIsUpError:
            return self._claim(self._proposed, StopReason.TIME_LIMIT, proven=0)

    def _propose(self) -> None:
        """Take the plans of a heuristic, for when the time is up before the tables are there."""
        problem = self._problem
        options = self._options.later(_SHARE * (self._options.time_limit_s or 0.0))
        plans = PicoBackend().solve(problem, replace(options, publish=unwatched)).plans
        self._proposed = [problem.formulation.code(problem, plan) for plan in plans]
        self._publish(self._proposed)

    def _solved(self) -> Claim:
        problem, options = self._problem, self._options
        terms = problem.objective.terms if options.top == 1 else problem.ranking
        arrays = narrowed_arrays(problem, wanted_terms(problem, terms), self._deadline)
        self._sets = arrays.kinds.states.number
        program = Program(arrays, self._deadline)
        optimum = Optimum(problem, program)
        found = optimum.find()
        if found is None:
            return self._claim([], StopReason.COMPLETE, proven=0, exhausted=True)
        self._bound = found.value
        search = self._search(program, optimum)
        if options.top == 1 and optimum.settles(found):
            search.offer(found.line)
            return self._claim(islice(search.codes(), 1), StopReason.COMPLETE, proven=1)
        search.run([found.line])
        done = search.stop is StopReason.COMPLETE
        codes = list(islice(search.codes(), options.top + 1)) or ([] if done else self._proposed)
        exhausted = done and not search.dropped and len(codes) <= options.top
        codes = codes[: options.top]
        return self._claim(codes, search.stop, proven=len(codes) if done else 0, exhausted=exhausted)

    def _search(self, program: Program, optimum: Optimum) -> Branching:
        search = Branching(
            self._problem,
            self._options,
            program,
            caps_of(self._problem),
            optimum.possible,
            deadline=self._deadline,
            on_better=lambda: self._publish(search.codes()),
        )
        return search


_START_SHARE = 0.3
"""Share of a time limit that the program may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: a plan where the judge finds it valid, and a lower bound.

    With a time limit the first plan is there before any search: the network whole on one device.
    """
    limit_s, known = options.time_limit_s, Start()
    deadline = Deadline(None if limit_s is None else _START_SHARE * limit_s)
    if limit_s is not None:
        known = best_start(problem, PicoBackend().whole(problem))
        yield known
    if too_large(problem):
        return
    try:
        wanted = wanted_terms(problem, problem.objective.terms)
        program = Program(narrowed_arrays(problem, wanted, deadline), deadline)
        found = Optimum(problem, program).find()
    except TimeIsUpError:
        return
    if found is not None:
        code = next(copies(program, found.line))
        best = known.code if examined(problem, code)[1] else code
        yield Start(code=best, at_least=found.value)

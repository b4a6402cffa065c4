"""What a backend is: one protocol for exact and heuristic ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ..formulations.availability import Availability
from ..formulations.objective import CHAIN_TERMS, WORKLOAD_TERMS, Term
from ..formulations.plan import Plan
from ..formulations.problem import CHAIN_FEATURES, WORKLOAD_FEATURES, Feature, Problem

Statistics = Mapping[str, int | float | str]
"""What a backend has to say about its run, for people."""


class SolveStatus(StrEnum):
    """How a solve ended. OPTIMAL and INFEASIBLE are proofs.

    NO_SOLUTION says that nothing was found and nothing is proved.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NO_SOLUTION = "no_solution"


class StopReason(StrEnum):
    """Why a backend stopped.

    COMPLETE
        It had finished.
    TIME_LIMIT, MEMORY_LIMIT
        It ran into what it was given.
    REJECTION_LIMIT
        Too many plans were cut off by opaque rules (`SolveOptions.max_rejections`).
    SPACE_LIMIT
        The space of plans is larger than the backend is willing to walk.
    INTERRUPTED
        The user stopped it.
    """

    COMPLETE = "complete"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    REJECTION_LIMIT = "rejection_limit"
    SPACE_LIMIT = "space_limit"
    INTERRUPTED = "interrupted"


class Guarantee(StrEnum):
    """What an untimed run of a backend promises."""

    EXACT = "exact"
    HEURISTIC = "heuristic"


class RuleHandling(StrEnum):
    """How a backend dealt with one rule.

    LOWERED
        It is part of what the search reasons about.
    CUT
        Plans that break it were cut off one by one; the search stays exact.
    CHECKED
        A heuristic dropped the plans that break it.
    REPAIRED
        A heuristic changed plans until they kept it.
    """

    LOWERED = "lowered"
    CUT = "cut"
    CHECKED = "checked"
    REPAIRED = "repaired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend can do, as data: the documentation and the test matrix are made from it.

    Attributes
    ----------
    features
        Features of an instance that it handles.
    terms
        Objective terms that it can minimise, in any lexicographic order.
    guarantee
        Exact or heuristic.
    gives_bound
        Whether it proves a bound before it has finished.
    deterministic
        Whether equal input and seed give equal plans, when no limit is hit.
    isolated
        Whether it must run in a child process of its own (third-party solvers).
    rules, opaque_rules
        How it handles the two kinds of rules; None: not at all.
    summary
        One line for people.
    requires
        Features without which it has nothing to do.
    workload_rules
        How it handles rules of problems with a workload, if not like the others.
    workload_guarantee
        What it promises for problems with a workload, if not the same.
    """

    features: frozenset[Feature]
    terms: frozenset[Term]
    guarantee: Guarantee
    gives_bound: bool
    deterministic: bool
    isolated: bool
    rules: RuleHandling | None
    opaque_rules: RuleHandling | None
    summary: str
    requires: frozenset[Feature] = frozenset()
    workload_rules: RuleHandling | None = None
    workload_guarantee: Guarantee | None = None

    def guarantee_for(self, problem: Problem) -> Guarantee:
        """Return what an untimed run on a problem promises."""
        if problem.workload is not None and self.workload_guarantee is not None:
            return self.workload_guarantee
        return self.guarantee

    def rule_handling(self, problem: Problem) -> tuple[RuleHandling | None, RuleHandling | None]:
        """Return how expression rules and opaque rules of a problem are handled."""
        if problem.workload is not None and self.workload_rules is not None:
            return self.workload_rules, self.workload_rules
        return self.rules, self.opaque_rules


def exact_capabilities(
    summary: str,
    *,
    isolated: bool,
    rules: RuleHandling = RuleHandling.LOWERED,
    gives_bound: bool = True,
    workloads: frozenset[Feature] = WORKLOAD_FEATURES,
) -> Capabilities:
    """Return what an exact backend can do: everything with one network, and some workloads.

    Parameters
    ----------
    summary, isolated, rules, gives_bound
        As in `Capabilities`.
    workloads
        What it handles of workloads; empty: none.
    """
    return Capabilities(
        features=CHAIN_FEATURES | workloads,
        terms=CHAIN_TERMS | WORKLOAD_TERMS if workloads else CHAIN_TERMS,
        guarantee=Guarantee.EXACT,
        gives_bound=gives_bound,
        deterministic=True,
        isolated=isolated,
        rules=rules,
        opaque_rules=RuleHandling.CUT,
        summary=summary,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """How to solve, as opposed to what.

    Attributes
    ----------
    top
        How many of the best plans are wanted.
    time_limit_s
        Wall-clock limit in seconds, or None.
    memory_limit_bytes
        Address space that a child process may take on top of what it starts with, or None.
    distance
        On how many layers any two of the plans have to differ at least (`plan_distance`); 1: they are
        different plans. The session sees to it (`diverse.py`): a backend is never asked for more than 1.
    seed
        Seed of everything random.
    threads
        Threads of a solver; 1 makes every solver deterministic.
    max_rejections
        Most plans that opaque rules may cut off before the search gives up.
    publish
        Called with a claim whenever a backend has more to show, so that nothing is lost when it
        is killed at its deadline. What was published last counts.
    """

    top: int = 1
    distance: int = 1
    time_limit_s: float | None = None
    memory_limit_bytes: int | None = None
    seed: int = 0
    threads: int = 1
    max_rejections: int = 10_000
    publish: Callable[[Claim], None] = lambda claim: None


class Deadline:
    """A point in time that a search asks about.

    Parameters
    ----------
    limit_s
        Seconds from now, or None for never.
    """

    def __init__(self, limit_s: float | None) -> None:
        self._end = None if limit_s is None else time.monotonic() + limit_s

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self._end is not None and time.monotonic() >= self._end

    @property
    def left_s(self) -> float | None:
        """Seconds that remain (at least 0), or None for no limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a backend says it found; the session has the judge look at it before anyone sees it.

    Attributes
    ----------
    status
        What is claimed about the best plan. OPTIMAL: it is first in the canonical order of all valid
        plans by its numbers. INFEASIBLE: there is no valid plan.
    stop
        Why it stopped.
    plans
        Plans in canonical order, best first, at most `SolveOptions.top`.
    values
        What it claims the objective terms of the best plan to be (`Objective.terms`), or None
        without plans.
    bound
        Proven lower bound on the first objective term over all valid plans, or None.
    proven
        How many leading plans are proven to be the best ones, in order. OPTIMAL needs at least 1; a
        single proven plan may still tie with another one in all terms of the objective.
    exhausted
        Whether it is proven that there are no further valid plans behind `plans`.
    handling
        How each rule was handled, by rule name.
    statistics
        Anything worth telling, by name.
    """

    status: SolveStatus
    stop: StopReason
    plans: tuple[Plan, ...] = ()
    values: tuple[int, ...] | None = None
    bound: int | None = None
    proven: int = 0
    exhausted: bool = False
    handling: Mapping[str, RuleHandling] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=dict)


class Backend(Protocol):
    """A way to find plans. One file, one registry line."""

    @property
    def name(self) -> str:
        """Name in the registry and in results; a class variable will do."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; a class variable will do."""
        ...

    def availability(self) -> Availability:
        """Say whether this backend can run here, without a heavy import."""
        ...

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Look for the best plans of a problem whose features are all supported.

        `problem.objective.period_slack_permille` is always None here: the session solves the slack
        mode in two steps, so that backends need not know it.
        """
        ...


def workload_capabilities(
    summary: str, *, features: frozenset[Feature] = CHAIN_FEATURES | WORKLOAD_FEATURES
) -> Capabilities:
    """Return what a heuristic for workloads can do: it checks the rules of the user on its plans."""
    return Capabilities(
        features=features,
        terms=WORKLOAD_TERMS,
        guarantee=Guarantee.HEURISTIC,
        gives_bound=False,
        deterministic=True,
        isolated=False,
        rules=RuleHandling.CHECKED,
        opaque_rules=RuleHandling.CHECKED,
        summary=summary,
        requires=frozenset({Feature.WORKLOAD}),
    )


def handling_of(problem: Problem, capabilities: Capabilities) -> dict[str, RuleHandling]:
    """Return how a backend with these capabilities handles each rule of a problem."""
    expressions, opaque = capabilities.rule_handling(problem)
    pairs = [(rule.name, expressions) for rule in problem.expression_rules]
    pairs += [(rule.name, opaque) for rule in problem.opaque_rules]
    return {name: how for name, how in pairs if how is not None}

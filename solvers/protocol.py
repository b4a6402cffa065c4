"""What a backend is: one protocol for exact and heuristic ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol, runtime_checkable

from ..formulations.availability import Availability
from ..formulations.plan import Plan
from ..formulations.problem import Feature, Problem
from ..formulations.terms import PERIOD
from .sources import Source, StartMode

LEAST_S = 0.001
"""A time limit has to be greater than 0."""

Statistics = Mapping[str, int | float | str]
"""What a backend has to say about its run, for people."""


class SolveStatus(StrEnum):
    """How a solve ended. OPTIMAL and INFEASIBLE are proofs, about the plans of `Problem.plan_class`.

    NO_SOLUTION says that nothing was found and nothing is proved.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NO_SOLUTION = "no_solution"

    @classmethod
    def of(cls, *, found: bool, proven: bool, exhausted: bool) -> SolveStatus:
        """Return the status: whether plans were found, the first is the best, and there are no others."""
        if found:
            return cls.OPTIMAL if proven else cls.FEASIBLE
        return cls.INFEASIBLE if exhausted else cls.NO_SOLUTION


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
    """What an untimed run of a backend promises.

    EXACT
        It ends with a proof.
    BOUNDED
        Good plans and a lower bound; where they meet, the plan is proven to be optimal.
    HEURISTIC
        Plans, and no proof of anything.
    """

    EXACT = "exact"
    BOUNDED = "bounded"
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
        A heuristic changed plans that broke it until they kept it, or dropped them; its statistics say how
        many were changed.
    """

    LOWERED = "lowered"
    CUT = "cut"
    CHECKED = "checked"
    REPAIRED = "repaired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """What a backend can do for the problems of one formulation.

    Attributes
    ----------
    guarantee
        What an untimed run promises.
    features
        Features of an instance that it handles (`Problem.features`); None: all of the formulation.
    terms
        Objective terms that it can minimise, in any lexicographic order; None: all of the formulation.
    rules, opaque_rules
        How it handles the two kinds of rules; None: not at all.
    gives_bound
        Whether it proves a bound before it has finished.
    searches
        The plans that it looks at, in words, where these are a part of the class of the problem.
    """

    guarantee: Guarantee
    features: frozenset[str] | None = None
    terms: frozenset[str] | None = None
    rules: RuleHandling | None = None
    opaque_rules: RuleHandling | None = None
    gives_bound: bool = False
    searches: str = ""

    def missing(self, problem: Problem) -> set[str]:
        """Return what a problem asks and this does not offer, in words."""
        found: set[str] = set()
        if self.features is not None:
            found |= problem.features - self.features
        found |= {kind for kind, there in self._unruly(problem).items() if there}
        if self.terms is not None:
            asked = problem.objective.terms
            found |= {f"objective {term}" for term in asked if term not in self.terms}
            if problem.objective.period_slack_permille is not None and PERIOD not in self.terms:
                found.add(f"objective {PERIOD} (for the slack mode)")
        return found

    def _unruly(self, problem: Problem) -> dict[str, bool]:
        return {
            str(Feature.RULES): bool(problem.expression_rules) and self.rules is None,
            str(Feature.OPAQUE_RULES): bool(problem.opaque_demands) and self.opaque_rules is None,
        }

    def handling(self, problem: Problem) -> dict[str, RuleHandling]:
        """Return how each rule of a problem is handled, by name."""
        pairs = [(rule.name, self.rules) for rule in problem.expression_rules]
        pairs += [(rule.name, self.opaque_rules) for rule in problem.opaque_rules]
        return {name: how for name, how in pairs if how is not None}

    @property
    def exact(self) -> bool:
        """Whether an untimed run ends with a proof."""
        return self.guarantee is Guarantee.EXACT

    @property
    def proves(self) -> bool:
        """Whether what it claims to be proven is."""
        return self.guarantee is not Guarantee.HEURISTIC


EXACT = Support(
    guarantee=Guarantee.EXACT,
    rules=RuleHandling.LOWERED,
    opaque_rules=RuleHandling.CUT,
    gives_bound=True,
)
"""What a search with proof can do: everything."""

BOUNDED = replace(
    EXACT, guarantee=Guarantee.BOUNDED, rules=RuleHandling.CHECKED, opaque_rules=RuleHandling.CHECKED
)
"""What a search with a bound can do that checks rules on finished plans."""

PROPOSING = Support(
    guarantee=Guarantee.HEURISTIC, rules=RuleHandling.REPAIRED, opaque_rules=RuleHandling.REPAIRED
)
"""What a heuristic can do that proposes plans: those that break a rule are repaired or dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend can do, as data: the documentation and the test matrix are made from it.

    Attributes
    ----------
    summary
        One line for people.
    formulations
        What it can do, by name of the formulation.
    others
        What it can do for every other formulation; None: nothing.
    deterministic
        Whether equal input and seed give equal plans, when no limit is hit.
    isolated
        Whether it must run in a child process of its own (third-party solvers).
    starts
        Whether it begins with what `SolveOptions.start` says.
    """

    summary: str
    formulations: Mapping[str, Support] = field(default_factory=dict)
    others: Support | None = None
    deterministic: bool = True
    isolated: bool = False
    starts: bool = False

    def support(self, problem: Problem) -> Support | None:
        """Return what it can do for problems like this one; None: nothing."""
        return self.formulations.get(problem.formulation.name, self.others)

    def missing(self, problem: Problem) -> set[str]:
        """Return what a problem asks and this does not offer, in words."""
        support = self.support(problem)
        return {problem.formulation.label} if support is None else support.missing(problem)


class Clock:
    """The time of a search: it stands still while backends are loaded and warmed up (`Warmed`).

    One clock serves one search at a time: the session stops it, whoever measures the search reads it.

    Parameters
    ----------
    seconds
        What tells the time; None: the machine. With `time.thread_time`, which is the processor's, a search in
        this thread gets as much on a busy machine as on an idle one.
    """

    def __init__(self, seconds: Callable[[], float] | None = None) -> None:
        self._seconds = seconds or time.monotonic
        self._held_s = 0.0
        self._since: float | None = None

    def now(self) -> float:
        """Return seconds that passed, from no point in particular."""
        return (self._seconds() if self._since is None else self._since) - self._held_s

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let no time pass in a block."""
        if self._since is not None:  # an outer block does so already
            yield
            return
        self._since = self._seconds()
        try:
            yield
        finally:
            self._held_s += self._seconds() - self._since
            self._since = None


def unwatched(claim: Claim) -> None:
    """Take no notice of an intermediate claim: what `SolveOptions.publish` does if nothing is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions:
    """How to solve, as opposed to what.

    Attributes
    ----------
    top
        How many of the best plans are wanted.
    time_limit_s
        Seconds from when the backend is loaded and warmed up (`Warmed`), or None. A backend in a child
        process is given a little less, and ended when it does not keep to it (`sandbox.py`).
    memory_limit_bytes
        Address space that a child process may take on top of what it starts with, or None.
    distance
        On how many layers any two of the plans have to differ at least (`plan_distance`); 1: they are
        different plans. The session sees to it (`diverse.py`): a backend is never asked for more than 1.
    seed
        Seed of everything random.
    threads
        Threads of a solver; 1 makes every solver deterministic.
    start
        What exact backends begin with: a plan and a bound of the native side, or nothing.
    max_rejections
        Most plans that opaque rules may cut off before the search gives up.
    at_least
        What is proved already: no plan has less of the first term; None: nothing.
    publish
        Called with a claim whenever a backend has more to show, so that nothing is lost when it
        is ended at its deadline. What was published last counts.
    clock
        The clock of the search, for those that measure it; None: it gets one of its own.
    """

    top: int = 1
    distance: int = 1
    time_limit_s: float | None = None
    memory_limit_bytes: int | None = None
    seed: int = 0
    threads: int = 1
    start: StartMode = StartMode.NATIVE
    max_rejections: int = 10_000
    at_least: int | None = None
    publish: Callable[[Claim], None] = unwatched
    clock: Clock | None = None

    def later(self, seconds: float) -> SolveOptions:
        """Return the options when so much of the time is used up; a limit stays greater than 0."""
        if self.time_limit_s is None:
            return self
        return replace(self, time_limit_s=max(self.time_limit_s - seconds, LEAST_S))


class Deadline:
    """A point in time that a search asks about.

    Parameters
    ----------
    limit_s
        Seconds from now, or None for never.
    clock
        Whose seconds; None: those of the machine.
    """

    def __init__(self, limit_s: float | None, clock: Clock | None = None) -> None:
        self._clock = clock
        self._end = None if limit_s is None else self.now() + limit_s

    def now(self) -> float:
        """Return seconds that passed, from no point in particular."""
        return time.monotonic() if self._clock is None else self._clock.now()

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self._end is not None and self.now() >= self._end

    def within(self, seconds: float) -> bool:
        """Return whether it comes within so many seconds, or has passed."""
        return self._end is not None and self.now() + seconds >= self._end

    @property
    def left_s(self) -> float | None:
        """Seconds that remain (at least 0), or None for no limit."""
        return None if self._end is None else max(0.0, self._end - self.now())

    def share(self, part: float = 1.0, *, less_s: float = 0.0) -> Deadline:
        """Return a deadline after a part of the time that is left, less some seconds, by the same clock."""
        left_s = self.left_s
        return Deadline(None if left_s is None else part * left_s - less_s, self._clock)


class TimeIsUpError(Exception):
    """A deadline came before a table was finished."""


NEVER = Deadline(None)
"""No deadline."""


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
    plan_source, bound_source
        Where the best plan and the bound come from; of no meaning without one. START: nothing better than
        what was handed over was found.
    proven
        How many leading plans are proven to be the best ones, in order. OPTIMAL needs at least 1; a
        single proven plan may still tie with another one in all terms of the objective.
    exhausted
        Whether it is proven that there are no further valid plans behind `plans`.
    handling
        How each rule was handled, by rule name.
    statistics
        Anything worth telling, by name.
    start_s
        Seconds of the search that making the start took: what was handed over to the solver before it began
        (`SolveOptions.start`).
    """

    status: SolveStatus
    stop: StopReason
    plans: tuple[Plan, ...] = ()
    values: tuple[int, ...] | None = None
    bound: int | None = None
    plan_source: Source = Source.OWN
    bound_source: Source = Source.OWN
    proven: int = 0
    exhausted: bool = False
    handling: Mapping[str, RuleHandling] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=dict)
    start_s: float = field(default=0.0, compare=False)


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


@runtime_checkable
class Warmed(Protocol):
    """A backend that has something to load before it can solve: modules, a solver, tables of its own.

    Any backend may have this method; without it, what `solve` imports is charged to its time.
    """

    def warm_up(self, formulation: str) -> None:
        """Load what a solve needs; called before the clock of the solve starts.

        It is called in the process that solves, before each solve: what is loaded already must cost nothing.

        Parameters
        ----------
        formulation
            Name of the formulation of the problem that comes. The problem itself is not given: work on it,
            such as its encoding, is part of the search, and charged to every backend alike.
        """
        ...


def warm_up(backend: Backend, problem: Problem) -> None:
    """Load what a backend needs for problems of this formulation."""
    if isinstance(backend, Warmed):
        backend.warm_up(problem.formulation.name)


def handling_of(problem: Problem, capabilities: Capabilities) -> dict[str, RuleHandling]:
    """Return how a backend with these capabilities handles each rule of a problem."""
    support = capabilities.support(problem)
    return {} if support is None else support.handling(problem)

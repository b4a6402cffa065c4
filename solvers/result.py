"""What a solve gives back: judged candidates, a status that is a proof or none, and a bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from ..formulations.plan import Plan
from ..formulations.printing import html_table, shortened
from ..formulations.scores import Score
from ..formulations.terms import Objective
from .protocol import RuleHandling, SolveStatus, Statistics, StopReason
from .sources import Source, StartMode, label_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A plan that the judge found valid, with its score."""

    plan: Plan
    score: Score


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictItem:
    """One rule, limit or fact that takes part in a contradiction."""

    name: str  # name of the rule or limit
    text: str  # what it demands, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Why there is no plan: demands that cannot hold together, though any fewer can (`irreducible`)."""

    items: tuple[ConflictItem, ...]
    """The demands. Empty: already the platform and the cost table admit no plan."""
    smallest: bool  # whether no conflict with fewer demands exists; False: only that none can be left out
    confirmed_by: str  # backend that proved the contradiction again with these demands alone
    irreducible: bool = True  # whether none of them can be left out; False: the time was not enough to try


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """What a backend had at a time: each milestone has a better plan or a better bound than the one before.

    Attributes
    ----------
    at_s
        Seconds of the search.
    value
        Of the first objective term, for its best plan until then; None: it had none.
    bound
        Its best lower bound until then; None: it had none.
    plan_source, bound_source
        Where they come from; None without one.
    """

    at_s: float
    value: int | None = None
    bound: int | None = None
    plan_source: Source | None = None
    bound_source: Source | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The figures of an answer: results, their documents, tables and sweeps all have them from here."""

    backend: str = ""
    """Who answered."""
    status: str = ""
    """What is known (`SolveStatus`); empty: there is no answer."""
    stop: str = ""
    """Why the backend stopped (`StopReason`)."""
    bound: int | None = None
    """No plan of the class has a lower value of the first term; None: nothing is known."""
    start: StartMode | None = None
    """What it was given to begin with; None where it begins with nothing in any case."""
    plan_source: Source | None = None
    bound_source: Source | None = None
    """Where the best plan and the bound come from; None without one."""
    runtime_s: float = 0.0
    """Seconds of the search."""
    startup_s: float = 0.0
    """Seconds before it: starting a child process, loading the backend and warming it up."""
    start_s: float = 0.0
    """Seconds of the search that making the start took."""
    plan_class: str = ""
    """Which plans status and bound are about (`Problem.plan_class`); empty: not known."""
    course: tuple[Milestone, ...] = ()
    """Which plan and which bound it had when; empty: not known."""

    @property
    def label(self) -> str:
        """Who answered, and that it began with nothing where it might have begun with something."""
        return label_of(self.backend, self.start)


def figures(answer: Answer, kind: type[Answer] = Answer) -> dict[str, Any]:
    """Return the figures of an answer by name: what another record of the same answer begins with.

    `kind`: whose fields are taken.
    """
    return {each.name: getattr(answer, each.name) for each in fields(kind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveResult(Answer):
    """The answer to one problem by one backend.

    Attributes
    ----------
    status, stop
        What is known, and why the backend stopped.
    candidates
        Valid plans, best first (by `Objective.present_by` where that is set).
    objective
        Value of the first objective term of the best candidate, or None without candidates.
    values
        Values of all objective terms of the best candidate.
    bound
        Proven lower bound on the first objective term, or None.
    plan_source, bound_source
        Where the best plan and the bound come from; None without one.
    proven
        How many candidates are proven to be the best ones, in the order of the objective.
    exhausted
        Whether it is proven that the problem has no further valid plan.
    backend, version
        Who answered.
    start
        What it was given to begin with; None where it begins with nothing in any case.
    runtime_s
        Wall-clock seconds of the search.
    startup_s
        Wall-clock seconds before it: starting a child process, loading the backend and warming it up. No time
        limit counts them.
    start_s
        Seconds of the search that making the start took; 0 where there was none.
    asked
        The objective.
    distance
        On how many layers any two candidates were asked to differ (`SolveOptions.distance`). Beyond 1,
        `proven` and `exhausted` are about the plans that differ so much from all before.
    handling
        How each rule was handled, by rule name.
    statistics
        What the backend has to tell.
    fingerprint
        `Problem.fingerprint`.
    plan_class
        Which plans `status` and `bound` are about (`Problem.plan_class`): "optimal" is the best of these, and
        "infeasible" says that none of these is valid.
    searches
        The plans that the backend looks at, in words, where these are a part of that class.
    conflict
        Why the problem is infeasible, when that was asked for.
    unfiltered
        The best plan without the filters (`Limits`), when the filters make the problem infeasible.
    course
        Which plan and which bound it had when; comparisons keep that.

    Raises
    ------
    ValueError
        The parts contradict each other; `session.py` never builds such a result.
    """

    status: SolveStatus
    stop: StopReason
    backend: str
    asked: Objective
    fingerprint: str
    runtime_s: float
    plan_class: str
    candidates: tuple[Candidate, ...] = ()
    objective: int | None = None
    values: tuple[int, ...] | None = None
    plan_source: Source | None = Source.OWN
    bound_source: Source | None = Source.OWN
    proven: int = 0
    exhausted: bool = False
    version: str = ""
    distance: int = 1
    handling: Mapping[str, RuleHandling] = field(default_factory=dict)
    statistics: Statistics = field(default_factory=dict)
    conflict: Conflict | None = None
    unfiltered: Candidate | None = None
    searches: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "handling", MappingProxyType(dict(self.handling)))
        object.__setattr__(self, "statistics", MappingProxyType(dict(self.statistics)))
        if not self.candidates:
            object.__setattr__(self, "plan_source", None)
        if self.bound is None:
            object.__setattr__(self, "bound_source", None)
        wrong = [text for text, broken in self._contradictions() if broken]
        if wrong:
            raise ValueError(f"contradictory result of {self.backend!r}: {'; '.join(wrong)}")

    def __repr__(self) -> str:
        return f"<SolveResult {self._words}>"

    def _repr_html_(self) -> str:
        """Return what notebooks show: its plans, and what they are worth."""
        terms = self.asked.terms
        rows = [
            [str(number), shortened(str(one.plan)), *(f"{value:,}" for value in one.score.values(terms))]
            for number, one in enumerate(self.candidates, start=1)
        ]
        notes = ["times in microseconds, sizes in bytes, shares in permille"] if rows else []
        return html_table(self._words, ["#", "plan", *terms], rows, notes)

    @property
    def _words(self) -> str:
        """What is known, and of which plan, in a line."""
        parts = [f"{self.status} by {self.label} in {self.runtime_s:.2f} s"]
        parts += [] if self.objective is None else [f"{self.asked.terms[0]} {self.objective:,}"]
        parts += [] if self.bound is None or self.bound == self.objective else [f"bound {self.bound:,}"]
        parts += [f"{len(self.candidates)} plans"] if len(self.candidates) > 1 else []
        return ", ".join(parts) + (f": {shortened(str(self.plan))}" if self.candidates else "")

    def _contradictions(self) -> list[tuple[str, bool]]:
        found = bool(self.candidates)
        has_plan = self.status in (SolveStatus.OPTIMAL, SolveStatus.FEASIBLE)
        optimal = self.status is SolveStatus.OPTIMAL
        infeasible = self.status is SolveStatus.INFEASIBLE
        best = min((c.score.values(self.asked.terms) for c in self.candidates), default=None)
        bound_above = self.bound is not None and self.objective is not None and self.bound > self.objective
        return [
            (f"{self.status} without a plan", has_plan and not found),
            (f"{self.status} with plans", not has_plan and found),
            ("values that are not those of the best candidate", self.values != best),
            ("objective and values differ", self.objective != (best[0] if best else None)),
            ("a bound above the objective", bound_above),
            ("optimal without an equal bound", optimal and self.bound != self.objective),
            ("optimal but nothing proven", optimal and self.proven < 1),
            ("proven plans without an optimum", not optimal and self.proven > 0),
            ("more proven plans than candidates", self.proven > len(self.candidates)),
            ("an infeasible problem with a bound", infeasible and self.bound is not None),
            ("infeasible but not complete", infeasible and self.stop is not StopReason.COMPLETE),
            ("exhausted without a proof", self.exhausted and not (optimal or infeasible)),
            ("a conflict in a feasible problem", not infeasible and self.conflict is not None),
            ("an invalid candidate", any(not c.score.valid for c in self.candidates)),
            ("a negative time", min(self.runtime_s, self.startup_s, self.start_s) < 0),
        ]

    @property
    def best(self) -> Candidate | None:
        """The first candidate, or None."""
        return self.candidates[0] if self.candidates else None

    @property
    def plan(self) -> Plan | None:
        """The plan of the first candidate, or None."""
        return self.candidates[0].plan if self.candidates else None

    @property
    def gap(self) -> float | None:
        """(objective - bound) / objective of the first term; None without a bound or a plan."""
        return relative_gap(self.objective, self.bound)


def relative_gap(objective: int | None, bound: int | None) -> float | None:
    """Return (objective - bound) / objective; None where one of them is not known."""
    if objective is None or bound is None:
        return None
    return (objective - bound) / objective if objective else 0.0

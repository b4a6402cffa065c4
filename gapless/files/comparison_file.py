"""The document of `gapless compare --out`, read again as far as a report shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from ..api.comparison import BackendFailure, Comparison
from ..formulations.errors import BackendError
from ..formulations.files import Origin, Schema, load
from ..formulations.judge import score
from ..formulations.plan import Chunk, Plan
from ..formulations.problem import Problem
from ..formulations.rule_files import RuleDocument
from ..solvers.course import Pace
from ..solvers.protocol import SolveStatus, StopReason
from ..solvers.registry import support_of
from ..solvers.result import Answer, Candidate, SolveResult, figures, relative_gap
from ..solvers.sources import StartMode

_LENIENT: dict[str, Any] = {"extra": "ignore"}
"""The document says more than is read here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan:
    """The plan of a candidate, as in a plan file."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    chunks: tuple[Chunk, ...]
    """Which layers run where."""
    order: tuple[str, ...] = ()
    """Names of the requests in the order in which the units serve them; empty without a workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCandidate:
    """One plan of a backend; beside it stand its `plan_id` and its `score`."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    plan: WrittenPlan
    """The plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenResult(Answer):
    """The answer of one backend.

    Older files do not say the start, the sources and the course, and count the startup in its times.
    """

    __pydantic_config__: ClassVar[Any] = _LENIENT

    backend: str
    backend_version: str | None
    """Of the solver; None where it has none."""
    status: SolveStatus
    stop: StopReason
    objective: int | None
    """Value of the first term for the best plan; None without a plan."""
    bound: int | None
    runtime_s: float
    candidates: tuple[WrittenCandidate, ...]
    """Its plans, best first."""
    gap_to_best_bound: float | None = None
    """How far the objective can be from the optimum, as a share of the objective, by the best bound of all
    backends; None: not known (older files do not say it)."""
    proven: int = 0
    exhausted: bool = False
    """As in `SolveResult`."""
    searches: str | None = None
    """At which plans of the class the backend looks; empty: at all of them; None: not known (older files do
    not say it, `searches_of` does)."""
    first_plan_s: float | None = None
    near_best_s: float | None = None
    primal_integral_s: float | None = None
    """As in `Pace`; None: not known."""

    @property
    def gap(self) -> float | None:
        """As that of a `SolveResult`: by its own bound."""
        return relative_gap(self.objective, self.bound)

    @property
    def pace(self) -> Pace:
        """How fast it came to a good plan."""
        return Pace(
            first_plan_s=self.first_plan_s,
            near_best_s=self.near_best_s,
            primal_integral_s=self.primal_integral_s,
        )

    @property
    def version(self) -> str:
        """Version of the backend; empty where it is not known."""
        return self.backend_version or ""

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Its plans, best first."""
        written = (each.plan for each in self.candidates)
        return tuple(Plan(chunks=each.chunks, order=each.order) for each in written)

    @property
    def plan(self) -> Plan | None:
        """The best plan, or None."""
        return self.plans[0] if self.candidates else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFailure:
    """Why a backend gave no answer."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    backend: str
    """Who failed."""
    message: str
    """Why."""
    start: StartMode | None = None
    """As in `SolveResult`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenProblem:
    """Which problem was solved."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    fingerprint: str
    """Its fingerprint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenComparison:
    """What several backends answered to one problem: the keys that are read again, among others."""

    __pydantic_config__: ClassVar[Any] = _LENIENT

    problem: WrittenProblem
    """What they solved."""
    results: tuple[WrittenResult, ...]
    """Their answers."""
    failures: tuple[WrittenFailure, ...]
    """Those that gave none."""
    disagreements: tuple[str, ...] = ()
    """Proofs that contradict each other."""
    time_limit_s: float | None = None
    """Seconds that each backend had; None: as many as it wanted."""
    asked: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[RuleDocument, ...] = ()
    opaque_rules: tuple[str, ...] = ()
    """As in `Origin`; empty in files of a race and in older ones."""

    @property
    def origin(self) -> Origin:
        """What the file knows of the problem."""
        return Origin(
            asked=self.asked,
            rules=self.rules,
            opaque_rules=self.opaque_rules,
            fingerprint=self.problem.fingerprint,
        )

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans of the answer that has the best one, best first; none: there is none."""
        found = [result for result in self.results if result.candidates]
        return min(found, key=lambda result: result.objective or 0).plans if found else ()

    def answers(self, problem: Problem) -> Comparison:
        """Return the answers to the problem, judged anew; conflicts and statistics are not kept."""
        return Comparison(
            problem=problem,
            results=tuple(_answer(problem, written) for written in self.results),
            failures=tuple(
                BackendFailure(backend=each.backend, error=BackendError(each.message), start=each.start)
                for each in self.failures
            ),
            disagreements=self.disagreements,
            time_limit_s=self.time_limit_s,
        )


def searches_of(result: SolveResult | WrittenResult, problem: Problem) -> str:
    """Return at which plans a backend looked; of older files that do not say it, what is known here."""
    if result.searches is not None:
        return result.searches
    support = support_of(result.backend, problem)
    return support.searches if support else ""


def _answer(problem: Problem, written: WrittenResult) -> SolveResult:
    candidates = tuple(Candidate(plan=plan, score=score(problem, plan)) for plan in written.plans)
    terms = problem.objective.terms
    known = figures(written) | {"plan_class": written.plan_class or problem.plan_class}
    return SolveResult(
        **known,
        version=written.version,
        asked=problem.objective,
        fingerprint=problem.fingerprint,
        searches=searches_of(written, problem),
        candidates=candidates,
        objective=written.objective,
        values=min((each.score.values(terms) for each in candidates), default=None),
        proven=written.proven,
        exhausted=written.exhausted,
    )


COMPARISON = Schema(format="gapless.comparison", version=1, content=WrittenComparison)


def load_comparison(path: str | Path) -> WrittenComparison:
    """Read a comparison; errors as for `load`."""
    return load(path, COMPARISON)

"""What the answers of several backends to one problem say about each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..formulations.errors import BackendError
from ..formulations.printing import shortened
from ..formulations.problem import Problem
from ..solvers.course import Pace, pace_of
from ..solvers.protocol import SolveStatus
from ..solvers.result import SolveResult, relative_gap
from ..solvers.sources import StartMode, label_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFailure:
    """A backend that gave no answer in a comparison, and why; `start`: as in `SolveResult`."""

    backend: str
    error: BackendError
    start: StartMode | None = None

    @property
    def label(self) -> str:
        """As that of a `SolveResult`."""
        return label_of(self.backend, self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Answers of several backends to one problem.

    Attributes
    ----------
    problem
        What was asked.
    results
        One for each backend that answered, in the order they were asked for; two for one that was asked to
        begin with something and with nothing.
    failures
        One for each backend that did not.
    disagreements
        Proofs that contradict each other, in words. Any entry is a bug in a backend.
    time_limit_s
        Seconds that each backend had; None: as many as it wanted.
    """

    problem: Problem
    results: tuple[SolveResult, ...]
    failures: tuple[BackendFailure, ...]
    disagreements: tuple[str, ...]
    time_limit_s: float | None = None

    def __repr__(self) -> str:
        return f"<Comparison {self._words}>"

    def _repr_html_(self) -> str:
        """Return what notebooks show: what each backend found and proved."""
        from ..answers.blocks import Sentence
        from ..answers.comparing import answers_of, backends
        from ..view.text import notebook_html

        terms = [self.problem.formulation.terms[term] for term in self.problem.objective.terms]
        notes = (Sentence(f"disagreement: {text}") for text in self.disagreements)
        return notebook_html(self._words, (backends(answers_of(self), terms), *notes))

    @property
    def _words(self) -> str:
        """Who answered to what, and what the best plan is worth, in a line."""
        parts = [f"{len(self.results)} answers"]
        parts += [f"{len(self.failures)} failures"] if self.failures else []
        parts += [f"{len(self.disagreements)} disagreements"] if self.disagreements else []
        best = self.best
        if best is not None:
            parts.append(f"best {best.asked.terms[0]} {best.objective:,} ({best.status}, {best.label})")
        names = ", ".join(network.name for network in self.problem.networks)
        return f"{shortened(f'{names} on {self.problem.platform.name}')}: {', '.join(parts)}"

    @property
    def best(self) -> SolveResult | None:
        """The result with the best plan; of equals, the one that proves more; None without a plan."""
        found = [result for result in self.results if result.values is not None]
        return min(found, key=lambda r: (r.values, r.status is not SolveStatus.OPTIMAL), default=None)

    @property
    def bound(self) -> int | None:
        """The best bound on the first term that any backend proved; None without one.

        None, too, if a valid plan refutes it: then it is listed among the disagreements.
        """
        bounds = [result.bound for result in self.results if result.bound is not None]
        least = min((r.objective for r in self.results if r.objective is not None), default=None)
        bound = max(bounds, default=None)
        return None if bound is None or (least is not None and bound > least) else bound

    def gap_to_best_bound(self, result: SolveResult) -> float | None:
        """Return how far the best plan of a result may be from the optimum, by the bound of all backends.

        (objective - bound) / objective of the first term; None without a bound or a plan. Heuristics, which
        prove nothing themselves, have one as well. `SolveResult.gap` is by its own bound.
        """
        return relative_gap(result.objective, self.bound)

    def above_best(self, result: SolveResult) -> float | None:
        """Return how much more of the first term a result has than the best one, as a share of the best.

        None without a plan, and where the best one has 0 and the other has not.
        """
        best = self.best
        if result.objective is None or best is None or best.objective is None:
            return None
        more = result.objective - best.objective
        return more / best.objective if best.objective else None if more else 0.0

    @property
    def horizon_s(self) -> float:
        """Until when backends are measured: the time limit, or when the last one was done."""
        ends = (result.runtime_s for result in self.results)
        return self.time_limit_s or max(ends, default=0.0)

    def pace(self, result: SolveResult) -> Pace:
        """Return how fast a backend came to a good plan, as measured by the best plan of all.

        Nothing is known of results without their course, as in older files.
        """
        known = result.course or result.objective is None  # older files do not say the course
        best = self.best if known else None
        return pace_of(result.course, None if best is None else best.objective, self.horizon_s)


def disagreements(results: Sequence[SolveResult]) -> list[str]:
    """Return the pairs of proofs that cannot both be right."""
    found = []
    for index, first in enumerate(results):
        for second in results[index + 1 :]:
            names = f"{first.label} and {second.label}"
            for one, other in ((first, second), (second, first)):
                if one.status is SolveStatus.INFEASIBLE and other.candidates:
                    found.append(
                        f"{one.label} proves that none is valid, "
                        f"{other.label} has the valid plan [{other.plan}]"
                    )
                elif one.bound is not None and other.objective is not None and other.objective < one.bound:
                    found.append(
                        f"{one.label} proves that {one.asked.terms[0]} is at least {one.bound}, "
                        f"{other.label} has the valid plan [{other.plan}] with {other.objective}"
                    )
            both = min(first.proven, second.proven)
            ours = [c.score.values(first.asked.terms) for c in first.candidates[:both]]
            theirs = [c.score.values(first.asked.terms) for c in second.candidates[:both]]
            if ours != theirs and first.asked.present_by is None:
                found.append(f"{names} rank the best {both} plans differently: {ours} and {theirs}")
    return found

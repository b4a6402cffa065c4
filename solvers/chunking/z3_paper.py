"""Z3 as BetterTogether used it: the paper's encoding, minimised by `Optimize`; for comparison."""

from __future__ import annotations

from typing import Any, ClassVar

from ...formulations.availability import Availability
from ...formulations.chunking.paper import encode_paper
from ...formulations.expr import BoolExpr
from ...formulations.objective import Term
from ...formulations.problem import Feature, Problem
from ..exact.port import Answer, Query, Verdict
from ..exact.search import enumerate_plans
from ..exact.z3 import LARGEST_NUMBER, Z3Terms, z3_availability
from ..protocol import Capabilities, Claim, Deadline, Guarantee, SolveOptions


class Z3PaperBackend:
    """The constraints C1 to C5 of BetterTogether III-D, with C3b for maximal chunks (`paper.py`)."""

    name: ClassVar[str] = "z3-paper"
    capabilities: ClassVar[Capabilities] = Capabilities(
        features=frozenset({Feature.UNSUPPORTED_LAYERS}),
        terms=frozenset({Term.PERIOD, Term.PAPER_GAPNESS, Term.GAPNESS}),
        guarantee=Guarantee.EXACT,
        gives_bound=False,
        deterministic=True,
        isolated=True,
        rules=None,
        opaque_rules=None,
        summary="the encoding printed in BetterTogether, solved by Z3's Optimize; for comparison only",
    )

    def availability(self) -> Availability:
        """Say whether Z3 is installed."""
        return z3_availability()

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Enumerate the best plans, one call of `Optimize` each."""
        deadline = Deadline(options.time_limit_s)
        return enumerate_plans(
            problem,
            options,
            self.capabilities,
            encode_paper(problem),
            _OptimizeEngine(),
            deadline=deadline,
            largest_number=LARGEST_NUMBER,
        )


class _OptimizeEngine:
    """A new `Optimize` for every question, as the paper does it.

    The paper states times in milliseconds with a fraction; integers are used here, because 5.4.0 can
    hang on rationals, beyond its own time limit.
    """

    def __init__(self) -> None:
        import z3

        self._z3 = z3
        self._terms = Z3Terms()
        self._conditions: list[Any] = []

    def add(self, condition: BoolExpr) -> None:
        """Add a condition."""
        self._conditions.append(self._terms.truth(condition))

    def minimise(self, query: Query) -> Answer:
        """Answer one question."""
        solver, terms = self._z3.Optimize(), self._terms
        if query.deadline.left_s is not None:
            solver.set("timeout", max(1, int(1000 * query.deadline.left_s)))
        solver.add(self._conditions)
        solver.add([terms.truth(condition) for condition in query.conditions])
        solver.minimize(terms.number(query.objective))
        solver.add(terms.domains)
        verdict = solver.check()
        if verdict == self._z3.unsat:
            return Answer(verdict=Verdict.INFEASIBLE)
        if verdict != self._z3.sat:
            return Answer(verdict=Verdict.UNKNOWN)
        values = terms.reader(solver.model())
        return Answer(verdict=Verdict.OPTIMAL, values=values, bound=query.objective.evaluate(values))

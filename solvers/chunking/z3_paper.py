"""Z3 as BetterTogether used it: the paper's encoding, minimised by `Optimize`; for comparison."""

from __future__ import annotations

from typing import Any, ClassVar

from ...formulations.availability import Availability
from ...formulations.chunking.encoding import Parts
from ...formulations.chunking.formulation import FORMULATION
from ...formulations.chunking.paper import encode_paper
from ...formulations.expr import BoolExpr
from ...formulations.model import Encoded, Structure
from ...formulations.problem import Feature, Problem
from ...formulations.terms import Term
from ..exact.base import ExactBackend
from ..exact.search import Port, PortAnswer, Query, Verdict
from ..exact.z3 import LARGEST_NUMBER, Z3Terms, z3_availability
from ..families import Start
from ..protocol import Capabilities, Guarantee, SolveOptions, Support


class Z3PaperBackend(ExactBackend):
    """The constraints C1 to C5 of BetterTogether III-D, with C3b for maximal chunks (`paper.py`)."""

    name: ClassVar[str] = "z3-paper"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="the encoding printed in BetterTogether, solved by Z3's Optimize; for comparison only",
        formulations={
            FORMULATION.name: Support(
                guarantee=Guarantee.EXACT,
                features=frozenset({str(Feature.UNSUPPORTED_LAYERS)}),
                terms=frozenset({Term.PERIOD, Term.PAPER_GAPNESS, Term.GAPNESS}),
            )
        },
        isolated=True,
        starts=True,
    )
    largest_number: ClassVar[int] = LARGEST_NUMBER

    def availability(self) -> Availability:
        """Say whether Z3 is installed."""
        return z3_availability()

    def encode(self, problem: Problem, options: SolveOptions, start: Start) -> Encoded[Parts]:
        """Return the encoding of the paper."""
        return encode_paper(problem)

    def port(self, options: SolveOptions, structure: Structure) -> Port:
        """Return what calls `Optimize` once for each question."""
        return _OptimizePort()


class _OptimizePort:
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

    def minimise(self, query: Query) -> PortAnswer:
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
            return PortAnswer(verdict=Verdict.INFEASIBLE)
        if verdict != self._z3.sat:
            return PortAnswer(verdict=Verdict.UNKNOWN)
        values = terms.reader(solver.model())
        return PortAnswer(verdict=Verdict.OPTIMAL, values=values, bound=query.objective.evaluate(values))

"""Z3: satisfiability modulo theories, on pseudo-Boolean constraints over scaled integers."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int
from importlib import metadata, util
from typing import Any, ClassVar

from ...formulations.availability import Availability
from ...formulations.expr import (
    And,
    BoolExpr,
    BoolVar,
    Const,
    Expr,
    IntVar,
    LessEq,
    Linear,
    Max,
    Not,
    Or,
    Variable,
    VariableKey,
)
from ...formulations.model import Structure, Values
from ..protocol import EXACT, Capabilities, SolveOptions
from .base import ExactBackend
from .lowering import Arithmetic, row_parts
from .search import Port, PortAnswer, Query, Verdict

LARGEST_NUMBER = 2**24
"""Largest number that a few layers of the chunk order are taken together for."""

_MOST_CASES = 256
"""Comparisons with several maxima are written out up to this many cases."""

_MOST_COEFFICIENT = 2**31 - 1
"""Pseudo-Boolean constraints take 32-bit numbers; larger ones become sums in linear arithmetic."""


def z3_availability() -> Availability:
    """Say whether Z3 is installed."""
    if util.find_spec("z3") is None:
        return Availability(ok=False, reason="Z3 is not installed: pip install 'gapless[z3]'")
    return Availability(ok=True, version=metadata.version("z3-solver"))


class Z3Backend(ExactBackend):
    """Models of all formulations in Z3, written as pseudo-Boolean constraints where they are no more."""

    name: ClassVar[str] = "z3"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="Z3 on the boundary encoding; decision queries that close in on each optimum",
        others=EXACT,
        isolated=True,
        starts=True,
    )
    largest_number: ClassVar[int] = LARGEST_NUMBER

    def availability(self) -> Availability:
        """Say whether Z3 is installed."""
        return z3_availability()

    def port(self, options: SolveOptions, structure: Structure) -> Port:
        """Return an empty solver of Z3."""
        return _Z3Port(options)


class _Z3Port:
    """One solver with push and pop; minimises by decision queries.

    `Optimize` is not used: with rationals 5.4.0 can hang in it, and a descent of decision queries over
    pure pseudo-Boolean constraints took 30 ms where integer sums of Ifs took 200 (9 layers, 4 units).
    """

    def __init__(self, options: SolveOptions) -> None:
        import z3

        self._z3 = z3
        self._terms = Z3Terms()
        self._solver = z3.SimpleSolver()
        self._solver.set("random_seed", options.seed % 2**31)

    def add(self, condition: BoolExpr) -> None:
        """Add a condition."""
        self._solver.add(self._terms.truth(condition))
        # In the scope in which a variable first appears; a later scope would forget its bounds.
        self._solver.add(self._terms.domains)

    def minimise(self, query: Query) -> PortAnswer:
        """Close in on the optimum from both sides, within a scope of its own."""
        self._solver.push()
        try:
            for condition in query.conditions:
                self.add(condition)
            return self._descend(query)
        finally:
            self._solver.pop()

    def _descend(self, query: Query) -> PortAnswer:
        """Ask for less and less; a refuted target is a bound, a solution the next value to beat.

        Steps of a quarter: refutations far below the optimum are rare, so this is nearly as fast as
        steps of 1 (and twice as fast as bisection), and yields bounds on the way.
        """
        terms = self._terms
        least = terms.arithmetic.bounds(query.objective)[0]
        least = max(least, query.at_least if query.at_least is not None else least)
        found = self._check(query)
        if found is None or isinstance(found, Verdict):
            return PortAnswer(verdict=found or Verdict.INFEASIBLE, bound=least if found else None)
        best, value = found, query.objective.evaluate(found)
        while least < value:
            target = value - max(1, (value - least) // 4)
            self._solver.push()
            self.add(terms.arithmetic.compare(query.objective, target))
            found = self._check(query)
            self._solver.pop()
            if isinstance(found, Verdict):
                return PortAnswer(verdict=Verdict.FEASIBLE, values=best, bound=least)
            if found is None:
                least = target + 1
            else:
                best, value = found, query.objective.evaluate(found)
            query.progress(found, least)
        return PortAnswer(verdict=Verdict.OPTIMAL, values=best, bound=value)

    def _check(self, query: Query) -> Values | Verdict | None:
        """Return a solution, None if there is none, or UNKNOWN."""
        left_s = query.deadline.left_s
        if left_s is not None:
            self._solver.set("timeout", max(1, int(1000 * left_s)))
        verdict = self._solver.check()
        if verdict == self._z3.sat:
            return self._terms.reader(self._solver.model())
        # A time-out is *unknown*, and that is no proof of anything.
        return None if verdict == self._z3.unsat else Verdict.UNKNOWN


class Z3Terms:
    """Translates normal-form expressions, each node once."""

    def __init__(self) -> None:
        import z3

        self._z3 = z3
        self.arithmetic = Arithmetic()
        # bounds of the integer variables that appeared so far. Lowering relies on them, so a solver that was
        # given a term needs them too
        self.domains: list[Any] = []
        self._variables: dict[object, Any] = {}
        self._done: dict[int, tuple[Expr, Any]] = {}
        self._negated: dict[int, Any] = {}

    def truth(self, expr: BoolExpr) -> Any:
        """Return a condition."""
        found = self._done.get(id(expr))
        if found is None:
            found = self._done[id(expr)] = (expr, self._truth(expr))
        return found[1]

    def number(self, expr: Expr) -> Any:
        """Return a number in linear arithmetic."""
        match expr:
            case Const():
                return self._z3.IntVal(expr.value)
            case Linear():
                return self._z3.Sum([f * self.number(term) for f, term in expr.terms]) + expr.constant
            case Max():
                values = [self.number(arg) for arg in expr.args]
                largest = values[0]
                for value in values[1:]:
                    largest = self._z3.If(largest >= value, largest, value)
                return largest
            case BoolExpr():
                return self._z3.If(self.truth(expr), 1, 0)
            case _:
                return self._variable(expr)

    def reader(self, model: Any) -> Values:
        """Return the values of variables in a solution; what the solver left open is 0."""
        known: dict[VariableKey, int] = {}  # Z3 takes long to look something up

        def read(variable: Variable) -> int:
            key = variable.key
            if key not in known:
                term = self._variables.get(key)
                value = None if term is None else model[term]
                if value is not None and self._z3.is_int_value(value):
                    known[key] = value.as_long()
                else:
                    known[key] = int(self._z3.is_true(value))
            return known[key]

        return read

    def _variable(self, variable: Any) -> Any:
        if variable.key not in self._variables:
            make = self._z3.Bool if isinstance(variable, BoolVar) else self._z3.Int
            term = self._variables[variable.key] = make(f"{variable.name}{variable.args}")
            if isinstance(variable, IntVar):
                self.domains += (term >= variable.low, term <= variable.high)
        return self._variables[variable.key]

    def _truth(self, expr: BoolExpr) -> Any:
        match expr:
            case Const():
                return self._z3.BoolVal(bool(expr.value))
            case BoolVar():
                return self._variable(expr)
            case Not():
                return self._z3.Not(self.truth(expr.arg))
            case And():
                equation = self._equation(expr.args)
                return self._z3.And([self.truth(a) for a in expr.args]) if equation is None else equation
            case Or():
                return self._z3.Or([self.truth(arg) for arg in expr.args])
            case LessEq():
                split = self.arithmetic.split_max(expr, _MOST_CASES)
                return self._comparison(expr) if split is expr else self.truth(split)
        raise TypeError(f"{type(expr).__name__} is not a truth value")

    def _comparison(self, comparison: LessEq) -> Any:
        terms, most = row_parts(comparison)
        weighted = self._weighted(terms, most)
        if weighted is None:
            return self._z3.Sum([f * self.number(term) for f, term in terms]) <= most
        return self._pseudo_boolean(self._z3.Z3_mk_pble, *weighted)

    def _equation(self, args: Sequence[BoolExpr]) -> Any:
        """Return one equation for `sum <= v` and `sum >= v`, which Z3 handles far better than two halves."""
        if len(args) != 2 or not all(isinstance(arg, LessEq) for arg in args):
            return None
        (terms, most), (opposite, least) = (row_parts(arg) for arg in args)  # type: ignore[arg-type]
        negated = {id(term): -factor for factor, term in opposite}
        if most != -least or {id(term): factor for factor, term in terms} != negated:
            return None
        weighted = self._weighted(terms, most)
        return None if weighted is None else self._pseudo_boolean(self._z3.Z3_mk_pbeq, *weighted)

    def _pseudo_boolean(self, make: Any, literals: list[Any], weights: list[int], most: int) -> Any:
        """Return a sum of weighted literals compared with a number.

        What `PbLe` and `PbEq` do without checking each literal's sort, which takes them most of the time.
        """
        context, count = literals[0].ctx, len(literals)
        terms = (self._z3.Ast * count)(*(literal.as_ast() for literal in literals))
        return self._z3.BoolRef(make(context.ref(), count, terms, (c_int * count)(*weights), most), context)

    def _weighted(
        self, terms: Sequence[tuple[int, Expr]], most: int
    ) -> tuple[list[Any], list[int], int] | None:
        """Return literals, their positive weights and the right-hand side; None if it is not such a sum."""
        literals = []
        for factor, term in terms:
            if not isinstance(term, BoolExpr):
                return None
            literals.append(self.truth(term) if factor > 0 else self._opposite(term))
            most -= min(factor, 0)
        weights = [abs(factor) for factor, _ in terms]
        return None if max(most, *weights) > _MOST_COEFFICIENT else (literals, weights, most)

    def _opposite(self, term: BoolExpr) -> Any:
        literal = self.truth(term)
        found = self._negated.get(id(term))
        if found is None:
            found = self._negated[id(term)] = self._z3.Not(literal)
        return found

"""Z3 against brute force: our encoding, and the paper's."""

from __future__ import annotations

from typing import ClassVar

import pytest

from gapless.formulations.expr import BoolVar, IntVar, LessEq, all_of, count, linear
from gapless.solvers.chunking.z3_paper import Z3PaperBackend
from gapless.solvers.exact.z3 import Z3Backend, Z3Terms
from gapless.solvers.protocol import SolveOptions

from ..brute import Case, claims, random_problem
from ..exact_backend import ExactBackend, check_list


class TestZ3(ExactBackend):
    backend = Z3Backend()
    seed = 12


class TestZ3Paper(ExactBackend):
    backend = Z3PaperBackend()
    seed = 15
    cases: ClassVar[list[Case]] = [
        Case(f"{objective}-{features}", objective=objective, features=features)
        for objective in ("paper", "period", "paper_gapness", "gapness", "period,gapness")
        for features in ("", "n", "e")
    ]
    large = (15, 5)

    def test_large_numbers(self) -> None:
        problem = random_problem(4, layers=4)
        (claim,) = claims(self.backend, [(problem, SolveOptions(top=4))])
        check_list(problem, claim, 4)


def test_a_sum_between_equal_sides_becomes_one_equation() -> None:
    pytest.importorskip("z3")
    terms = Z3Terms()
    a, b, c = (BoolVar(name) for name in "abc")
    total = count([a, b, c])
    arithmetic = terms.arithmetic
    equation = all_of([arithmetic.compare(total, 1), arithmetic.compare(-total, -1)])
    assert "PbEq" in str(terms.truth(equation)) or "((_ pbeq 1 1 1 1)" in terms.truth(equation).sexpr()
    apart = all_of([arithmetic.compare(total, 1), arithmetic.compare(-count([a, b]), -1)])
    assert "pbeq" not in terms.truth(apart).sexpr()


def test_numbers_beyond_32_bits_use_linear_arithmetic() -> None:
    z3 = pytest.importorskip("z3")
    terms = Z3Terms()
    a, b = BoolVar("a"), BoolVar("b")
    large = terms.arithmetic.compare(linear([(2**40, a), (2**40 + 1, b)]), 2**40)
    assert isinstance(large, LessEq)
    solver = z3.Solver()
    solver.add(terms.truth(large), terms.truth(b))
    assert solver.check() == z3.unsat
    wide = terms.arithmetic.compare(linear([(1, IntVar("i", (), 0, 9)), (3, a)]), 5)
    solver = z3.Solver()
    solver.add(terms.truth(wide), terms.truth(a))
    assert solver.check() == z3.sat

"""What solvers were seen to do wrong, and that it cannot happen here."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gapless.api.problems import load_problem
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve

from .workload_cases import random_workload


@pytest.mark.parametrize("costs", ["isolated", "heavy"])
def test_highs_proves_the_tables_on_which_its_presolve_claims_false_optima(costs: str) -> None:
    if not get_backend("pulp").availability().ok:
        pytest.skip("PuLP and HiGHS are not installed")
    problem = load_problem("jetson-orin-nano-lp/alexnet-dense", costs=costs)
    ours = solve(problem, "pulp", SolveOptions(top=20))
    oracle = solve(problem, "exhaustive", SolveOptions(top=20))
    assert ours.candidates == oracle.candidates
    assert ours.proven == oracle.proven


@pytest.mark.slow
def test_highs_proves_the_workload_on_which_it_claims_a_false_optimum_without_presolve() -> None:
    if not get_backend("pulp").availability().ok:
        pytest.skip("PuLP and HiGHS are not installed")
    problem = random_workload(151)
    terms = problem.objective.terms
    ours, oracle = (solve(problem, name, SolveOptions(top=3)) for name in ("pulp", "exhaustive"))
    assert [c.score.values(terms) for c in ours.candidates] == [
        c.score.values(terms) for c in oracle.candidates
    ]


@pytest.mark.slow
def test_no_solver_is_ever_loaded_in_the_process_of_the_caller() -> None:
    # OR-Tools and some versions of HiGHS cannot share a process.
    code = (
        "import sys, gapless\n"
        "gapless.compare(gapless.load_problem('jetson-orin-nano/octree'),"
        " backends=['native', 'cpsat', 'z3', 'pulp', 'pulp-cbc'])\n"
        "print(sorted({'ortools', 'z3', 'pulp', 'highspy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"

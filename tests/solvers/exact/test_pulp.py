"""HiGHS and CBC through PuLP against brute force."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pulp
import pytest

from benchmarks.schedule_instances import small_schedule
from gapless.formulations.chunking import encoding
from gapless.solvers.exact.pulp import PulpBackend, PulpCbcBackend
from gapless.solvers.flow_shop.samples import sample_workloads
from gapless.solvers.protocol import SolveOptions, SolveStatus, StopReason
from gapless.solvers.session import solve
from gapless.solvers.sources import StartMode
from tests.processes import assert_nothing_outlives

from ..brute import CASES, claims, random_problem
from ..exact_backend import ExactBackend, check_list


class TestHighs(ExactBackend):
    backend = PulpBackend()
    seed = 13
    cases = CASES[::2]


class TestCbc(ExactBackend):
    backend = PulpCbcBackend()
    seed = 14
    cases = CASES[::8]


@pytest.mark.slow
@pytest.mark.parametrize("backend", [PulpBackend(), PulpCbcBackend()])
def test_the_boundary_encoding(backend: PulpBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_MOST_ARCS", 0)
    problems = [case.problem(5) for case in CASES[:12:2]]
    for problem, claim in zip(
        problems, claims(backend, [(p, SolveOptions(top=4)) for p in problems]), strict=True
    ):
        assert claim.statistics["encoding"] == "boundary"
        check_list(problem, claim, 4)


@pytest.mark.parametrize("backend", [PulpBackend(), PulpCbcBackend()])
def test_nothing_is_left_behind_or_printed(
    backend: PulpBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    claims(backend, [(random_problem(1), SolveOptions(top=2))])
    assert os.listdir(tmp_path) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("dies", [False, True])
def test_what_cbc_says_at_its_time_limit_is_no_proof(dies: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(program: pulp.LpProblem, solver: pulp.PULP_CBC_CMD) -> None:
        time.sleep(solver.timeLimit)
        if dies:
            raise pulp.PulpSolverError("no answer")
        program.assignStatus(pulp.LpStatusInfeasible, pulp.LpSolutionInfeasible)

    monkeypatch.setattr(pulp.LpProblem, "solve", cut_off)
    (claim,) = claims(PulpCbcBackend(), [(random_problem(1), SolveOptions(time_limit_s=0.2))])
    assert (claim.status, claim.stop, claim.proven) == (SolveStatus.FEASIBLE, StopReason.TIME_LIMIT, 0)


KILLED = """
import os, threading, time
from benchmarks.workload_instances import random_workload
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from gapless.solvers.sources import StartMode
from tests.processes import descendants

def tell():
    while len(descendants(os.getpid())) < 2:  # the child, and CBC
        time.sleep(0.01)
    print(*descendants(os.getpid()), flush=True)

threading.Thread(target=tell, daemon=True).start()
solve(random_workload(6), "pulp-cbc", SolveOptions(start=StartMode.NONE))
"""


@pytest.mark.slow
def test_cbc_ends_with_a_process_that_is_killed() -> None:
    assert_nothing_outlives(KILLED)


def test_probing_does_not_cut_the_optimum_off() -> None:
    first, *_ = sample_workloads()  # with its probing, HiGHS 1.14.0 claims 142
    plain = replace(first, interference=None, platform=replace(first.platform, memory_bytes=None))
    problem = plain.with_objective("makespan").with_rules(lambda view: view.uses("a0", "npu"))
    (claim,) = claims(PulpBackend(), [(problem, SolveOptions())])
    assert (claim.status, claim.values, claim.bound) == (SolveStatus.OPTIMAL, (138,), 138)


def test_an_optimum_of_highs_is_one_that_two_presolves_find() -> None:
    """Of this schedule HiGHS 1.14 finds 46, with any further rule of its presolve left out 44."""
    found = solve(small_schedule(7270), "pulp", SolveOptions(start=StartMode.NONE), explain=False)
    assert (found.status, found.values) == (SolveStatus.OPTIMAL, (0, 44))

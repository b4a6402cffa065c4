"""Child processes: whatever a backend does, the caller gets an answer or a clear error."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from gapless.api.problems import table_problem
from gapless.formulations.errors import BackendFailedError, InvalidProblemError
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus, StopReason
from gapless.solvers.session import solve

from .fakes import FakeBackend, claiming, crash, eat_memory, fail, feasible, hang, leave, optimal, plan

BEST = plan((0, 1, "gpu"), (1, 2, "cpu"))


@pytest.fixture
def problem() -> Problem:
    return table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net", objective="period")


def test_an_answer_comes_back(problem: Problem) -> None:
    backend = claiming(optimal(BEST, values=(2000,), bound=2000))
    assert solve(problem, backend, isolate=True).plan == BEST


def test_a_crash_is_contained_and_quoted(problem: Problem) -> None:
    with pytest.raises(BackendFailedError, match="SIGSEGV") as error:
        solve(problem, FakeBackend(act=crash), isolate=True)
    assert "assertion failed in a native library" in str(error.value)


def test_an_exit_without_an_answer_is_a_failure(problem: Problem) -> None:
    with pytest.raises(BackendFailedError, match="exit code 7"):
        solve(problem, FakeBackend(act=leave), isolate=True)


def test_an_exception_is_a_failure(problem: Problem) -> None:
    with pytest.raises(BackendFailedError, match="by nought"):
        solve(problem, FakeBackend(act=fail), isolate=True)


def test_our_own_errors_keep_their_type(problem: Problem) -> None:
    ruled = problem.with_rules(OpaqueRule(name="broken", predicate=lambda plan: plan.nothing))  # type: ignore[attr-defined]
    with pytest.raises(InvalidProblemError, match="'broken' failed on the plan"):
        solve(ruled, "exhaustive", isolate=True)


def test_a_hang_ends_at_the_deadline(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.solvers.sandbox.GRACE_S", 0.1)
    started = time.monotonic()
    result = solve(problem, FakeBackend(act=hang), SolveOptions(time_limit_s=0.2), isolate=True)
    assert (result.status, result.stop) == (SolveStatus.NO_SOLUTION, StopReason.TIME_LIMIT)
    assert time.monotonic() - started < 60  # the child itself never ends


def test_what_was_published_before_a_hang_is_not_lost(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish_and_hang(problem: Problem, options: SolveOptions) -> Claim:
        options.publish(feasible(plan((0, 2, "cpu")), bound=500))
        options.publish(feasible(BEST, bound=1000))
        return hang(problem, options)

    monkeypatch.setattr("gapless.solvers.sandbox.GRACE_S", 0.1)
    seen: list[Claim] = []
    options = SolveOptions(time_limit_s=0.3, publish=seen.append)
    result = solve(problem, FakeBackend(act=publish_and_hang), options, isolate=True)
    assert (result.status, result.stop, result.plan) == ("feasible", StopReason.TIME_LIMIT, BEST)
    assert result.gap == 0.5
    assert len(seen) == 2


def test_memory_is_limited(problem: Problem) -> None:
    options = SolveOptions(memory_limit_bytes=200 * 2**20)
    result = solve(problem, FakeBackend(act=eat_memory), options, isolate=True)
    assert (result.status, result.stop) == (SolveStatus.NO_SOLUTION, StopReason.MEMORY_LIMIT)


def test_a_lie_is_refuted_from_a_child_too(problem: Problem) -> None:
    lie = replace(feasible(plan((0, 1, "cpu"))), stop=StopReason.COMPLETE)
    assert solve(problem, claiming(lie), isolate=True).status is SolveStatus.NO_SOLUTION


def test_what_a_solver_prints_stays_out_of_standard_output(
    problem: Problem, capfd: pytest.CaptureFixture[str]
) -> None:
    def chatty(problem: Problem, options: SolveOptions) -> Claim:
        os.write(1, b"Welcome to the solver")
        os.write(2, b"Licence: none")
        return optimal(BEST, values=(2000,), bound=2000)

    assert solve(problem, FakeBackend(act=chatty), isolate=True).plan == BEST
    assert capfd.readouterr() == ("", "")


def test_no_child_is_left_behind(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []

    def tell_and_hang(problem: Problem, options: SolveOptions) -> Claim:
        options.publish(replace(feasible(BEST), statistics={"pid": os.getpid()}))
        return hang(problem, options)

    def note(claim: Claim) -> None:
        pids.append(int(claim.statistics["pid"]))

    monkeypatch.setattr("gapless.solvers.sandbox.GRACE_S", 0.1)
    options = SolveOptions(time_limit_s=0.2, publish=note)
    solve(problem, FakeBackend(act=tell_and_hang), options, isolate=True)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


def test_an_interruption_kills_the_child(problem: Problem) -> None:
    def interrupt(claim: Claim) -> None:
        raise KeyboardInterrupt

    def publish_and_hang(problem: Problem, options: SolveOptions) -> Claim:
        options.publish(feasible(BEST))
        return hang(problem, options)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        solve(problem, FakeBackend(act=publish_and_hang), SolveOptions(publish=interrupt), isolate=True)
    assert time.monotonic() - started < 60  # the child itself never ends

"""Child processes: whatever a backend does, the caller gets an answer or a clear error."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace

import pytest

from gapless.api.problems import table_problem
from gapless.formulations.errors import BackendFailedError, InvalidProblemError
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.solvers import sandbox
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus, StopReason
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve
from tests.processes import alive, assert_nothing_outlives, soon

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


def test_a_hang_ends_at_the_deadline(problem: Problem) -> None:
    started = time.monotonic()
    result = solve(problem, FakeBackend(act=hang), SolveOptions(time_limit_s=0.2), isolate=True)
    assert (result.status, result.stop) == (SolveStatus.NO_SOLUTION, StopReason.TIME_LIMIT)
    assert time.monotonic() - started < 60  # the child itself never ends


def test_what_was_published_before_a_hang_is_not_lost(problem: Problem) -> None:
    def publish_and_hang(problem: Problem, options: SolveOptions) -> Claim:
        options.publish(feasible(plan((0, 2, "cpu")), bound=500))
        options.publish(feasible(BEST, bound=1000))
        return hang(problem, options)

    seen: list[Claim] = []
    options = SolveOptions(time_limit_s=0.3, publish=seen.append)
    result = solve(problem, FakeBackend(act=publish_and_hang), options, isolate=True)
    assert (result.status, result.stop, result.plan) == ("feasible", StopReason.TIME_LIMIT, BEST)
    assert result.gap == 0.5
    assert len(seen) == 2


@pytest.mark.slow
def test_what_is_published_while_the_caller_is_busy_is_not_lost(problem: Problem) -> None:
    def publish_and_hang(problem: Problem, options: SolveOptions) -> Claim:
        options.publish(feasible(plan((0, 2, "cpu"))))
        options.publish(feasible(BEST))
        return hang(problem, options)

    def draw_slowly(claim: Claim) -> None:
        time.sleep(1.0)  # longer than the limit: the second plan waits in the pipe

    options = SolveOptions(time_limit_s=0.5, publish=draw_slowly)
    assert solve(problem, FakeBackend(act=publish_and_hang), options, isolate=True).plan == BEST


def test_publishing_without_end_does_not_put_off_the_end(problem: Problem) -> None:
    def publish_on(problem: Problem, options: SolveOptions) -> Claim:
        while True:
            options.publish(feasible(BEST))

    result = solve(problem, FakeBackend(act=publish_on), SolveOptions(time_limit_s=0.3), isolate=True)
    assert (result.status, result.stop, result.plan) == ("feasible", StopReason.TIME_LIMIT, BEST)


def test_an_answer_is_not_kept_waiting_by_a_child_that_does_not_end(problem: Problem) -> None:
    def answer_and_stay(problem: Problem, options: SolveOptions) -> Claim:
        threading.Thread(target=time.sleep, args=(600,)).start()  # Python waits for it at its end
        return optimal(BEST, values=(2000,), bound=2000)

    started = time.monotonic()
    assert solve(problem, FakeBackend(act=answer_and_stay), isolate=True).plan == BEST
    assert time.monotonic() - started < 60


def test_a_backend_is_told_less_than_the_limit(problem: Problem) -> None:
    def tell(problem: Problem, options: SolveOptions) -> Claim:
        claim = feasible(BEST)
        return replace(claim, statistics={"told": options.time_limit_s or 0.0})

    result = solve(problem, FakeBackend(act=tell), SolveOptions(time_limit_s=20), isolate=True)
    assert float(result.statistics["told"]) == 20 - sandbox.RESERVE_S  # the start of the child is not charged
    assert result.startup_s > 0
    assert solve(problem, FakeBackend(act=tell), isolate=True).statistics["told"] == 0.0


@pytest.mark.slow
def test_a_child_works_for_a_thread_that_is_not_the_main_one(problem: Problem) -> None:
    found: list[SolveResult] = []

    def slow(problem: Problem, options: SolveOptions) -> Claim:
        time.sleep(0.3)
        return optimal(BEST, values=(2000,), bound=2000)

    for _ in range(3):
        thread = threading.Thread(
            target=lambda: found.append(solve(problem, FakeBackend(act=slow), isolate=True))
        )
        thread.start()
        thread.join()
    assert [result.plan for result in found] == [BEST] * 3


KILLED = """
import os, threading, time
from gapless.api.problems import table_problem
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from tests.solvers import fakes
from tests.processes import descendants

def tell():
    while not descendants(os.getpid()):
        time.sleep(0.01)
    time.sleep(0.2)
    print(*descendants(os.getpid()), flush=True)

threading.Thread(target=tell, daemon=True).start()
problem = table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net", objective="period")
solve(problem, fakes.FakeBackend(act=fakes.hang), isolate=True)
"""


def test_solvers_end_with_a_parent_that_is_killed() -> None:
    assert_nothing_outlives(KILLED)


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


def test_no_child_is_left_behind(problem: Problem) -> None:
    pids: list[int] = []

    def tell_and_hang(problem: Problem, options: SolveOptions) -> Claim:
        options.publish(replace(feasible(BEST), statistics={"pid": os.getpid()}))
        return hang(problem, options)

    def note(claim: Claim) -> None:
        pids.append(int(claim.statistics["pid"]))

    options = SolveOptions(time_limit_s=0.2, publish=note)
    solve(problem, FakeBackend(act=tell_and_hang), options, isolate=True)
    assert soon(lambda: not alive(pids[0]))


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

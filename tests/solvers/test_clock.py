"""The clock of a search: loading and warming up is charged to nobody, work on the problem to everybody."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import pytest

import gapless
from gapless.api.problems import table_problem
from gapless.formulations.errors import BackendFailedError
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import as_schedules
from gapless.profiler.platforms.workloads import shipped_workload
from gapless.solvers import sandbox
from gapless.solvers.protocol import Claim, Clock, Deadline, SolveOptions, StopReason
from gapless.solvers.session import solve

from .fakes import FakeBackend, feasible, optimal, plan

BEST = plan((0, 1, "gpu"), (1, 2, "cpu"))
SLOW_S = 0.4


@pytest.fixture
def problem() -> Problem:
    return table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net", objective="period")


@dataclass
class SlowToLoad(FakeBackend):
    """Takes long to load, and has its plan at once."""

    loading_s: float = SLOW_S
    warmed: list[str] = field(default_factory=list)

    def warm_up(self, formulation: str) -> None:
        self.warmed.append(formulation)
        time.sleep(self.loading_s)


def answer(problem: Problem, options: SolveOptions) -> Claim:
    claim = optimal(BEST, values=(2000,), bound=2000)
    options.publish(feasible(BEST))
    return replace(claim, statistics={"told": options.time_limit_s or 0.0})


@pytest.mark.parametrize("isolate", [False, True])
def test_loading_is_not_charged(problem: Problem, isolate: bool) -> None:
    backend = SlowToLoad(act=answer)
    backend.capabilities = replace(backend.capabilities, isolated=isolate)
    found = gapless.compare(problem, backends=[backend], time_limit_s=SLOW_S / 2).results[0]
    assert found.startup_s >= SLOW_S
    assert found.plan == BEST
    reserve = min(sandbox.RESERVE_S, sandbox.RESERVE_SHARE * SLOW_S / 2) if isolate else 0.0
    assert float(found.statistics["told"]) == SLOW_S / 2 - reserve  # all of its time, however long it loads
    assert found.course[0].at_s < found.startup_s
    if not isolate:
        assert backend.warmed == [problem.formulation.name]


def test_the_problem_itself_is_charged(problem: Problem) -> None:
    def encode(problem: Problem, options: SolveOptions) -> Claim:
        time.sleep(SLOW_S)
        return answer(problem, options)

    found = gapless.compare(problem, backends=[FakeBackend(act=encode)]).results[0]
    assert found.course[0].at_s >= SLOW_S
    assert found.runtime_s >= SLOW_S


@pytest.mark.parametrize("isolate", [False, True])
def test_what_fails_while_it_loads_is_contained(problem: Problem, isolate: bool) -> None:
    class Broken(SlowToLoad):
        def warm_up(self, formulation: str) -> None:
            raise OSError("no licence")

    with pytest.raises(BackendFailedError, match="no licence"):
        solve(problem, Broken(act=answer), isolate=isolate)


def test_loading_has_an_end(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "WARM_UP_S", 0.2)
    with pytest.raises(BackendFailedError, match=r"was not loaded and warmed up within 0\.2 s"):
        solve(problem, SlowToLoad(act=answer, loading_s=600), isolate=True)


def test_a_clock_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 5.0, 6.0, 7.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    clock = Clock()
    deadline = Deadline(3.0, clock)  # at 0
    with clock.stopped(), clock.stopped():  # from 1 to 5
        assert deadline.left_s == 2.0
    assert clock.now() == 2.0  # at 6
    assert deadline.passed  # at 7


def test_a_share_of_a_deadline_goes_by_its_clock() -> None:
    times = iter([0.0, 0.0, 4.0, 4.0, 6.9, 7.0, 4.0, 4.0, 7.0])
    deadline = Deadline(10.0, Clock(lambda: next(times)))  # at 0
    assert deadline.left_s == 10.0
    half = deadline.share(0.5)  # at 4, for 3 s
    assert (half.passed, half.passed) == (False, True)
    less = deadline.share(less_s=3.0)  # at 4, for 3 s
    assert less.passed
    assert Deadline(None).share(0.5).left_s is None


@pytest.mark.parametrize("backend", ["native", "annealing", "hetero2pipe"])
def test_a_search_goes_by_the_clock_that_it_is_given(backend: str) -> None:
    """Each look at this clock takes 100 s, so that what is left to do after some looks is left out."""
    problem = shipped_workload("kirin990", "yolov4,bert,mobilenetv2x3,vgg16,alexnet,resnet50")
    options = SolveOptions(time_limit_s=300.0, clock=Clock(partial(next, count(0.0, 100.0))))
    found = solve(problem, backend, options, explain=False)
    assert found.plan is not None
    assert found.stop is StopReason.TIME_LIMIT


FIRST = """
import json, sys
import gapless
from gapless.api.asked import problem_of
from gapless.question.question import Question
from gapless.solvers import session

def warm_up(backend, problem, warm=session.warm_up):
    global before
    warm(backend, problem)
    before = set(sys.modules)

session.warm_up = warm_up
problem = problem_of(Question(**json.loads(sys.argv[1])))
gapless.compare(problem, backends=[sys.argv[2]], time_limit_s=1, start="none")
found = sorted(name for name in set(sys.modules) - before if name.startswith("gapless."))
assert not found, found
"""
WORKLOAD = {"platform": "kirin990", "workload": "yolov4,bert,mobilenetv2x3"}


@pytest.mark.slow
def test_a_search_in_rounds_goes_by_the_clock_that_it_is_given() -> None:
    """Two looks at this clock take all the time; by that of the machine there are thousands of steps."""
    problem = as_schedules(shipped_workload("kirin990", "yolov4,bert,mobilenetv2x3,vgg16,alexnet,resnet50"))
    options = SolveOptions(time_limit_s=2.0, clock=Clock(partial(next, count(0.0, 1.0))))
    found = solve(problem, "native", options, explain=False)
    assert found.plan is not None
    steps = found.statistics["steps"]
    assert isinstance(steps, int)
    assert steps < 500


@pytest.mark.parametrize("name", ["native", "exhaustive", "hetero2pipe", "annealing", "band"])
def test_no_module_is_loaded_on_the_clock_of_the_first_search(name: str) -> None:
    asked = {"problem": "pixel7a/octree"} if name == "exhaustive" else WORKLOAD
    command = [sys.executable, "-c", FIRST, json.dumps(asked), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

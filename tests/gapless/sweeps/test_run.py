from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

import gapless
from gapless.api import asked as asking
from gapless.api.planning import plan
from gapless.executor.progress import Step
from gapless.formulations.errors import BackendFailedError, InvalidInputError
from gapless.formulations.files import load_plan
from gapless.formulations.json_files import dump
from gapless.formulations.network import Network
from gapless.formulations.rules import OpaqueRule
from gapless.question.question import Question
from gapless.sweeps import run as running
from gapless.sweeps.answers import ANSWER, TaskAnswer, answer
from gapless.sweeps.folder import SWEEP, SweepOptions, opened
from gapless.sweeps.run import MOST_ATTEMPTS, SweepResult, sweep
from gapless.sweeps.spec import LimitSet, Sweep, SweepPlatform
from gapless.sweeps.tasks import SweepTask
from gapless.sweeps.workers import LocalWorkers
from tests.processes import alive, descendants, soon

BOARDS = Sweep(
    models=("octree", "alexnet-sparse"),
    platforms=("pixel7a", SweepPlatform(name="oneplus11", units="1..2")),
    limits=(LimitSet(), LimitSet(max_units=1, label="one unit")),
)


def values(found: SweepResult) -> dict[int, int | None]:
    return {row.task: row.value for row in found.rows}


def kept(folder: Path) -> int:
    """Return how many answers the store of a sweep has."""
    try:
        with sqlite3.connect(f"file:{folder}/sweep.sqlite?mode=ro", uri=True) as connection:
            return int(connection.execute("SELECT count(*) FROM ledger").fetchone()[0])
    except sqlite3.Error:
        return 0


def test_every_row_is_what_plan_says() -> None:
    found = sweep(BOARDS, jobs=2)
    assert (len(found.rows), found.total, found.failed, found.notes) == (12, 12, (), ())
    assert [row.task for row in found.rows] == list(range(1, 13))
    for row in found.rows:
        problem = gapless.load_problem(f"{row.platform}/{row.model}").with_limits(max_units=row.available)
        alone = plan(problem)
        assert (row.value, row.bound, row.plan) == (alone.objective, alone.bound, str(alone.plan))
        assert (row.status, row.gap, row.per_second) == ("optimal", 0.0, alone.candidates[0].score.throughput)
        assert row.worker.rpartition(":")[2] != str(os.getpid())
    assert {(row.limits, row.available) for row in found.rows} == {("", 4), ("", 1), ("", 2), ("one unit", 1)}


def test_a_cluster_is_planned_with_every_number_of_devices_and_its_model_is_opened_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked_for: list[str | None] = []

    def network_named(asked: Question) -> Network:
        asked_for.append(asked.problem)
        return asking.network_named(asked)

    monkeypatch.setattr(running, "network_named", network_named)
    asked = Sweep(
        models=("vit-large",),
        platforms=(SweepPlatform(name="raspberry-pis", devices={"pi5": "1", "pi4": "0..2"}, batch=2),),
        prices={"pi5": 90, "pi4": 60},
    )
    found = sweep(asked, jobs=2)
    assert asked_for == ["vit-large"]
    assert [(row.devices, row.available, row.price) for row in found.rows] == [
        ("pi5=1,pi4=0", 1, 90.0),
        ("pi5=1,pi4=1", 2, 150.0),
        ("pi5=1,pi4=2", 3, 210.0),
    ]
    alone = plan(
        gapless.clusters.cluster_problem("vit-large", "raspberry-pis", batch=2, devices={"pi5": 1, "pi4": 1})
    )
    assert found.rows[1].value == alone.objective
    rate = alone.candidates[0].score.throughput
    assert rate is not None
    assert found.rows[1].per_second == pytest.approx(2 * rate), "an item is two inferences"
    assert all(row.estimated for row in found.rows)


def test_what_is_answered_is_not_solved_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sweep(BOARDS, out=tmp_path, jobs=1)
    assert (tmp_path / "sweep.csv").read_text().count("\n") == 13
    monkeypatch.setattr(running, "answer", lambda task, network: pytest.fail("solved again"))
    again = sweep(BOARDS, out=tmp_path, resume=True, plans=True, jobs=1)
    assert (values(again), again.resumed) == (values(first), 12)
    assert len(list((tmp_path / "plans").iterdir())) == 8, "of 12 tasks four are asked twice"
    for row in again.rows:
        assert str(load_plan(tmp_path / row.plan_file)) == row.plan


def test_a_longer_sweep_goes_on_with_a_shorter_one(tmp_path: Path) -> None:
    short = Sweep(models=("octree",), platforms=("pixel7a",))
    sweep(short, out=tmp_path, jobs=1)
    found = sweep(BOARDS, out=tmp_path, resume=True, jobs=1)
    assert (len(found.rows), found.resumed) == (12, 1)


def test_a_folder_with_a_sweep_is_left_alone(tmp_path: Path) -> None:
    asked = Sweep(models=("octree",), platforms=("pixel7a",))
    sweep(asked, out=tmp_path, plans=True)
    own = tmp_path / "plans" / "mine.json"
    own.write_text("{}")
    before = (tmp_path / "sweep.csv").read_text()
    with pytest.raises(InvalidInputError, match=r"holds a sweep(.|\n)*--resume"):
        sweep(BOARDS, out=tmp_path)
    assert (tmp_path / "sweep.csv").read_text() == before
    found = sweep(BOARDS, out=tmp_path, overwrite=True)
    assert found.resumed == 0
    assert [path.name for path in (tmp_path / "plans").iterdir()] == ["mine.json"]


@pytest.mark.slow
def test_two_sweeps_do_not_work_in_one_folder(tmp_path: Path) -> None:
    code = (
        "import sys, gapless\n"
        "gapless.sweep(gapless.studies.Sweep(models=['octree'], platforms=['pixel7a']), out=sys.argv[1])"
    )
    with opened(SweepOptions(out=tmp_path), SWEEP):
        other = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
        )
    assert "is in use" in other.stderr


def deadly(flag: Path, sign: int = signal.SIGKILL) -> OpaqueRule:
    """Return a rule that kills the process that asks it, unless a file is there, which it then makes."""

    def check(plan: object) -> bool:
        if not flag.exists():
            flag.write_text(str(os.getpid()))
            os.kill(os.getpid(), sign)
        return True

    return OpaqueRule(name="deadly", predicate=check)


def test_a_task_whose_worker_is_killed_is_named_and_tried_again(tmp_path: Path) -> None:
    problem = gapless.load_problem("pixel7a/octree")
    poisoned = problem.with_rules(deadly(tmp_path / "flag"))
    found = sweep(Sweep(), problems=[problem, ("deadly board", poisoned)], jobs=2)
    assert values(found) == {1: 2413, 2: 2413}
    assert [row.attempts for row in found.rows] == [1, 2]
    (note,) = found.notes
    assert note == ("task 2 (octree on deadly board): its worker was killed by SIGKILL; tried again (2 of 3)")


def test_a_task_that_always_kills_its_worker_fails_and_the_others_do_not(tmp_path: Path) -> None:
    problem = gapless.load_problem("pixel7a/octree")
    deaths = tmp_path / "deaths"

    def die(plan: object) -> bool:
        with deaths.open("a") as file:
            file.write("x")
        os._exit(7)

    poisoned = problem.with_rules(OpaqueRule(name="die", predicate=die))
    found = sweep(Sweep(objectives=("period", "latency")), problems=[poisoned, problem], jobs=2)
    assert [row.failed for row in found.rows] == [True, True, False, False]
    assert len(deaths.read_text()) == 2 * MOST_ATTEMPTS
    assert found.rows[0].error == "its worker ended with exit code 7"
    assert (found.rows[0].attempts, found.rows[0].status) == (MOST_ATTEMPTS, "failed")
    assert sum("given up after 3 times" in note for note in found.notes) == 2


def test_a_backend_that_was_lost_is_tried_again_and_what_cannot_be_is_not(tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    (tmp_path / "mine.py").write_text(
        "import os\n"
        "from gapless.solvers.exhaustive import ExhaustiveBackend\n"
        "class Mine(ExhaustiveBackend):\n"
        "    name = 'mine'\n"
        "    def solve(self, problem, options):\n"
        f"        with open({str(counted)!r}, 'a') as file: file.write('x')\n"
        f"        if os.path.getsize({str(counted)!r}) == 1: raise ValueError('the first time')\n"
        "        return super().solve(problem, options)\n"
    )
    asked = Sweep(
        problems=("pixel7a/octree",), objectives=("", "makespan"), backends=(f"{tmp_path}/mine.py:Mine",)
    )
    found = sweep(asked, jobs=1)
    assert [(row.failed, row.attempts) for row in found.rows] == [(False, 2), (True, 1)]
    assert "ValueError: the first time" in found.notes[0]
    assert "makespan" in found.rows[1].error


def test_what_failed_is_tried_again_when_a_sweep_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Sweep(models=("octree",), platforms=("pixel7a", "oneplus11"))
    failed = TaskAnswer(error="no luck", failure="ExecutionError")

    def one_fails(task: SweepTask, network: Network | None) -> TaskAnswer:
        return failed if task.base.board == "pixel7a" else answer(task, network)

    monkeypatch.setattr(running, "answer", one_fails)
    assert [row.failed for row in sweep(asked, out=tmp_path, jobs=1).rows] == [True, False]
    monkeypatch.undo()
    found = sweep(asked, out=tmp_path, resume=True, jobs=1)
    assert ([row.failed for row in found.rows], found.resumed) == ([False, False], 1)


def test_a_worker_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.sweeps.workers.STALL_S", 0.3)

    def work(number: int) -> TaskAnswer:
        time.sleep(60 * number)
        return TaskAnswer(plan=f"plan {number}")

    with LocalWorkers(work, 2) as workers:
        workers.give(1, 0.01)
        workers.give(0, 0.01)
        found = {each.number: each for each in (*workers.outcomes(), *workers.outcomes())}
        assert found[0].answer == TaskAnswer(plan="plan 0")
        assert found[1].answer is None
        assert "hung" in found[1].reason
        assert workers.free == 2
        assert len(workers.processes) == 1


def test_an_idle_worker_that_is_lost_is_replaced() -> None:
    with LocalWorkers(lambda number: TaskAnswer(plan=str(os.getpid())), 1) as workers:
        workers.give(0, None)
        (first,) = workers.outcomes()
        (pid,) = workers.processes
        os.kill(pid, signal.SIGKILL)
        assert soon(lambda: not alive(pid))
        workers.give(1, None)
        (second,) = workers.outcomes()
        assert first.answer is not None
        assert second.answer is None, "the sweep gives it again"
        workers.give(1, None)
        (third,) = workers.outcomes()
        assert third.answer is not None
        assert third.answer.plan not in ("", first.answer.plan)


def sleepy(plan: object) -> bool:
    time.sleep(60)
    return True


def test_ctrl_c_keeps_what_is_answered_and_ends_the_workers(tmp_path: Path) -> None:
    slow = gapless.load_problem("pixel7a/octree").with_rules(OpaqueRule(name="slow", predicate=sleepy))
    problems = [gapless.load_problem("pixel7a/octree"), slow]
    seen: list[Step] = []

    def stop(step: Step) -> None:
        seen.append(step)
        if step.done == 1:
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()

    before = set(descendants(os.getpid()))
    with pytest.raises(KeyboardInterrupt):
        sweep(Sweep(), problems=problems, out=tmp_path, jobs=1, report=stop)
    assert seen[-1].total == 2
    assert set(descendants(os.getpid())) <= before
    assert kept(tmp_path) == 1
    assert "octree" in (tmp_path / "sweep.csv").read_text()
    found = sweep(Sweep(), problems=problems[:1], out=tmp_path, resume=True)
    assert found.resumed == 1


SLOW = """
import time
import gapless

def problems():
    for number in range(6):
        def slow(plan, number=number):
            time.sleep(0.03)
            return True
        problem = gapless.load_problem("pixel7a/octree").with_limits(max_period_us=9000 + number)
        yield f"board {number}", problem.with_rules(gapless.OpaqueRule(name="slow", predicate=slow))
"""


@pytest.mark.slow
def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    spec, out = tmp_path / "slow.py", tmp_path / "out"
    spec.write_text(SLOW)
    words = [sys.executable, "-m", "gapless", "sweep", str(spec), "--out", str(out), "--jobs", "2"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert soon(lambda: kept(out) >= 2)
    workers = descendants(process.pid)
    process.kill()
    process.wait()
    before = kept(out)
    assert workers, "the second one may still be on its way"
    assert soon(lambda: not any(map(alive, workers))), "workers end with the sweep"
    assert not (out / "sweep.csv").exists()
    refused = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (refused.returncode, "--resume" in refused.stderr) == (2, True)
    again = subprocess.run([*words, "--resume", "--json"], capture_output=True, text=True, check=False)
    document = json.loads(again.stdout)
    assert again.returncode == 0
    assert 2 <= before <= document["resumed"] <= len(document["rows"]) == 6
    assert {row["value"] for row in document["rows"]} == {2413}


def test_nothing_is_asked_for_that_cannot_be_kept(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="need a folder"):
        sweep(BOARDS, plans=True)
    with pytest.raises(InvalidInputError, match="jobs is 0"):
        sweep(BOARDS, jobs=0)
    with pytest.raises(InvalidInputError, match="one of them"):
        sweep(BOARDS, out=tmp_path, resume=True, overwrite=True)


def test_the_progress_counts_every_task() -> None:
    steps: list[Step] = []
    sweep(BOARDS, jobs=1, report=steps.append)
    assert steps[-1].done == steps[-1].total == 8, "equal tasks are one"
    assert all(before.done <= after.done for before, after in pairwise(steps))


def test_a_lost_answer_says_so() -> None:
    assert TaskAnswer(error="x", failure=BackendFailedError.__name__).lost
    assert not TaskAnswer(error="x", failure="InvalidInputError").lost
    assert json.loads(dump(TaskAnswer(), ANSWER)) == {"format": "gapless.sweep_answer", "version": 1}

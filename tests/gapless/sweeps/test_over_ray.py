"""Sweeps over Ray: the messages, the process that answers on a node, and what is done when nodes are lost."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import gapless
from gapless.formulations.errors import (
    BackendFailedError,
    ExecutionError,
    InvalidProblemError,
)
from gapless.formulations.json_files import parse
from gapless.formulations.rules import OpaqueRule
from gapless.sweeps import over_ray
from gapless.sweeps.answers import ANSWER, TaskAnswer
from gapless.sweeps.run import sweep
from gapless.sweeps.served import answer_document, task_document
from gapless.sweeps.spec import LimitSet, Sweep, SweepPlatform
from gapless.sweeps.tasks import tasks_of
from tests.processes import alive, soon

ASKED = Sweep(
    models=("octree",),
    platforms=("pixel7a", "oneplus11"),
    objectives=("", "latency"),
    limits=(LimitSet(max_units=3),),
)


class RayError(Exception):
    """Stands for all that Ray itself raises."""


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__("a long text")
        self.cause = cause


class FakeRay:
    """A Ray of one process: a task is done when it is waited for."""

    def __init__(self, *, cores: float = 2) -> None:
        self.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
        self.cores = cores
        self.sent: list[bytes] = []
        self.lose: list[Exception] = []
        self.left = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cores} if self.cores else {}

    def remote(self, *, max_retries: int) -> Any:
        assert max_retries == 0
        return lambda function: SimpleNamespace(options=lambda num_cpus: SimpleNamespace(remote=self._given))

    def _given(self, document: bytes) -> int:
        self.sent.append(document)
        return len(self.sent) - 1

    def wait(self, given: list[int], *, num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        if not self.cores:
            return [], given
        return given[:num_returns], given[num_returns:]

    def get(self, given: int) -> bytes:
        if self.lose:
            raise self.lose.pop()
        return answer_document(self.sent[given])

    def cancel(self, given: int, *, force: bool) -> None:
        assert force

    def leave(self) -> None:
        self.left = True


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setattr(over_ray, "_joined", lambda address, allow_no_token: (fake, fake.leave))
    return fake


@pytest.fixture
def child() -> Iterator[None]:
    """End the process that answers, after the test."""
    yield
    for each in over_ray._children:
        each.process.kill()
        each.process.wait()
        each.connection.close()
    over_ray._children.clear()


def test_the_same_answers_come_from_nodes_and_from_processes(ray: FakeRay) -> None:
    there, here = sweep(ASKED, address="head:6379"), sweep(ASKED, jobs=1)
    assert [(row.value, row.plan_id, row.fingerprint) for row in there.rows] == [
        (row.value, row.plan_id, row.fingerprint) for row in here.rows
    ]
    assert ray.left
    problem = json.loads(json.loads(ray.sent[0])["problem"])
    assert problem["format"] == "gapless.problem", "tasks are JSON, and bring their problem along"


def test_a_task_brings_devices_and_rules_along() -> None:
    asked = Sweep(
        models=("vit-large",), platforms=(SweepPlatform(name="raspberry-pis", devices={"pi4": "0"}),)
    )
    (task,) = tasks_of(asked)
    found = parse(answer_document(task_document(task, None)), ANSWER, name="answer")
    assert (found.units, found.status) == (2, "optimal")
    ruled = gapless.load_problem("pixel7a/octree").with_rules(lambda view: ~view.uses("GPU"))
    (task,) = tasks_of(Sweep(), [("", ruled)])
    found = parse(answer_document(task_document(task, None)), ANSWER, name="answer")
    assert "GPU" not in found.plan


def test_opaque_rules_cannot_be_sent_and_fail_in_words(ray: FakeRay) -> None:
    opaque = gapless.load_problem("pixel7a/octree").with_rules(
        OpaqueRule(name="own", predicate=lambda plan: True)
    )
    (task,) = tasks_of(Sweep(), [("", opaque)])
    with pytest.raises(InvalidProblemError, match="opaque rules are Python code"):
        task_document(task, None)
    found = sweep(Sweep(), problems=[opaque, gapless.load_problem("pixel7a/octree")], address="head:6379")
    assert [row.failed for row in found.rows] == [True, False]
    assert "opaque rules" in found.rows[0].error


def test_an_error_on_a_node_is_an_answer() -> None:
    (task,) = tasks_of(Sweep(problems=("pixel7a/octree",), objectives=("latency",), backends=("z3-paper",)))
    found = parse(answer_document(task_document(task, None)), ANSWER, name="answer")
    assert found.error
    assert found.failure in ("UnsupportedFeatureError", "BackendUnavailableError")


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        (RayError("the node died\nand more"), "RayError: the node died"),
        (RayTaskError(BackendFailedError("its worker on vm ended")), "its worker on vm ended"),
    ],
)
def test_a_task_that_is_lost_is_tried_again_elsewhere(ray: FakeRay, lost: Exception, words: str) -> None:
    ray.lose = [lost]
    found = sweep(ASKED, address="head:6379")
    assert not found.failed
    assert sum(row.attempts for row in found.rows) == 5
    (note,) = found.notes
    assert words in note
    assert "tried again (2 of 3)" in note
    assert "and more" not in note


def test_nodes_without_gapless_end_the_sweep_in_words(ray: FakeRay) -> None:
    ray.lose = [RayTaskError(ModuleNotFoundError("No module named 'gapless'"))]
    with pytest.raises(ExecutionError, match="this version of gapless has to be installed"):
        sweep(ASKED, address="head:6379")
    assert ray.left


def test_a_cluster_without_nodes_is_not_waited_for(ray: FakeRay) -> None:
    ray.cores = 0
    with pytest.raises(ExecutionError, match=r"no node .* is left"):
        sweep(ASKED, address="head:6379")


def test_no_more_tasks_are_on_their_way_than_was_said(ray: FakeRay) -> None:
    workers = over_ray.RayWorkers(tasks_of(ASKED), lambda task: None, "head:6379", None)
    assert workers.free == 4
    workers.give(0, None)
    assert workers.free == 3
    assert over_ray.RayWorkers(tasks_of(ASKED), lambda task: None, "head:6379", 1).free == 1


def test_without_ray_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExecutionError, match=r"pip install 'gapless\[cluster\]'"):
        sweep(ASKED, address="head:6379")


@pytest.mark.slow
def test_the_process_on_a_node_answers_and_is_replaced_when_it_is_killed(child: None) -> None:
    (task, *_) = tasks_of(ASKED)
    document = task_document(task, None)

    def plan() -> TaskAnswer:
        return parse(over_ray.answer_here(document), ANSWER, name="answer")

    first, again = plan(), plan()
    assert first.worker == again.worker
    pid = int(first.worker.rpartition(":")[2])
    assert pid != os.getpid()
    os.kill(pid, signal.SIGKILL)
    assert soon(lambda: not alive(pid))
    with pytest.raises(BackendFailedError, match=r"ended with exit code -9"):
        plan()
    after = plan()
    assert (after.value, after.worker != first.worker) == (first.value, True)

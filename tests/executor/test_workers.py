"""Worker processes: pinned, talking, and gone when they should be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gapless.executor.workers import Worker, parse_unit, unit_data
from gapless.formulations.errors import ExecutionError, PlacementError, UnitLostError
from gapless.formulations.hardware import EngineSettings, Precision, ProcessingUnit
from tests.processes import alive, soon

CORE = min(os.sched_getaffinity(0))
UNIT = ProcessingUnit(name="core", cores=(CORE,), threads=1)
ROLE = "tests.executor.roles:echo"


def gone(pid: int, within_s: float = 60.0) -> bool:
    """Return whether a process ends in time."""
    return soon(lambda: not alive(pid), within_s)


def test_a_unit_survives_the_journey() -> None:
    unit = ProcessingUnit(
        name="x", cores=(0, 1), threads=2, engine=EngineSettings(precision=Precision.LOW), quota_permille=500
    )
    assert parse_unit(unit_data(unit)) == unit


def test_a_worker_is_pinned_and_answers() -> None:
    with Worker(UNIT, ROLE, {"a": [1, "zwei"]}) as worker:
        ready = worker.expect("ready")
        assert ready["cores"] == [CORE]
        assert ready["settings"] == {"a": [1, "zwei"]}
        worker.send({"kind": "hello", "text": "x" * 300_000})
        answer = worker.receive(60)
        assert answer is not None
        assert len(answer["text"]) == 300_000
        assert worker.receive(0.01) is None
        pid = worker.pid
    assert gone(pid)


def test_cores_that_may_not_be_used_are_refused() -> None:
    beyond = ProcessingUnit(name="far", cores=(4000,))
    with Worker(beyond, ROLE, {}) as worker, pytest.raises(PlacementError, match="'far' needs the cores"):
        worker.expect("ready")


def test_what_a_worker_raises_is_raised_here() -> None:
    with Worker(UNIT, ROLE, {}) as worker:
        worker.expect("ready")
        worker.send({"kind": "refuse"})
        with pytest.raises(PlacementError, match="something else"):
            worker.receive(10)
    with Worker(UNIT, ROLE, {}) as worker:
        worker.expect("ready")
        worker.send({"kind": "crash"})
        with pytest.raises(ExecutionError, match="'core' failed: RuntimeError: oh no"):
            worker.receive(10)


def test_a_dead_worker_is_missed_with_its_last_words() -> None:
    with Worker(UNIT, ROLE, {}) as worker:
        worker.expect("ready")
        worker.send({"kind": "leave"})
        with pytest.raises(UnitLostError, match="exit code 3; it last printed: a last word"):
            worker.receive(10)
    with Worker(UNIT, ROLE, {}) as worker:
        worker.expect("ready")
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(UnitLostError, match="killed by SIGKILL"):
            worker.receive(10)


def test_a_silent_worker_is_given_up() -> None:
    with Worker(UNIT, ROLE, {}) as worker:
        worker.expect("ready")
        worker.send({"kind": "hang"})
        with pytest.raises(UnitLostError, match="did not say 'done'"):
            worker.expect("done", 0.2)
        pid = worker.pid
    assert gone(pid)


def test_workers_end_with_their_parent() -> None:
    code = (
        "from tests.executor.test_workers import *\n"
        "worker = Worker(UNIT, ROLE, {})\n"
        "worker.expect('ready')\n"
        "worker.send({'kind': 'hang'})\n"
        "print(worker.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    assert gone(pid, within_s=10)


def test_a_worker_that_is_still_starting_ends_with_its_parent() -> None:
    code = (
        "from tests.executor.test_workers import *\n"
        "worker = Worker(UNIT, ROLE, {})\n"
        "print(worker.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
    assert gone(pid, within_s=10)


def test_a_worker_outlives_the_thread_that_made_it() -> None:
    made: list[Worker] = []
    thread = threading.Thread(target=lambda: made.append(Worker(UNIT, ROLE, {})))
    thread.start()
    thread.join()
    with made[0] as worker:
        worker.expect("ready")
        assert not gone(worker.pid, within_s=0.3)
        worker.send({"kind": "hello"})
        assert worker.receive(60) == {"kind": "hello"}


def test_a_worker_imports_nothing_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("queue", "onnx", "numpy"):
        (tmp_path / f"{name}.py").write_text("import os\nopen('executed', 'w').close()\nos._exit(1)\n")
    monkeypatch.chdir(tmp_path)
    with Worker(UNIT, "tests.executor.roles:imports", {"modules": ["queue", "numpy"]}) as worker:
        found = worker.expect("ready")["files"]
    assert not (tmp_path / "executed").exists()
    assert not any(str(tmp_path) in file for file in found)

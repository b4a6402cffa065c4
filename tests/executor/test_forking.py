"""Forked workers: as fresh programs would be, only sooner there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gapless.executor import forking
from gapless.executor.forking import LOADED, Forked
from gapless.executor.workers import Worker
from gapless.formulations.errors import UnitLostError
from gapless.formulations.hardware import ProcessingUnit
from tests.processes import alive, soon

CORE = min(os.sched_getaffinity(0))
UNIT = ProcessingUnit(name="core", cores=(CORE,), threads=1)
TWO_THREADS = ProcessingUnit(name="wide", threads=2)
ECHO = "tests.executor.roles:echo"
SHOW = "tests.executor.roles:show"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux only")


def shown(unit: ProcessingUnit = UNIT, **options: Any) -> dict[str, Any]:
    """Return what a worker says of itself."""
    with Worker(unit, SHOW, {}, **options) as worker:
        return dict(worker.expect("ready"))


def gone(pid: int) -> bool:
    """Return whether a process ends in time."""
    return soon(lambda: not alive(pid), 60)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[forking._Servers]:
    """Servers of the test's own."""
    own = forking._Servers()
    monkeypatch.setattr(forking, "_servers", lambda process: own)
    yield own
    own.kill()


def test_workers_are_children_of_one_process_that_has_loaded_what_they_need() -> None:
    one, other = shown(engines=["onnxruntime"]), shown(engines=["onnxruntime"])
    assert one["parent"] == other["parent"] != os.getpid()
    assert one["pid"] != other["pid"]
    assert {"numpy", "onnxruntime"} <= set(one["modules"])


def test_nothing_that_is_loaded_starts_a_thread() -> None:
    found = shown(engines=list(LOADED))
    assert found["parent"] != os.getpid()  # a server of several threads would refuse
    assert found["threads"] == 1


@pytest.mark.usefixtures("servers")
def test_a_fork_is_as_a_fresh_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPLESS_GONE", "1")
    shown(engines=["numpy"])  # the server is there, and in another folder
    monkeypatch.delenv("GAPLESS_GONE")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GAPLESS_SOMETHING", "é")
    forked = shown(TWO_THREADS, engines=["numpy"])
    fresh = shown(TWO_THREADS)
    assert (forked["parent"] != os.getpid(), fresh["parent"]) == (True, os.getpid())
    for found in (forked, fresh):
        assert found["environment"]["GAPLESS_SOMETHING"] == "é"
        assert found["environment"]["OMP_NUM_THREADS"] == "2"
        assert found["folder"] == str(tmp_path)
        assert found["session"] == found["pid"]
    same = ("environment", "folder", "cores", "descriptors", "signals", "path")
    assert {name: forked[name] for name in same} == {name: fresh[name] for name in same}


def test_a_fork_inherits_descriptors_under_numbers_that_its_server_uses_too() -> None:
    shown(engines=["numpy"])
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(64)]
    try:
        found = shown(engines=["numpy"], descriptors=held)
    finally:
        for descriptor in held:
            os.close(descriptor)
    assert found["parent"] != os.getpid()
    assert set(map(str, held)) <= set(found["descriptors"])


def test_what_no_message_can_tell_starts_afresh_and_the_next_is_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(forking._MOST_DESCRIPTORS)]
    try:
        found = shown(descriptors=held)
    finally:
        for descriptor in held:
            os.close(descriptor)
    assert found["parent"] == os.getpid()
    assert set(map(str, held)) <= set(found["descriptors"])
    monkeypatch.setenv("GAPLESS_LONG", "x" * forking._MOST_BYTES)
    assert shown()["parent"] == os.getpid()
    monkeypatch.delenv("GAPLESS_LONG")
    assert shown()["parent"] != os.getpid()
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    with Worker(UNIT, ECHO, {}) as worker:
        worker.expect("ready")
        assert not isinstance(worker._process, Forked)


def test_what_it_may_use_and_is_not_known_is_not_forked_unless_it_has_one_thread() -> None:
    assert shown(TWO_THREADS, engines=["callable"])["parent"] == os.getpid()
    assert shown(UNIT, engines=["callable"])["parent"] != os.getpid()


def test_each_draws_its_own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    # some versions of numpy load it with the rest
    monkeypatch.setattr(forking, "LOADED", {**LOADED, "numpy": ("numpy.random",)})
    assert shown(engines=["numpy"])["drawn"] != shown(engines=["numpy"])["drawn"]


def test_another_environment_has_a_server_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = shown()["parent"]
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")  # read when a library is loaded
    assert shown()["parent"] not in (before, os.getpid())


def test_of_many_environments_the_last_have_servers_and_workers_outlive_them(
    servers: forking._Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Worker(UNIT, ECHO, {}) as first:
        first.expect("ready")
        for number in range(forking._MOST_SERVERS):
            monkeypatch.setenv("SOMETHING", str(number))
            shown()
        (closed,) = servers._closed
        first.send({"kind": "hello"})
        assert first.receive(60) == {"kind": "hello"}
        assert not closed.gone()
    assert soon(closed.gone, 60)


def test_how_a_fork_ended_is_known_and_its_number_is_kept_until_then() -> None:
    worker = Worker(UNIT, ECHO, {})
    worker.expect("ready")
    assert isinstance(worker._process, Forked)
    worker.send({"kind": "leave"})
    assert worker._process.wait(60) == 3
    assert not worker.alive
    os.kill(worker.pid, 0)  # a zombie: no other process has the number
    worker.close()
    assert soon(lambda: not Path(f"/proc/{worker.pid}").exists(), 60)
    with Worker(UNIT, ECHO, {}) as killed:
        killed.expect("ready")
        assert isinstance(killed._process, Forked)
        assert killed._process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            killed._process.wait(0.01)
        os.kill(killed.pid, signal.SIGTERM)
        assert killed._process.wait(60) == -signal.SIGTERM


def test_with_the_server_its_workers_end_and_the_next_ones_are_fresh(servers: forking._Servers) -> None:
    with Worker(UNIT, ECHO, {}) as worker:
        worker.expect("ready")
        (server,) = (each for each in servers._known.values() if each is not None)
        os.kill(server._process.pid, signal.SIGKILL)
        with pytest.raises(UnitLostError, match="SIGKILL"):
            worker.receive(60)
        assert gone(worker.pid)
    assert shown()["parent"] == os.getpid()
    assert shown()["parent"] == os.getpid()


def test_a_server_of_several_threads_does_not_fork(
    servers: forking._Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(forking.LOADED, "threads", ("tests.executor.thread_at_import",))
    assert shown(engines=["numpy"])["parent"] != os.getpid()
    assert shown(engines=["threads"])["parent"] == os.getpid()


def test_the_server_ends_with_its_process() -> None:
    code = (
        "from tests.executor.test_forking import *\n"
        "with Worker(UNIT, SHOW, {}) as worker:\n"
        "    print(worker.expect('ready')['parent'], flush=True)\n"
    )
    for ending in ("", "os.kill(os.getpid(), 9)\n"):
        command = [sys.executable, "-W", "error", "-c", code + ending]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.stderr == ""
        assert gone(int(ran.stdout))


def test_a_fork_of_the_process_has_servers_of_its_own() -> None:
    here, own = shown()["parent"], forking._servers(os.getpid())
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(shown()["parent"]).encode())
        forking._servers(os.getpid()).kill()
        own.kill()  # at its exit it does nothing to those of its parent
        os._exit(0)
    os.waitpid(child, 0)
    there = int(os.read(reading, 100))
    os.close(reading)
    os.close(writing)
    assert there != here
    assert shown()["parent"] == here

"""Real clusters of Ray on this machine: private, silent, gone without a trace; and some that are joined."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gapless.executor.cluster import membership, nodes
from gapless.executor.cluster.membership import Membership
from gapless.executor.cluster.node_process import loopback
from gapless.executor.cluster.nodes import LocalCluster, LocalNode
from gapless.executor.machine.cores import usable_cores
from gapless.executor.progress import Step
from gapless.formulations.errors import (
    EngineUnavailableError,
    ExecutionError,
    GaplessError,
    InvalidInputError,
    PlacementError,
)
from tests.processes import alive, descendants, soon

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'gapless[cluster]'")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="local nodes need Linux"),
    # Ray itself leaves files and child processes to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

TWO = tuple(LocalNode(name=name, cores=(usable_cores()[-1],)) for name in ("left", "right"))


class Role:
    """An actor that says where it is."""

    def __init__(self, word: str) -> None:
        self.word = word

    def where(self) -> tuple[str, int, list[int]]:
        return self.word, os.getpid(), sorted(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return []


@pytest.fixture(scope="module")
def local(steps: list[Step]) -> Iterator[Membership]:
    """A cluster for the tests that leave it as it is; the last one ends a node of it."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Membership.local(TWO, steps.append) as found:
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
        yield found


def test_each_device_gets_an_actor_on_its_cores(local: Membership, steps: list[Step]) -> None:
    assert list(local.devices) == ["left", "right"]
    assert local.alive() == ("left", "right")
    assert [step.done for step in steps] == [0, 1, 2, 3]
    actors = {name: local.start(name, Role, name) for name in local.devices}
    found = {name: ray.get(actor.where.remote()) for name, actor in actors.items()}
    assert [(name, cores) for name, _, cores in found.values()] == [
        (node.name, list(node.cores)) for node in TWO
    ]
    pid = found["left"][1]
    assert alive(pid)
    local.kill(actors["left"])
    assert soon(lambda: not alive(pid))
    with pytest.raises(InvalidInputError, match=r"there is no device 'lefd'.*left"):
        local.start("lefd", Role, "")


def test_everything_listens_on_the_loopback_address_alone(local: Membership) -> None:
    local.start("left", Role, "left")
    own = {os.getpid(), *descendants(os.getpid())}
    listening = [where for pid in own for where in _listening(pid)]
    assert len(listening) > 5
    assert {where.rpartition(":")[0] for where in listening} <= {"127.0.0.1", "[::ffff:127.0.0.1]"}


def test_its_folders_are_for_nobody_else(local: Membership) -> None:
    """Ray opens its own folder to everybody."""
    assert local.address
    found = list(Path(tempfile.gettempdir()).glob("gl-*/r"))
    assert len(found) >= 3
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in found} == {0o700}


def joined(address: str, *, allow: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    """Join a cluster in another process."""
    code = (
        "import sys; from gapless.executor.cluster.membership import Membership\n"
        "with Membership.join(sys.argv[1], allow_no_token=bool(sys.argv[2])) as found:\n"
        "    print(sorted(found.devices), found.alive())"
    )
    return subprocess.run(
        [sys.executable, "-c", code, address, "yes" * allow],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_another_process_joins_with_the_token_alone(local: Membership) -> None:
    right = joined(local.address)
    assert (right.stdout, right.stderr) == ("['left', 'right'] ('left', 'right')\n", "")
    wrong = joined(local.address, RAY_AUTH_TOKEN=secrets.token_hex(32))
    assert "has another token: set RAY_AUTH_TOKEN" in wrong.stderr.splitlines()[-1]
    without = joined(local.address, RAY_AUTH_MODE="disabled")
    assert "RAY_AUTH_MODE is 'disabled': such a cluster takes orders from everybody" in without.stderr


def test_a_cluster_without_a_token_is_joined_only_where_that_is_meant() -> None:
    head = LocalCluster({"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": ""})
    try:
        refused = joined(head.address, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
        assert f"the cluster at {head.address} takes orders from everybody" in refused.stderr
        meant = joined(head.address, allow=True, RAY_AUTH_MODE="disabled")
        assert f"no node of the cluster at {head.address} says that it is a device" in meant.stderr
    finally:
        head.close()


def test_one_process_is_in_one_cluster(local: Membership) -> None:
    with pytest.raises(ExecutionError, match="this process is in a cluster of Ray already"):
        Membership.join(local.address)


def test_a_node_that_is_lost_is_noticed(local: Membership, capfd: pytest.CaptureFixture[str]) -> None:
    actor = local.start("right", Role, "right")
    pid = ray.get(actor.where.remote())[1]
    local.kill_node("right")
    assert not alive(pid)
    assert soon(lambda: local.alive() == ("left",))
    with pytest.raises(ray.exceptions.RayError):
        ray.get(actor.where.remote(), timeout=30)
    assert capfd.readouterr() == ("", "")


def test_nothing_outlives_the_process_that_started_it() -> None:
    code = (
        "import sys, time; from gapless.executor.cluster.nodes import LocalCluster\n"
        "cluster = LocalCluster({'RAY_AUTH_MODE': 'token', 'RAY_AUTH_TOKEN': 'a' * 64})\n"
        "print(cluster.address, flush=True)\ntime.sleep(600)"
    )
    folder = Path(tempfile.mkdtemp(prefix="t-"))  # a path of pytest is too long for sockets
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().startswith("127.0.0.1:")
        children = descendants(parent.pid)
        assert list(folder.glob("gl-*"))
        parent.kill()
    assert len(children) > 4
    assert soon(lambda: not any(map(alive, children)))
    assert soon(lambda: not list(folder.glob("gl-*")))
    shutil.rmtree(folder)


def test_a_node_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "_STORE_BYTES", 1)
    with pytest.raises(ExecutionError, match=r"Ray did not start on this machine: the head did not join.*"):
        LocalCluster({})


def test_what_cannot_be_joined_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for address in ("nowhere", "host:", "host:x", "host:70000"):
        with pytest.raises(InvalidInputError, match="cannot be read, expected HOST:PORT"):
            Membership.join(address)
    with pytest.raises(ExecutionError, match=r"nobody answers at 127\.0\.0\.1:1"):
        Membership.join("127.0.0.1:1")


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "find_spec", lambda name: None)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'gapless\[cluster\]'"):
        Membership.local(TWO)
    with pytest.raises(EngineUnavailableError, match=r"pip install 'gapless\[cluster\]'"):
        Membership.join("127.0.0.1:1")


def test_quotas_that_are_not_permitted_are_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise PlacementError("no control groups here")

    monkeypatch.setattr("gapless.executor.machine.quota.find_cpu_groups", refuse)
    slow = LocalNode(name="slow", cores=TWO[0].cores, quota_permille=500)
    with pytest.raises(GaplessError, match=r"slow: quotas .* not permitted here .no control groups here"):
        Membership.local([slow])


def test_ray_is_what_it_was() -> None:
    from ray._private import services

    before = services.resolve_ip_for_localhost
    with loopback():
        assert services.resolve_ip_for_localhost("127.0.0.1") == "127.0.0.1"
    assert services.resolve_ip_for_localhost is before


def _listening(pid: int) -> Iterator[str]:
    """Yield the addresses that a process listens on."""
    inodes = set()
    for number in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            inodes.add(os.readlink(number))
        except OSError:
            continue
    for family in ("tcp", "tcp6"):
        try:
            table = Path(f"/proc/{pid}/net/{family}").read_text()
        except OSError:  # the process ended after it was listed: it listens no more
            return
        for line in table.splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                yield _readable(words[1])


def _readable(address: str) -> str:
    host, _, port = address.partition(":")
    quads = [str(int(host[at : at + 2], 16)) for at in range(0, len(host), 2)]
    if len(quads) == 4:
        return f"{'.'.join(reversed(quads))}:{int(port, 16)}"
    last = ".".join(reversed(quads[12:]))
    kind = "::ffff:" if host.startswith("0" * 16 + "FFFF0000") else f"{host[:24]}:"
    return f"[{kind}{last}]:{int(port, 16)}"

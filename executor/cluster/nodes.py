"""Local nodes: a cluster of Ray on this machine for trials, one node with cores of its own for each device.

Ray's processes are children of a keeper each (`node_process`) and end with this process, whatever becomes of
it. The head is a node without devices, so that each device can be lost. All of it listens on 127.0.0.1 and
asks for a token that nobody else knows.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...formulations.errors import ExecutionError, InvalidInputError, InvalidProblemError, PlacementError
from ...formulations.hardware import MAX_UNITS
from ...formulations.processes import in_lasting_thread
from ...formulations.validation import Defects
from ..machine.cores import usable_cores
from ..machine.kernel_files import format_cores, parse_cores
from ..workers import import_root

RESOURCE = "gapless:"
"""Prefix of the resource of Ray by which a node says which device it is."""

LOOPBACK = "127.0.0.1"
START_LIMIT_S = 90.0
"""How long a node may take to start: a cold disk and a busy machine included (3 s on an idle one)."""

_STORE_BYTES = 80_000_000  # about the least that Ray takes; tensors do not travel through it

_PREFIX, _OF_RAY = "gl-", "r"

_HEALTH = {"RAY_health_check_period_ms": "500", "RAY_health_check_initial_delay_ms": "1000"}
"""Ray asks its nodes whether they live every 3 s, and believes that one is dead when five answers are
missing. On one machine the answer of a dead one comes at once, so asking more often tells sooner."""

_DEVICE = re.compile(
    r"(?P<name>[^=:@,]+)=cores?(?P<cores>\d{1,4}(?:-\d{1,4})?)(?::(?P<percent>\d{1,3})(?:\.(?P<tenth>\d))?\s?%)?"
    r"(?:@(?P<rate>\d{1,9}(?:\.\d{1,3})?)\s?(?P<unit>[kMG]B/s|[kMG]bit/s))?(?:\+(?P<latency>\d{1,9})\s?(?P<time>us|ms))?",
    re.ASCII,
)
_BYTES = {"kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "kbit/s": 125.0, "Mbit/s": 125e3, "Gbit/s": 125e6}
_MICROSECONDS = {"us": 1, "ms": 1000}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNode:
    """A device that is emulated on this machine.

    `bytes_per_second`, `latency_us`: how fast it sends, and what each message takes on top, microseconds.
    None and 0: as fast as it goes.
    """

    name: str  # name of the device
    cores: tuple[int, ...]  # cores of this machine that it may use
    quota_permille: int | None = None  # share of their time that it may use. None: all
    bytes_per_second: int | None = None
    latency_us: int = 0

    def __post_init__(self) -> None:
        defects = Defects(f"local node {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_counts("cores", self.cores)
        if not self.cores:
            defects.add("needs a core")
        if self.quota_permille is not None and not 1 <= self.quota_permille <= 1000:
            defects.add(f"quota_permille is {self.quota_permille}, must be between 1 and 1000")
        if self.bytes_per_second is not None:
            defects.check_count("bytes_per_second", self.bytes_per_second, least=1)
        defects.check_count("latency_us", self.latency_us)
        defects.raise_as(InvalidProblemError)


def parse_local_nodes(text: str) -> tuple[LocalNode, ...]:
    """Return local nodes, given as their number or one by one.

    `text`: "3": node0, node1, node2 on the usable cores in turn; nodes that share a core get equal quotas of
    it, so that they do not disturb each other. Or devices with their cores, and what is to be slower about
    them: "a=core0:50%@20MB/s+500us,b=core1".
    """
    usable = usable_cores()
    if text.strip().isdecimal() and len(text.strip()) < 4:
        nodes = _spread(int(text), usable)
    else:
        nodes = tuple(_parse_node(part.strip()) for part in text.split(","))
    names = Counter(node.name for node in nodes)
    defects = [f"{count} nodes are called {name!r}" for name, count in names.items() if count > 1]
    defects += [
        f"node {node.name!r} needs the cores {format_cores(missing)}, only {format_cores(usable)} may be used"
        for node in nodes
        if (missing := set(node.cores) - set(usable))
    ]
    if not 1 <= len(nodes) <= MAX_UNITS:
        defects.append(f"there are {len(nodes)}, must be 1 to {MAX_UNITS}")
    if defects:
        raise InvalidInputError(f"local nodes {text!r} cannot be made:", defects)
    return nodes


def _spread(count: int, usable: tuple[int, ...]) -> tuple[LocalNode, ...]:
    cores = [usable[number % len(usable)] for number in range(count)]
    sharing = Counter(cores)
    return tuple(
        LocalNode(
            name=f"node{number}",
            cores=(core,),
            quota_permille=1000 // sharing[core] if sharing[core] > 1 else None,
        )
        for number, core in enumerate(cores)
    )


def _parse_node(text: str) -> LocalNode:
    found = _DEVICE.fullmatch(text)
    if found is None:
        raise InvalidInputError(
            f"local node {text!r} cannot be read: expected a number of nodes, or NAME=CORES[:PERCENT%][@RATE]"
            "[+LATENCY], e.g. a=core0:50%@20MB/s+500us,b=core1"
        )
    rate, percent, latency = found["rate"], found["percent"], found["latency"]
    try:
        return LocalNode(
            name=found["name"].strip(),
            cores=parse_cores(found["cores"]),
            quota_permille=None if percent is None else 10 * int(percent) + int(found["tenth"] or 0),
            bytes_per_second=None if rate is None else round(float(rate) * _BYTES[found["unit"]]),
            latency_us=0 if latency is None else int(latency) * _MICROSECONDS[found["time"]],
        )
    except InvalidProblemError as error:
        raise InvalidInputError(str(error)) from None


class LocalCluster:
    """Ray's processes on this machine; ended by `close`, and when this process ends.

    Raises PlacementError: this system cannot hold several nodes; ExecutionError: the head did not start.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        if sys.platform != "linux":
            raise PlacementError("local nodes need Linux; join a cluster that runs already with --address")
        sweep()
        self._environment = {**os.environ, **_HEALTH, **environment, "PYTHONPATH": _path()}
        self._keepers: dict[str, subprocess.Popen[bytes]] = {}
        try:
            head = ["--head", "--port=0", "--include-dashboard=false", "--no-monitor", "--num-cpus=0"]
            self.address = self._start("", (), head)
        except BaseException:
            self.close()
            raise

    def start(self, node: LocalNode) -> None:
        """Start a node, and wait until it has joined."""
        resources = json.dumps({f"{RESOURCE}{node.name}": 1})
        self._start(
            node.name,
            node.cores,
            [f"--address={self.address}", f"--resources={resources}", "--num-cpus=1"],
        )

    def start_all(self, nodes: Sequence[LocalNode]) -> Iterator[LocalNode]:
        """Start nodes side by side, and yield each in order once it has joined; errors as for `start`."""
        pool = ThreadPoolExecutor(max_workers=max(1, len(nodes)))
        try:
            for node, _ in zip(nodes, pool.map(self.start, nodes), strict=True):
                yield node
        except BaseException:
            self.close()  # or the pool would wait for those that still start
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def kill(self, name: str) -> None:
        """End a node at once, with everything on it, as if its device had lost its power."""
        keeper = self._keepers.pop(name)
        assert keeper.stdin is not None
        with contextlib.suppress(OSError):
            keeper.stdin.write(b"!")
            keeper.stdin.flush()
        _ended(keeper)

    def close(self) -> None:
        """End all nodes, the head last. Can be called twice."""
        keepers = list(self._keepers.values())
        self._keepers.clear()
        for keeper in reversed(keepers):
            assert keeper.stdin is not None
            with contextlib.suppress(OSError):
                keeper.stdin.close()
        for keeper in keepers:
            _ended(keeper)

    def _start(self, name: str, cores: tuple[int, ...], words: list[str]) -> str:
        """Start a node and return the address of the cluster, which it writes down when it has joined."""
        # Ray opens its folder to everybody, so it lies in one that is not. Short: its sockets have at most
        # 107 characters.
        outer = tempfile.mkdtemp(prefix=_PREFIX)
        held = os.open(outer, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_SH)
        folder = Path(outer, _OF_RAY)
        settings = [
            "--block",
            f"--node-ip-address={LOOPBACK}",
            f"--temp-dir={folder}",
            "--include-log-monitor=false",
            "--num-gpus=0",
            f"--object-store-memory={_STORE_BYTES}",
            "--disable-usage-stats",
        ]
        program = [sys.executable, "-P", "-m", "gapless.executor.cluster.node_process", str(os.getpid())]
        output = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
        start: Any = partial(
            subprocess.Popen,
            [*program, ",".join(map(str, cores)), outer, *words, *settings],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=self._environment,
            pass_fds=(held,),  # the folder is in use as long as one of Ray's processes lives
            start_new_session=True,  # Ctrl-C belongs to the parent
        )
        with output:
            try:
                keeper: subprocess.Popen[bytes] = in_lasting_thread(start)
            finally:
                os.close(held)
            self._keepers[name] = keeper
            address = _joined(keeper, folder / "ray_current_cluster")
            if address is not None:
                return address
            output.seek(max(0, output.tell() - 2000))
            said = output.read().decode(errors="replace").strip().rpartition("\n")[2][:300]
        what = f"node {name!r}" if name else "the head"
        raise ExecutionError(
            f"Ray did not start on this machine: {what} did not join its cluster within {START_LIMIT_S:g} s"
            + (f"; it last printed: {said}" if said else "")
        )


def sweep() -> None:
    """Remove the folders of nodes whose keepers were killed: nobody holds them any more."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_OF_RAY}"):
        outer = path.parent
        with contextlib.suppress(OSError):
            held = os.open(outer, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(held).st_uid == os.getuid():
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(outer, ignore_errors=True)
            finally:
                os.close(held)


def _joined(keeper: subprocess.Popen[bytes], note: Path) -> str | None:
    """Return the address of the cluster that a node has joined, once it has written it down; or None."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and keeper.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            if address := note.read_text().strip():
                return address
        time.sleep(0.02)
    return None


def _ended(keeper: subprocess.Popen[bytes]) -> None:
    assert keeper.stdin is not None
    try:
        keeper.wait(timeout=15.0)
    except subprocess.TimeoutExpired:  # Ray's processes end with it (prctl, PR_SET_PDEATHSIG)
        keeper.kill()
        keeper.wait()
    with contextlib.suppress(OSError):
        keeper.stdin.close()


def _path() -> str:
    return os.pathsep.join([str(import_root()), *filter(None, [os.environ.get("PYTHONPATH")])])

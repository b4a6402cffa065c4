"""Workers of a sweep on the nodes of a Ray cluster.

Tasks and answers travel as JSON, to a function that the nodes import from their own gapless. There a child
process answers them: solvers run in forks, and a process of Ray has threads, of which a fork would not know.
Source: the documentation of Ray 2.52 and later, Tasks, Fault tolerance, Token authentication.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Self

from ..formulations.errors import BackendFailedError, ExecutionError, GaplessError
from ..formulations.json_files import parse
from ..formulations.network import Network
from .answers import ANSWER, failed
from .served import task_document
from .tasks import SweepTask
from .workers import Outcome, late_after

_LOOK_S = 5.0
"""How often it is looked whether there is still a node that can work."""

_QUEUED = 2
"""Tasks that are given for each core: while one is solved, the next one is on its way."""


class RayWorkers:
    """The cores of a Ray cluster.

    `jobs`: most tasks at once; None: as many as the cluster has cores. `allow_no_token`: whether a cluster
    that takes orders from everybody is good enough.
    Raises InvalidInputError, ExecutionError: the cluster cannot be joined, or Ray is not installed.
    """

    def __init__(
        self,
        tasks: Sequence[SweepTask],
        network: Callable[[SweepTask], Network | None],
        address: str,
        jobs: int | None,
        *,
        allow_no_token: bool = False,
    ) -> None:
        self._tasks = tasks
        self._network = network
        self._ray, self._leave = _joined(address, allow_no_token=allow_no_token)
        self._jobs = jobs
        self._given: dict[Any, tuple[int, float | None]] = {}
        self._refused: list[Outcome] = []
        # A task whose worker is lost is tried again by the sweep, which names it.
        self._answer = self._ray.remote(max_retries=0)(answer_here)

    @property
    def free(self) -> int:
        """How many more tasks can be given just now."""
        cores = int(self._ray.cluster_resources().get("CPU", 0))
        return max(1, self._jobs or _QUEUED * cores) - len(self._given) - len(self._refused)

    def give(self, number: int, limit_s: float | None) -> None:
        """Send a task; one that cannot be sent has failed."""
        task, started = self._tasks[number], time.perf_counter()
        try:
            document = task_document(task, self._network(task))
        except GaplessError as error:
            self._refused.append(Outcome(number=number, answer=failed(error, started)))
            return
        made = self._answer.options(num_cpus=task.solving.threads).remote(document)
        self._given[made] = (number, late_after(limit_s))

    def outcomes(self) -> list[Outcome]:
        """Wait until something has become of at least one task; return all that has."""
        found, self._refused = self._refused, []
        while not found:
            ready, _ = self._ray.wait(list(self._given), num_returns=1, timeout=_LOOK_S)
            if ready:  # and whatever else is there
                ready, _ = self._ray.wait(list(self._given), num_returns=len(self._given), timeout=0)
            elif not self._ray.cluster_resources().get("CPU"):
                raise ExecutionError(
                    "no node of the Ray cluster is left that can work; start nodes, then --resume"
                )
            found += [self._outcome(each) for each in ready]
            found += self._hung()
        return found

    def _outcome(self, made: Any) -> Outcome:
        number, _ = self._given.pop(made)
        try:
            data = self._ray.get(made)
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, BackendFailedError):
                return Outcome(number=number, answer=None, reason=str(cause))
            raise ExecutionError(
                f"a node of the Ray cluster cannot work ({type(cause).__name__}: {cause}): this version of "
                "gapless has to be installed in the environment of Ray on each node"
            ) from error
        except self._ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines() or [""]
            return Outcome(
                number=number, answer=None, reason=f"its worker was lost: {type(error).__name__}: {lines[0]}"
            )
        return Outcome(number=number, answer=parse(data, ANSWER, name="the answer of a worker"))

    def _hung(self) -> list[Outcome]:
        now, found = time.monotonic(), []
        for made, (number, late_s) in list(self._given.items()):
            if late_s is not None and late_s <= now:
                self._ray.cancel(made, force=True)
                del self._given[made]
                reason = "its worker hung, and was ended long after the time limit"
                found.append(Outcome(number=number, answer=None, reason=reason))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for made in self._given:
            with suppress(Exception):  # the cluster may be gone
                self._ray.cancel(made, force=True)
        self._leave()


def _joined(address: str, *, allow_no_token: bool) -> tuple[Any, Callable[[], None]]:
    """Join a Ray cluster; return Ray, and what leaves the cluster."""
    from ..executor.cluster.membership import Membership

    membership = Membership.join(address, allow_no_token=allow_no_token, need_devices=False)
    import ray

    return ray, membership.close


@dataclass(slots=True)
class _Child:
    """The process that answers tasks on this node, for one process of Ray."""

    process: subprocess.Popen[bytes]
    connection: Connection


_children: list[_Child] = []
"""None or one."""


def answer_here(document: bytes) -> bytes:
    """Answer a task on this node; called by Ray."""
    child = _children[0] if _children else _started()
    try:
        child.connection.send_bytes(document)
        return child.connection.recv_bytes()
    except (EOFError, OSError):
        _children.clear()
        child.connection.close()
        child.process.kill()
        code = child.process.wait()
        host = socket.gethostname()
        raise BackendFailedError(
            f"its worker on {host} ended with exit code {code} without an answer"
        ) from None


def _started() -> _Child:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "gapless.sweeps.served", str(theirs.fileno()), str(os.getpid())],
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    child = _Child(process, Connection(ours.detach()))
    _children.append(child)
    return child

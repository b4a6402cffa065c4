"""Who is in the cluster: Ray tells which nodes there are, and places and watches one actor on each.

A device is a node with a resource of Ray called "gapless:NAME". Ray carries what is said to actors, which is
small; tensors travel over connections of our own (`endpoint`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Self

from ...formulations.errors import EngineUnavailableError, ExecutionError, InvalidInputError, PlacementError
from ...formulations.validation import meant
from ..closing import Closing
from ..machine.quota import quota_availability
from ..progress import Report, Step, silent
from .node_process import loopback, replaced
from .nodes import LOOPBACK, RESOURCE, LocalCluster, LocalNode


@contextlib.contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while: Ray reads its settings from there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def check_token(address: str, *, allow_no_token: bool) -> None:
    """Ask a cluster who may join it."""
    from ray._raylet import AuthenticationTokenLoader

    open_to_all = (
        "takes orders from everybody who reaches it; start it with RAY_AUTH_MODE=token, or say that this is "
        "meant (--allow-no-token)"
    )
    mode = os.environ["RAY_AUTH_MODE"].lower()
    if mode != "token" and not allow_no_token:
        raise InvalidInputError(f"RAY_AUTH_MODE is {mode!r}: such a cluster {open_to_all}")
    if mode == "token" and not AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True):
        raise InvalidInputError(
            "there is no token of the cluster: set RAY_AUTH_TOKEN, or copy ~/.ray/auth_token from its head "
            "(`ray get-auth-token --generate` makes one there)"
        )
    if not _lets_in(address, mode):
        raise ExecutionError(
            f"the cluster at {address} has another token: set RAY_AUTH_TOKEN to the one it was started "
            "with, or copy ~/.ray/auth_token from its head"
        )
    if not allow_no_token and _lets_in(address, "disabled"):
        raise ExecutionError(f"the cluster at {address} {open_to_all}")


def _lets_in(address: str, mode: str) -> bool:
    """Return whether a cluster answers who comes with the token, or without any ("disabled")."""
    from ray._raylet import GcsClient
    from ray.exceptions import AuthenticationError

    try:
        with variables({"RAY_AUTH_MODE": mode}), _silent_stderr():
            forget_token()
            GcsClient(address=address)
    except AuthenticationError:
        return False
    finally:
        forget_token()
    return True


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Throw away what compiled code prints: a refusal that is asked for is no news."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def forget_token() -> None:
    """Have Ray read the token from the environment again: it keeps what it has read first."""
    from ray._raylet import AuthenticationTokenLoader, Config

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


CALLS = 16
"""Calls to an actor that are served at once, a thread each."""

CONNECT_LIMIT_S = 5.0
JOIN_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A node of Ray that is a device."""

    name: str
    node_id: str  # Ray's name of the node
    address: str  # where other devices reach it: host name or number
    local: LocalNode | None = None  # how it is emulated, if it is a local node


class Membership(Closing):
    """The devices of a cluster, and actors on them; a context manager. See `local` and `join`.

    One process can be in one cluster at a time.
    """

    def __init__(self) -> None:
        self.devices: Mapping[str, Device] = {}  # the devices by name, as they were at the start
        self.address = ""  # where Ray's head is, e.g. to join it from another process
        self._cluster: LocalCluster | None = None
        self._undo = contextlib.ExitStack()

    @classmethod
    def local(cls, nodes: Sequence[LocalNode], report: Report = silent) -> Self:
        """Start a cluster of this process's own on this machine: one node a device, and the head.

        `nodes`: the devices, see `nodes.parse_local_nodes`; `report`: told of each node that has started.
        Raises EngineUnavailableError: Ray is not installed.
        Raises PlacementError: quotas are not permitted here, or the system cannot hold several nodes.
        Raises ExecutionError: a node did not start, or this process is in a cluster already.
        """
        _check_ray()
        if any(node.quota_permille is not None for node in nodes):
            _check_quotas(nodes)
        self = cls()
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), **_QUIET}
        try:
            total = len(nodes) + 1
            report(Step(text="starting Ray", done=0, total=total))
            self._cluster = LocalCluster(token)
            self._undo.enter_context(variables(token))
            with loopback():
                self._connect(self._cluster.address, _node_ip_address=LOOPBACK)
            for done, node in enumerate(self._cluster.start_all(nodes), 1):
                report(Step(text=f"started node {node.name}", done=done, total=total))
            report(Step(text="the cluster runs", done=total, total=total))
            self.devices = _devices({node.name: node for node in nodes})
            if missing := [node.name for node in nodes if node.name not in self.devices]:
                raise ExecutionError(f"Ray lost the nodes {', '.join(missing)} while others started")
        except BaseException:
            self.close()
            raise
        return self

    @classmethod
    def join(
        cls,
        address: str,
        report: Report = silent,
        *,
        allow_no_token: bool = False,
        need_devices: bool = True,
    ) -> Self:
        """Join a cluster of Ray that runs already.

        Its token is looked for where Ray does: `RAY_AUTH_TOKEN`, the file in `RAY_AUTH_TOKEN_PATH`, and
        ~/.ray/auth_token. This machine must have joined it, too (`ray start --address=...`).

        `address`: "HOST:PORT" of its head; `allow_no_token`: whether a cluster that takes orders from
        everybody is good enough; `need_devices`: whether a node has to be a device; other work needs none.
        Raises EngineUnavailableError: Ray is not installed.
        Raises InvalidInputError: the address cannot be read, or no token is there.
        Raises ExecutionError: nobody answers, the token is wrong, versions differ, or no node is a device.
        """
        _check_ray()
        host, port = _parse_address(address)
        report(Step(text=f"joining {address}"))
        try:
            socket.create_connection((host, port), timeout=CONNECT_LIMIT_S).close()
        except OSError as error:
            raise ExecutionError(
                f"nobody answers at {address} ({error.strerror or error}); is it the address that `ray start "
                "--head` printed, and does that head still run?"
            ) from None
        self = cls()
        try:
            mode = "disabled" if allow_no_token else "token"
            given = os.environ.get("RAY_AUTH_MODE", "")
            self._undo.enter_context(variables({"RAY_AUTH_MODE": given or mode, **_QUIET}))
            forget_token()
            check_token(address, allow_no_token=allow_no_token)
            with loopback() if host in (LOOPBACK, "localhost") else contextlib.nullcontext():
                self._connect(address)
            self.devices = _devices({})
            if need_devices and not self.devices:
                raise ExecutionError(
                    f"no node of the cluster at {address} says that it is a device: start Ray on each with "
                    f"ray start --address={address} --resources='{{\"{RESOURCE}NAME\": 1}}'"
                )
        except BaseException:
            self.close()
            raise
        return self

    def start(self, name: str, role: type, *arguments: Any) -> Any:
        """Make an actor on a device and return Ray's handle of it, once it answers.

        `role`: class of the actor; `CALLS` of its methods may run at once, in threads. `arguments`: of the
        class: text, numbers and bytes.
        """
        import ray

        self._refresh(name)
        actor = ray.remote(role).options(
            num_cpus=0,
            resources={f"{RESOURCE}{name}": 0.001},
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=CALLS,
        )
        handle = actor.remote(*arguments)
        try:
            ray.get(handle.__ray_ready__.remote(), timeout=JOIN_LIMIT_S)
        except ray.exceptions.RayError as error:
            self.kill(handle)
            raise ExecutionError(f"nothing could be started on device {name!r}: {_cause(error)}") from None
        except BaseException:
            self.kill(handle)
            raise
        return handle

    def device(self, name: str) -> Device:
        """Return the device of a name."""
        if name not in self.devices:
            raise InvalidInputError(f"there is no device {name!r} in the cluster{meant(name, self.devices)}")
        return self.devices[name]

    def _refresh(self, name: str) -> None:
        """Take note of the node that a device is now: one that comes back is another one."""
        local, found = self.device(name).local, _devices({}).get(name)
        if found is None:
            raise ExecutionError(f"device {name!r} is not in the cluster now")
        self.devices = {**self.devices, name: replace(found, local=local)}

    def kill(self, handle: Any) -> None:
        """End an actor at once."""
        import ray

        with contextlib.suppress(ray.exceptions.RayError, ValueError):
            ray.kill(handle, no_restart=True)

    def kill_node(self, name: str) -> None:
        """End a local node at once, with everything on it, as if its device had lost its power."""
        if self._cluster is None:
            raise PlacementError("only local nodes can be ended; stop Ray on the device itself: ray stop")
        self._cluster.kill(self.device(name).name)

    def alive(self) -> tuple[str, ...]:
        """Return the names of the devices that are still in the cluster, in order."""
        present = {device.node_id for device in _devices({}).values()}
        return tuple(name for name, device in self.devices.items() if device.node_id in present)

    def close(self) -> None:
        """Leave the cluster; actors of this process end, and so do local nodes. Can be called twice."""
        if self.address:
            import ray

            ray.shutdown()
            self.address = ""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
        self._undo.close()

    def _connect(self, address: str, **options: Any) -> None:
        import ray

        if ray.is_initialized():
            raise ExecutionError("this process is in a cluster of Ray already; leave it first (ray.shutdown)")
        forget_token()
        # It prints what happens to nodes on our standard output.
        self._undo.enter_context(replaced("ray._private.worker", "print_to_stdstream", _say_nothing))
        with _own_signals():
            try:
                ray.init(address=address, logging_level=logging.CRITICAL, log_to_driver=False, **options)
            except (ray.exceptions.RayError, RuntimeError, ConnectionError, ValueError) as error:
                raise ExecutionError(f"the cluster at {address} cannot be joined: {_cause(error)}") from None
        self.address = address


_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""No telemetry; and no warning about accelerators."""


def _say_nothing(*_: Any, **__: Any) -> None:
    """Print nothing."""


def _check_ray() -> None:
    if find_spec("ray") is None:
        raise EngineUnavailableError("clusters need Ray: pip install 'gapless[cluster]'")


def _check_quotas(nodes: Sequence[LocalNode]) -> None:
    permitted = quota_availability()
    if not permitted.ok:
        slow = ", ".join(node.name for node in nodes if node.quota_permille is not None)
        raise PlacementError(
            f"{slow}: quotas of processor time are not permitted here ({permitted.reason}); take as many "
            "nodes as there are cores, or name the core of each and no share: --local a=core0,b=core0"
        )


def _devices(local: Mapping[str, LocalNode]) -> dict[str, Device]:
    """Return the devices that are in the cluster now, in the order of their names or of the local nodes."""
    import ray

    found = {
        resource.removeprefix(RESOURCE): Device(
            name=(name := resource.removeprefix(RESOURCE)),
            node_id=node["NodeID"],
            address=node["NodeManagerAddress"],
            local=local.get(name),
        )
        for node in ray.nodes()
        if node["Alive"]
        for resource in node["Resources"]
        if resource.startswith(RESOURCE)
    }
    return {name: found[name] for name in (local or sorted(found)) if name in found}


def _parse_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InvalidInputError(
            f"address {address!r} cannot be read, expected HOST:PORT, e.g. 192.168.1.10:6379"
        )
    return host, int(port)


def _cause(error: BaseException) -> str:
    """Return the first line of what Ray says, without its decorations."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep our handlers of signals: Ctrl-C and SIGTERM are not Ray's business."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Callable[..., Any] | int | None] = {
        number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

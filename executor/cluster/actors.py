"""Devices as actors of Ray: how the driver calls them, and learns that they are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...formulations.errors import UnitLostError
from ...formulations.hardware import ProcessingUnit, UnitKind
from ..progress import Report, silent
from .cluster import Cluster
from .device import Device
from .endpoint import LinkRate
from .membership import Membership
from .nodes import LOOPBACK, parse_local_nodes

CALL_LIMIT_S = 1800.0
"""How long a device may take for one answer: profiling a large network on a slow device included."""

_QUICK_S = {"status": 5.0, "close": 20.0, "shut_down": 10.0, "connect": 20.0, "about": 60.0}
"""The same for what takes no time: one that is late hangs."""


def local_cluster(nodes: str = "3", *, report: Report = silent) -> Cluster:
    """Start a cluster on this machine for trials: each node a device with cores, quota and link rate.

    Parameters
    ----------
    nodes
        Their number, or "a=core0:50%@20MB/s+500us,b=core1" (`nodes.parse_local_nodes`).
    report
        Told of each node that has started.

    Returns
    -------
    Cluster
        A context manager; all of it ends with it.

    Raises
    ------
    EngineUnavailableError
        Ray is not installed (the extra `cluster`).
    InvalidInputError, PlacementError, ExecutionError
        As for `Membership.local`.
    """
    return Cluster(RayMembers(Membership.local(parse_local_nodes(nodes), report)), report=report)


def join_cluster(address: str, *, allow_no_token: bool = False, report: Report = silent) -> Cluster:
    """Join a cluster of Ray that runs already.

    Its token is looked for where Ray does: `RAY_AUTH_TOKEN`, the file in `RAY_AUTH_TOKEN_PATH`, and
    ~/.ray/auth_token. This machine must have joined it, too (`ray start --address=...`).

    Parameters
    ----------
    address
        "HOST:PORT" of its head.
    allow_no_token
        Whether a cluster that takes orders from everybody is good enough.
    report
        Told of each step.

    Raises
    ------
    EngineUnavailableError
        Ray is not installed (the extra `cluster`).
    InvalidInputError, ExecutionError
        As for `Membership.join`.
    """
    return Cluster(RayMembers(Membership.join(address, report, allow_no_token=allow_no_token)), report=report)


class RayActor:
    """One `Device` on a node of Ray (see `cluster.Actor`)."""

    def __init__(self, membership: Membership, name: str, *arguments: Any) -> None:
        self._membership = membership
        self._name = name
        self._handle = membership.start(name, Device, *arguments)
        self._watch = self._handle.watch.remote()
        self._loss = ""

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method and return its answer; `UnitLostError`: the actor or its node is gone."""
        import ray

        limit_s = _QUICK_S.get(method, CALL_LIMIT_S)
        try:
            return ray.get(getattr(self._handle, method).remote(*arguments, **named), timeout=limit_s)
        except ray.exceptions.RayTaskError:
            raise
        except ray.exceptions.GetTimeoutError:
            self._loss = self._loss or f"it did not answer within {limit_s:g} s ({method})"
            raise UnitLostError(f"device {self._name!r} is gone: {self._loss}") from None
        except ray.exceptions.RayError as error:
            self._loss = self._loss or self._words(error)
            raise UnitLostError(f"device {self._name!r} is gone: {self._loss}") from None

    def loss(self) -> str:
        """Return how it was lost, without waiting; empty: it is there."""
        import ray

        if not self._loss and ray.wait([self._watch], timeout=0)[0]:
            try:
                ray.get(self._watch)
                self._loss = "it was closed"
            except ray.exceptions.RayError as error:
                self._loss = self._words(error)
        return self._loss

    def _words(self, error: BaseException) -> str:
        """Return how it was lost, in one line; Ray's own words where it was neither node nor process."""
        import ray

        if self._name not in self._membership.alive():
            return "its node has left the cluster"
        if isinstance(error, ray.exceptions.ActorDiedError | ray.exceptions.ActorUnavailableError):
            return "its process has died"
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return (lines or [type(error).__name__])[0][:300]

    def kill(self) -> None:
        """End it at once."""
        self._loss = self._loss or "it was ended"
        self._membership.kill(self._handle)


class RayMembers:
    """The nodes of a cluster of Ray (see `cluster.Members`)."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership

    @property
    def hosts(self) -> Mapping[str, str]:
        """The address of each device, by name."""
        return {name: device.address for name, device in self.membership.devices.items()}

    @property
    def own_host(self) -> str:
        """The address of this process that the devices reach."""
        import ray

        if all(device.local is not None for device in self.membership.devices.values()):
            return LOOPBACK
        return str(ray.util.get_node_ip_address())

    def unit(self, name: str) -> ProcessingUnit | None:
        """Return what a device runs its chunks on; None: all cores that it has."""
        local = self.membership.devices[name].local
        if local is None:
            return None
        return ProcessingUnit(
            name=name,
            kind=UnitKind.CPU,
            cores=local.cores,
            threads=len(local.cores),
            quota_permille=local.quota_permille,
        )

    def rate(self, name: str) -> LinkRate:
        """Return how fast a device may send."""
        local = self.membership.devices[name].local
        if local is None:
            return LinkRate()
        return LinkRate(bytes_per_second=local.bytes_per_second, latency_us=local.latency_us)

    def start(self, name: str, settings: str, key: bytes) -> RayActor:
        """Start a `Device` on a device."""
        return RayActor(self.membership, name, settings, key)

    def close(self) -> None:
        """Leave the cluster; local nodes end."""
        self.membership.close()

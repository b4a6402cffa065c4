"""Options of the commands that run on the devices of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...executor.progress import Report
from ...formulations.errors import InvalidInputError
from ..base.general_options import heading

if TYPE_CHECKING:
    from ...executor.cluster.cluster import Cluster

cluster_option = heading("The cluster")

LocalOption = Annotated[
    str | None,
    cluster_option(
        "--local",
        metavar="NODES",
        help="Run on a cluster on this machine, started for this command: a number of nodes (node0, node1, "
        "...), or NAME=CORES[:PERCENT%][@RATE][+LATENCY],... such as a=core0:50%@20MB/s+500us,b=core1.",
    ),
]
AddressOption = Annotated[
    str | None,
    cluster_option(
        "--address",
        metavar="HOST:PORT",
        help="Run on the devices of a Ray cluster that runs already; its nodes say which device each is.",
    ),
]
AllowNoTokenOption = Annotated[
    bool,
    cluster_option("--allow-no-token", help="Join a cluster that takes orders from everybody, too."),
]
ClusterFileOption = Annotated[
    Path | None,
    cluster_option(
        "--cluster", metavar="FILE", help="Its devices and links as `gapless device links` wrote them."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """Which cluster is asked for.

    `local`, `address`, `allow_no_token`: as the options say it.
    """

    local: str | None = None
    address: str | None = None
    allow_no_token: bool = False

    def __post_init__(self) -> None:
        if self.local and self.address:
            raise InvalidInputError("--local starts a cluster and --address joins one: give one of them")
        if self.allow_no_token and not self.address:
            raise InvalidInputError("--allow-no-token is about --address: give that, too")

    def __bool__(self) -> bool:
        """Whether one is asked for."""
        return bool(self.local or self.address)

    def joined(self, report: Report) -> Cluster:
        """Start or join it: a context manager; errors as for `local_cluster` and `join_cluster`."""
        from ...executor.cluster.actors import join_cluster, local_cluster

        if self.local:
            return local_cluster(self.local, report=report)
        assert self.address is not None
        return join_cluster(self.address, allow_no_token=self.allow_no_token, report=report)

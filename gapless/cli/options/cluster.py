"""Options of the commands that run on the devices of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ...executor.progress import Report
from ...formulations.errors import InvalidInputError
from ...question.fields import Said, attributes, said
from ...question.values import YES, file_form, text_form
from ..base.general_options import heading

if TYPE_CHECKING:
    from ...executor.cluster.cluster import Cluster

cluster_option = heading("The cluster")
_cluster = partial(
    attributes("The cluster"),
    not_on_boards="--on is about one board, --local and --address are about clusters: give one",
)

ClusterFileOption = Annotated[
    Path | None,
    said(
        "Its devices and links as `gapless device links` wrote them.",
        file_form(),
        heading="The cluster",
        called="--cluster",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ClusterChoice(Said):
    """Which cluster is asked for."""

    local: str | None = _cluster(
        "Run on a cluster on this machine, started for this command: a number of nodes (node0, node1, "
        "...), or NAME=CORES[:PERCENT%][@RATE][+LATENCY],... such as a=core0:50%@20MB/s+500us,b=core1.",
        text_form("NODES"),
    )
    address: str | None = _cluster(
        "Run on the devices of a Ray cluster that runs already; its nodes say which device each is.",
        text_form("HOST:PORT"),
    )
    allow_no_token: bool = _cluster("Join a cluster that takes orders from everybody, too.", YES)

    def __post_init__(self) -> None:
        super().__post_init__()
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

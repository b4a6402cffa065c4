"""What can be lost while a plan runs on a cluster, and who is to blame when no result comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ...formulations.errors import UnitLostError
from .cluster import Cluster
from .routes import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A device that is gone, or a link over which nothing comes any more."""

    device: str = ""  # its name; empty: a link was lost
    link: tuple[str, ...] = ()  # both ends of the link; empty: a device was lost
    words: str  # how it was lost
    at: str = field(default_factory=lambda: datetime.now().astimezone().isoformat(timespec="seconds"))
    """When that was noticed, ISO 8601 with the offset from UTC."""
    then: str = ""  # what ran afterwards, in words; empty: nothing could

    @property
    def what(self) -> str:
        """The device or the link, in words."""
        return f"device {self.device!r}" if self.device else f"the link {' -> '.join(self.link)}"

    def __str__(self) -> str:
        return f"{self.what} is lost: {self.words}"


def blamed(cluster: Cluster, routes: Sequence[Route], waited_s: float) -> Loss:
    """Return who is to blame that no result has come for a while.

    A message that has been on its way all that time is the fault of its link, else a device that does not
    answer, else the first one that has requests and finishes none.
    """
    working: dict[str, int] = {}
    for route in routes:
        for device, station in zip(route.devices, route.stations, strict=True):
            try:
                status = cluster.status(device)
            except UnitLostError as error:
                return Loss(device=device, words=str(error))
            for target in filter(None, station.targets):
                what, since_s = status["sending"].get(target) or ("", 0.0)
                if since_s >= waited_s / 2:
                    words = f"{what} has been on its way for {since_s:.1f} s"
                    return Loss(link=(device, target), words=words)
            working[device] = status["waiting"].get(str(route.number), 0)
    device = next((name for name, count in working.items() if count), routes[0].entry)
    return Loss(
        device=device, words=f"it has finished nothing for {waited_s:.1f} s ({working[device]} requests wait)"
    )

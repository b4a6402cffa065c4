"""Messages that were measured between devices, and the file that keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import permutations

from ...formulations.cluster_platform import DeviceType
from ...formulations.errors import InvalidInputError
from ...formulations.json_files import Schema
from ...formulations.validation import Defects, FileContent

KIB = 1024
FIT_SIZES = tuple(KIB << 2 * step for step in range(8))
"""Bytes of the messages that a link is fitted to: 1 KiB, 4 KiB, ... 16 MiB."""

CHECK_SIZES = tuple(size << 1 for size in FIT_SIZES[:-1])
"""Bytes of the messages that its prediction is checked on: those between."""


class Load(StrEnum):
    """What else travelled while a message was measured.

    IDLE
        Nothing.
    LINK
        Other messages on the same link.
    OTHERS
        Messages on links of other devices.
    """

    IDLE = "idle"
    LINK = "link"
    OTHERS = "others"


class Purpose(StrEnum):
    """What a message was sent for.

    FIT
        The model of its link is fitted to it.
    CHECK
        It has a size that was not fitted.
    SHARD
        It has the size of what a part of a network of the zoo sends on; it was not fitted either.
    """

    FIT = "fit"
    CHECK = "check"
    SHARD = "shard"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSample(FileContent):
    """One message from one device to another: the key of the calibration (EPipe 3.1.2), and what it took.

    EPipe's key, (x_plan, b, x_now - x_plan, xa_now - xa_plan), omits the queuing delay that its Eq. 3 reads.

    Attributes
    ----------
    size
        Its bytes, x.
    latency_us
        From where its sending could begin (it was in the output queue) to where it was received as a whole.
    queue_us
        How long the message before it on this link had waited in the output queue: what is known of the
        queue when a message is sent.
    traffic_bytes
        Other bytes on this link then, x_now: sent or waiting, and not yet received.
    mean_traffic_bytes
        The same, averaged over all links of the cluster, xa_now.
    load, purpose
        See `Load` and `Purpose`.
    """

    size: int
    latency_us: float
    queue_us: float = 0.0
    traffic_bytes: int = 0
    mean_traffic_bytes: int = 0
    load: Load = Load.IDLE
    purpose: Purpose = Purpose.FIT

    def __post_init__(self) -> None:
        defects = Defects("a message")
        for field in ("size", "traffic_bytes", "mean_traffic_bytes"):
            defects.check_count(field, getattr(self, field))
        if not 0 < self.latency_us < float("inf"):
            defects.add(f"latency_us is {self.latency_us}, must be above 0")
        if not 0 <= self.queue_us < float("inf"):
            defects.add(f"queue_us is {self.queue_us}, must be at least 0")
        defects.raise_as(InvalidInputError)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLink(FileContent):
    """What was sent from one device to another."""

    source: str
    target: str
    """The devices."""
    samples: tuple[MessageSample, ...]
    """The messages."""
    clock_error_us: float = 0.0
    """By how much all latencies may be wrong one way, because two clocks were read."""
    round_trip_us: float = 0.0
    """Least time of the smallest message there and back, by one clock alone: twice the latency where both
    ways are alike."""

    def of(self, purpose: Purpose, load: Load | None = None) -> tuple[MessageSample, ...]:
        """Return the messages sent for a purpose, with a load or with any."""
        return tuple(one for one in self.samples if one.purpose is purpose and load in (None, one.load))


@dataclass(frozen=True, slots=True, kw_only=True)
class Links(FileContent):
    """The links of a cluster, measured.

    Attributes
    ----------
    name
        Of the cluster.
    devices
        Its devices, each a type of its own, with the speed that was measured.
    links
        One for each ordered pair of devices.
    source
        How and where it was measured.
    seconds
        How long measuring took.
    """

    name: str
    devices: tuple[DeviceType, ...]
    links: tuple[MeasuredLink, ...]
    source: str = ""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        defects = Defects(f"links of cluster {self.name!r}")
        names = [device.name for device in self.devices]
        defects.check_unique("names of devices", names)
        for defect in self._mismatches(names):
            defects.add(defect)
        defects.raise_as(InvalidInputError)

    def _mismatches(self, names: list[str]) -> Iterator[str]:
        given = [(link.source, link.target) for link in self.links]
        for pair in permutations(names, 2):
            if given.count(pair) != 1:
                yield f"there are {given.count(pair)} links from {pair[0]} to {pair[1]}, must be 1"
        for link in self.links:
            if link.source not in names or link.target not in names or link.source == link.target:
                yield f"a link joins {link.source} and {link.target}; there are {', '.join(names)}"
            elif not link.of(Purpose.FIT, Load.IDLE):
                yield f"nothing was sent alone from {link.source} to {link.target}, to fit the link to"


LINKS = Schema(format="gapless.links", version=1, content=Links)

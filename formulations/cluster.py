"""What joins devices, and what is asked of pipelines over them: the data of the formulation `pipelines`.

A device is a unit of the platform. The units of one board are devices without links: what moving tensors
between them costs is in the cost table. Source: EPipe 3.2; clusters, sections 1 and 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, NoReturn

from .costs import NetworkCosts
from .errors import InvalidInputError, InvalidProblemError
from .hardware import Platform
from .validation import Defects, FileContent, shown

MICROSECONDS = 1_000_000

MOST_INNER_UNITS = 6
"""Most units of a device that is a pipeline itself: the best one is sought over all sets of them."""


def parse_pipelines(count: str | int) -> int | None:
    """Return how many pipelines may run side by side, given as "many", "one" or a number; None: no limit."""
    return parse_most("pipelines", count, {"many": None, "one": 1})


def parse_most(
    option: str, count: str | int, named: Mapping[str, int | None], *, most: int = 10**9 - 1
) -> int | None:
    """Return how many there may be, given by name or as a number; None: no limit."""
    text = str(count)
    if text in named:
        return named[text]
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= most:
        names = ", ".join(named)
        raise InvalidInputError(f"{option} is {shown(text)}, must be {names}, or a number of at least 1")
    return int(text)


def refuse_devices(what: str, whose: str = "several devices") -> NoReturn:
    """Refuse to run a plan here that is for several devices; `what` says by what they are told."""
    raise InvalidInputError(
        f"the plan is for {whose} ({what}): `gapless run --address HOST:PORT` runs it on a cluster, --local "
        "on one that is started here for trials; `gapless serve` takes them, too. It can be simulated: "
        "`gapless simulate`, or --engine simulated for run, trace and tune"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link(FileContent):
    """How long messages from one device to another take: latency + bytes / speed, rounded up.

    Attributes
    ----------
    source, target
        Names of two devices, or of two types of devices: then it holds for every pair of such devices that
        has no link of its own.
    bytes_per_second
        Speed, at least 1.
    latency_us
        Time of an empty message, microseconds.
    """

    source: str
    target: str
    bytes_per_second: int
    latency_us: int = 0

    def __post_init__(self) -> None:
        defects = Defects(f"link {self.source!r} to {self.target!r}")
        defects.check_name("source", self.source)
        defects.check_name("target", self.target)
        defects.check_count("bytes_per_second", self.bytes_per_second, least=1)
        defects.check_count("latency_us", self.latency_us)
        defects.raise_as(InvalidProblemError)

    def time_us(self, size: int) -> int:
        """Return how long a message of a given number of bytes takes, microseconds."""
        return self.latency_us - (-size * MICROSECONDS // self.bytes_per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerDevice(FileContent):
    """A device with several units: it runs its chunk as a pipeline of its own, in the best way."""

    device: str
    """Its name, or the name of its type."""
    platform: Platform
    """Its units."""
    costs: NetworkCosts
    """Time of each layer of the network on each of them."""

    def __post_init__(self) -> None:
        defects = Defects(f"inner device {self.device!r}")
        defects.check_name("device", self.device)
        defects.check_size("units", len(self.platform.units), most=MOST_INNER_UNITS)
        for layer, row in enumerate(self.costs.layer_us):
            if len(row) != len(self.platform.units):
                defects.add(f"layer_us[{layer}] has {len(row)} times for {len(self.platform.units)} units")
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipelines(FileContent):
    """One network as an endless stream over devices, through one pipeline or several side by side.

    Attributes
    ----------
    types
        Name of the type of each device, in the order of the platform: devices of one type are alike in
        costs, memory and links. Empty: every device is a type of its own.
    links
        Between devices. A pair without a link cannot send to each other. Empty: messages cost nothing
        beyond what the cost table says.
    most
        Most pipelines side by side; None: no limit.
    overlap
        Whether a device sends one result while it computes the next (a thread for each); otherwise one
        after the other.
    host
        The device that holds the inputs and wants the results, or empty: then entering and leaving cost
        nothing.
    in_slots, out_slots
        Messages that wait in front of and behind each chunk, beside the one at work; they take memory.
    resident_bytes
        What the runtime takes on each device in use, whatever runs there.
    switch_bytes_per_second
        Capacity of a switch that all links share, or None: no link disturbs another.
    power_mw
        Power of each device at work, milliwatts; empty: not known.
    inner
        Devices that are pipelines themselves.
    """

    data_key: ClassVar[str] = "pipelines"

    types: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    most: int | None = None
    overlap: bool = True
    host: str = ""
    in_slots: int = 0
    out_slots: int = 0
    resident_bytes: int = 0
    switch_bytes_per_second: int | None = None
    power_mw: tuple[int, ...] = ()
    inner: tuple[InnerDevice, ...] = ()

    def __post_init__(self) -> None:
        defects = Defects("pipelines")
        for name in self.types:
            defects.check_name("type", name)
        defects.check_unique("links", [(link.source, link.target) for link in self.links])
        defects.check_unique("inner devices", [one.device for one in self.inner])
        if self.most is not None:
            defects.check_count("most", self.most, least=1)
        for field in ("in_slots", "out_slots", "resident_bytes"):
            defects.check_count(field, getattr(self, field))
        if self.switch_bytes_per_second is not None:
            defects.check_count("switch_bytes_per_second", self.switch_bytes_per_second, least=1)
        defects.check_counts("power_mw", self.power_mw)
        defects.raise_as(InvalidProblemError)

    def types_of(self, platform: Platform) -> tuple[str, ...]:
        """Return the type of each device."""
        return self.types or platform.unit_names

    def typed(self, devices: Sequence[str]) -> dict[str, str]:
        """Return the type of each device by its name."""
        return dict(zip(devices, self.types or devices, strict=True))

    def inner_of(self, device: str, types: Mapping[str, str]) -> InnerDevice | None:
        """Return the units of a device, by its name or that of its type; None: it has none of its own."""
        found = {one.device: one for one in self.inner}
        return found.get(device, found.get(types[device]))

    def mismatches(self, platform: Platform) -> Iterator[str]:
        """Yield what does not go with the devices of a platform."""
        count, names = len(platform.units), platform.unit_names
        for field in ("types", "power_mw"):
            size = len(getattr(self, field))
            if size not in (0, count):
                yield f"pipelines: {field} has {size} entries, needs one for each of the {count} devices"
        known = {*names, *self.types}
        if self.host and self.host not in names:
            yield f"pipelines: the host {self.host!r} is no device; there are {', '.join(names)}"
        ends = [end for link in self.links for end in (link.source, link.target)]
        for name in dict.fromkeys([*ends, *(one.device for one in self.inner)]):
            if name not in known:
                yield f"pipelines: {name!r} is no device and no type; there are {', '.join(names)}"

    def linker(self, devices: Sequence[str]) -> Callable[[str, str], Link | None]:
        """Return what finds the link from one device to another, that of the devices before that of types.

        Parameters
        ----------
        devices
            Names of all devices.
        """
        found = {(link.source, link.target): link for link in self.links}
        types = self.typed(devices)

        def link(source: str, target: str) -> Link | None:
            ends = product((source, types[source]), (target, types[target]))
            return next((found[pair] for pair in ends if pair in found), None)

        return link

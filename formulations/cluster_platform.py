"""Clusters: devices of a few types and what joins them, as users write them down.

A platform has one unit for each device, so everything that plans over units plans over devices. What
joins the devices, and what is asked of them, becomes the data of a problem (`cluster.Pipelines`).
Source: EPipe 4.1, Table 2; clusters, section 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from .cluster import MOST_INNER_UNITS, Link, Pipelines
from .errors import InvalidInputError, InvalidProblemError
from .hardware import MAX_UNITS, Platform, ProcessingUnit, UnitKind
from .json_files import Schema
from .validation import Defects, FileContent, shown

LEAST_SPEED, MOST_SPEED = 10**6, 10**18
"""Operations a second that are believed: at least one a microsecond."""

_MOST_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed(FileContent):
    """How fast something computes, in a few numbers: costs are estimated from them.

    A layer takes launch + weights / memory + items x (operations / speed + tensors / memory).
    """

    flops_per_second: int
    """Operations of 32-bit floating point that it sustains, a second; a multiplication with its addition
    counts as two."""
    memory_bytes_per_second: int | None = None
    """Bandwidth of its memory. None: moving bytes is taken to cost nothing."""
    launch_us: int = 0
    """What each layer takes on top."""

    def __post_init__(self) -> None:
        defects = Defects("speed")
        flops = self.flops_per_second
        if isinstance(flops, bool) or not isinstance(flops, int) or not LEAST_SPEED <= flops <= MOST_SPEED:
            defects.add(
                f"flops_per_second is {flops!r}, must be a whole number from {LEAST_SPEED} to {MOST_SPEED}"
            )
        if self.memory_bytes_per_second is not None:
            defects.check_count("memory_bytes_per_second", self.memory_bytes_per_second, least=LEAST_SPEED)
        defects.check_count("launch_us", self.launch_us)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerUnit(FileContent):
    """A unit of a device that runs its part of a network as a pipeline of its own."""

    name: str
    """Unique in its device."""
    speed: Speed
    """How fast it computes."""
    kind: UnitKind = UnitKind.OTHER
    """What it is made of."""
    copy_us: int = 0
    """What it takes to bring tensors from another unit of the device, besides moving their bytes."""

    def __post_init__(self) -> None:
        defects = Defects(f"inner unit {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_count("copy_us", self.copy_us)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceType(FileContent):
    """Devices that are alike."""

    name: str
    """Name of the type. Its devices are called "name-1", "name-2", ...; "name" where there is only one."""
    count: int = 1
    """How many there are."""
    kind: UnitKind = UnitKind.OTHER
    """What they compute with."""
    memory_bytes: int | None = None
    """What one of them holds, or None for no limit."""
    power_mw: int | None = None
    """Power of one at work, milliwatts; None: not known."""
    idle_mw: int | None = None
    """Power of one that waits, at most that at work, milliwatts; None: not known."""
    speed: Speed | None = None
    """How fast one computes. None: it has inner units."""
    units: tuple[InnerUnit, ...] = ()
    """Its inner units: its part of a network runs over them as a pipeline of its own, in the best way."""
    port_bytes_per_second: int | None = None
    """Speed of its port at the switch: two devices with ports send to each other as fast as the slower port.
    None: it has links only."""
    source: str = ""
    """Where the numbers come from: what is printed, what a data sheet says, what is an estimate."""

    def __post_init__(self) -> None:
        defects = Defects(f"device type {self.name!r}")
        defects.check_name("name", self.name)
        if defects.check_count("count", self.count, least=1) and self.count > MAX_UNITS:
            defects.add(f"count is {self.count}, at most {MAX_UNITS} devices can be planned")
        for field, least in (
            ("memory_bytes", 0),
            ("power_mw", 0),
            ("idle_mw", 0),
            ("port_bytes_per_second", 1),
        ):
            if getattr(self, field) is not None:
                defects.check_count(field, getattr(self, field), least=least)
        if self.idle_mw is not None and (self.power_mw is None or self.power_mw < self.idle_mw):
            defects.add(f"idle_mw is {self.idle_mw}, needs a power_mw of at least that")
        if (self.speed is None) == (not self.units):
            defects.add("needs either a speed or inner units, not both: costs are estimated from them")
        if len(self.units) > MOST_INNER_UNITS:
            defects.add(f"it has {len(self.units)} inner units, at most {MOST_INNER_UNITS} can be planned")
        defects.check_unique("names of inner units", [unit.name for unit in self.units])
        defects.raise_as(InvalidProblemError)

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of its devices."""
        if self.count == 1:
            return (self.name,)
        return tuple(f"{self.name}-{number}" for number in range(1, self.count + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlatform(FileContent):
    """Devices, and what joins them.

    Attributes
    ----------
    name
        Name of the cluster.
    types
        Its devices by type. Their order is part of the canonical order of plans.
    links
        Between pairs of devices or of types, for all pairs of such devices. A link holds in both
        directions, unless the other one has a link of its own. It comes before what ports say.
    port_latency_us
        Time of an empty message between two ports, microseconds.
    host
        The device that holds the inputs and wants the results, or empty: then entering and leaving cost
        nothing.
    switch_bytes_per_second
        Capacity of a switch that all links share, or None: no link disturbs another.
    overlap
        Whether devices send and compute at the same time.
    in_slots, out_slots
        Messages that wait in front of and behind each chunk; they take memory.
    resident_bytes
        What the runtime takes on each device in use, whatever runs there.
    source
        Where the description comes from.
    """

    name: str
    types: tuple[DeviceType, ...]
    links: tuple[Link, ...] = ()
    port_latency_us: int = 0
    host: str = ""
    switch_bytes_per_second: int | None = None
    overlap: bool = True
    in_slots: int = 1
    out_slots: int = 1
    resident_bytes: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        defects = Defects(f"cluster {self.name!r}")
        defects.check_name("name", self.name)
        defects.check_size("types", len(self.types), most=MAX_UNITS)
        defects.check_size("devices", len(self.devices), most=MAX_UNITS)
        defects.check_count("port_latency_us", self.port_latency_us)
        for defect in self._mismatches():
            defects.add(defect)
        defects.raise_as(InvalidProblemError)
        self.pipelines()  # which checks the rest

    def _mismatches(self) -> Iterator[str]:
        """Yield names that are not there, that stand for two things, and devices that nothing joins."""
        devices = self.devices
        names = Counter(name for one in self.types for name in {one.name: None} | dict.fromkeys(one.devices))
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            yield f"names must be unique, but these stand for several devices or types: {', '.join(twice)}"
        ends = dict.fromkeys(end for link in self.links for end in (link.source, link.target))
        for name in ends:
            if name not in names:
                yield f"a link names {name!r}, which is no device and no type; there are {', '.join(names)}"
        if self.host and self.host not in devices:
            yield f"the host {self.host!r} is no device; there are {', '.join(devices)}"
        if len(devices) > 1 and not self.links and all(t.port_bytes_per_second is None for t in self.types):
            yield "nothing joins the devices: say port_bytes_per_second of their types, or links"

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of all devices, in order."""
        return tuple(name for one in self.types for name in one.devices)

    def with_counts(self, counts: Mapping[str, int]) -> ClusterPlatform:
        """Return the cluster with other numbers of devices of some types.

        Links between devices that are left stay as they are.

        Parameters
        ----------
        counts
            How many devices of a type, by its name; 0: none. Other types stay as they are.

        Raises
        ------
        InvalidInputError
            There is no such type, no device is left, the host is not among those that are left, or there are
            more devices than can be planned.
        """
        unknown = [name for name in counts if name not in {one.name for one in self.types}]
        if unknown:
            raise InvalidInputError(
                f"cluster {self.name!r} has no devices of the type {', '.join(map(repr, unknown))}; "
                f"its types are {', '.join(one.name for one in self.types)}"
            )
        if negative := [name for name, count in counts.items() if count < 0]:
            raise InvalidInputError(f"the number of devices of type {negative[0]!r} is less than 0")
        left = tuple(
            replace(one, count=number) for one in self.types if (number := counts.get(one.name, one.count))
        )
        if not left:
            raise InvalidInputError(f"cluster {self.name!r} has no device left: give a type at least one")
        new = {one.name: one.devices for one in left}
        # A device keeps its place in its type; "name" becomes "name-1" where there are more now, and back.
        devices = {
            old: now
            for one in self.types
            for old, now in zip(one.devices, new.get(one.name, ()), strict=False)
        }
        if self.host and self.host not in devices:
            raise InvalidInputError(
                f"the host {self.host!r} of cluster {self.name!r} is not among the devices that are left"
            )
        ends = devices | {name: name for name in new}
        links = (
            replace(link, source=ends[link.source], target=ends[link.target])
            for link in self.links
            if link.source in ends and link.target in ends
        )
        said = ",".join(f"{one.name}={counts.get(one.name, one.count)}" for one in self.types)
        return replace(
            self,
            name=f"{self.name} {said}",
            types=left,
            links=tuple(link for link in links if link.source != link.target or len(new[link.source]) > 1),
            host=devices.get(self.host, ""),
        )

    @property
    def platform(self) -> Platform:
        """The devices as the units of a platform."""
        return Platform(
            name=self.name,
            units=tuple(
                ProcessingUnit(name=name, kind=one.kind, memory_bytes=one.memory_bytes)
                for one in self.types
                for name in one.devices
            ),
            source=self.source,
        )

    def pipelines(self) -> Pipelines:
        """Return what joins the devices as the data of a problem; inner devices are not in it."""
        powers = [one.power_mw for one in self.types for _ in one.devices]
        known = [power for power in powers if power is not None]
        return Pipelines(
            types=tuple(one.name for one in self.types for _ in one.devices),
            links=tuple(self._links()),
            overlap=self.overlap,
            host=self.host,
            in_slots=self.in_slots,
            out_slots=self.out_slots,
            resident_bytes=self.resident_bytes,
            switch_bytes_per_second=self.switch_bytes_per_second,
            power_mw=tuple(known) if len(known) == len(powers) else (),
        )

    @property
    def idle_mw(self) -> tuple[int, ...]:
        """Power of each device while it waits, milliwatts; empty where that of one is not known."""
        known = [one.idle_mw for one in self.types for _ in one.devices if one.idle_mw is not None]
        return tuple(known) if len(known) == len(self.devices) else ()

    def _links(self) -> Iterator[Link]:
        """Yield the links in both directions, then those that follow from ports."""
        given = {(link.source, link.target) for link in self.links}
        for link in self.links:
            yield link
            if (link.target, link.source) not in given:
                yield replace(link, source=link.target, target=link.source)
                given.add((link.target, link.source))
        for one in self.types:
            for other in self.types:
                ports = (one.port_bytes_per_second, other.port_bytes_per_second)
                speeds = [port for port in ports if port is not None]
                alone = one is other and one.count == 1
                if len(speeds) == 2 and not alone and (one.name, other.name) not in given:
                    yield Link(
                        source=one.name,
                        target=other.name,
                        bytes_per_second=min(speeds),
                        latency_us=self.port_latency_us,
                    )


CLUSTER = Schema(format="gapless.cluster", version=1, content=ClusterPlatform)


def parse_counts(text: str) -> dict[str, int]:
    """Return the numbers of devices by type that a text such as "pi5=2,pi4=0" names."""
    pairs = [part.strip().rpartition("=") for part in text.split(",")]
    wrong = [f"{name}{sign}{count}" for name, sign, count in pairs if not name or not count.isdecimal()]
    if wrong or any(len(count) > _MOST_DIGITS for _, _, count in pairs):
        raise InvalidInputError(
            f"{shown(text)} are no numbers of devices: write TYPE=NUMBER, e.g. pi5=2,pi4=0"
        )
    found = {name: int(count) for name, _, count in pairs}
    if len(found) < len(pairs):
        raise InvalidInputError(f"{shown(text)} names a type twice")
    return found

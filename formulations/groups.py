"""What is asked of groups of devices: the data of the formulation `cooperation`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from .cluster import Pipelines
from .errors import InvalidProblemError
from .hardware import Platform
from .network import Network
from .spatial import Axis, SpatialNetwork, check_pieces
from .validation import Defects, FileContent

AXES = {axis.name.lower(): axis for axis in Axis}
"""From the names of sides to the sides."""


def _devices() -> Pipelines:
    return Pipelines(overlap=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptimum(FileContent):
    """That the layers of a problem are the chunks of the best plan over the graph, cut anywhere in it."""

    sets: int
    """Down-sets of the graph, all of whose chains were compared."""
    period_us: int
    """The least period over the graph."""
    given_pieces_us: int
    """The least period when cuts may only lie between the pieces of the network."""

    def __post_init__(self) -> None:
        defects = Defects("over_graph")
        for field_name in ("sets", "period_us", "given_pieces_us"):
            defects.check_count(field_name, getattr(self, field_name), least=1)
        defects.raise_as(InvalidProblemError)


@dataclass(frozen=True, kw_only=True)
class Cooperation(FileContent):
    """One network as an endless stream through chunks, each served by a group of devices.

    Attributes
    ----------
    spatial
        The operators of the network and what each reads of the others.
    pieces
        By operator the layer of the problem's network that it belongs to; -1 for inputs.
    axis
        "rows" or "columns": along which side maps are split.
    devices
        Types, links, host, memory of the runtime and powers of the devices, as for pipelines; `overlap` says
        whether a group sends one result while it computes the next (PICO's Eq. 11 adds both: False).
    interstage
        Whether sending the result of a chunk to the next group takes time; PICO leaves it out.
    most_group
        Most devices in a group; None: all.
    idle_mw
        Power of each device while it waits, milliwatts; empty: none.
    fixed_us
        By layer and device what of its time does not depend on how many rows are computed; empty: nothing.
    over_graph
        Where the layers are chunks over the graph: what was compared to find them. None: they are pieces.
    steps
        Whether a group may compute its chunk in steps, one after the other: each of them by all its devices
        in tiles, or by one of them alone. For units of one board, which need no messages in between.
    """

    data_key: ClassVar[str] = "cooperation"

    spatial: SpatialNetwork
    pieces: tuple[int, ...]
    axis: str = "rows"
    devices: Pipelines = field(default_factory=_devices)
    interstage: bool = True
    most_group: int | None = None
    idle_mw: tuple[int, ...] = ()
    fixed_us: tuple[tuple[int, ...], ...] = ()
    over_graph: GraphOptimum | None = None
    steps: bool = False

    def __post_init__(self) -> None:
        defects = Defects("cooperation")
        for text in check_pieces(self.spatial, self.pieces, passing=self.over_graph is not None):
            defects.add(text)
        if self.axis not in AXES:
            defects.add(f"axis is {self.axis!r}, must be one of {', '.join(AXES)}")
        if self.most_group is not None:
            defects.check_count("most_group", self.most_group, least=1)
        defects.check_counts("idle_mw", self.idle_mw)
        for row in self.fixed_us:
            defects.check_counts("fixed_us", row)
        if self.devices.inner:
            defects.add("devices with units of their own cannot be in groups: list their units instead")
        if self.devices.switch_bytes_per_second is not None:
            defects.add("switch_bytes_per_second is for pipelines, not for groups")
        if self.steps and self.devices.links:
            defects.add("steps are for units of one board, not for devices that links join")
        if self.devices.most not in (None, 1):
            defects.add(f"most is {self.devices.most}: groups serve one pipeline")
        defects.raise_as(InvalidProblemError)

    @property
    def side(self) -> Axis:
        """Along which side maps are split."""
        return AXES[self.axis]

    def mismatches(self, platform: Platform, network: Network) -> Iterator[str]:
        """Yield what does not go with the devices and the network of a problem."""
        yield from self.devices.mismatches(platform)
        count, layers = len(platform.units), len(network.layers)
        if len(self.idle_mw) not in (0, count):
            yield f"cooperation: idle_mw has {len(self.idle_mw)} entries for {count} devices"
        if self.fixed_us and (len(self.fixed_us) != layers or {len(row) for row in self.fixed_us} != {count}):
            yield f"cooperation: fixed_us must have {layers} rows of {count} times"
        if max(self.pieces) + 1 != layers:
            yield f"cooperation: there are {max(self.pieces) + 1} pieces, the network has {layers} layers"

"""Networks whose layers run side by side for one request: the data of the formulation of task graphs.

What a graph of layers and a table of times do not say: how long a tensor takes from one unit to another, and
which layers run one right after the other as one task.

Source: Topcuoglu, Hariri and Wu, "Performance-Effective and Low-Complexity Task Scheduling for Heterogeneous
Computing", IEEE TPDS 13(3), 2002, section 2: tasks, computation costs by processor, communication costs by
pair of processors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

from .errors import InvalidProblemError
from .hardware import Platform
from .network import Network
from .validation import Defects, FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskGraph(FileContent):
    """How the layers of a network run for one request.

    Attributes
    ----------
    transfer_us
        From the end of the layer that makes a tensor to when it is on another unit, microseconds by
        [tensor][from][to]; 0 from a unit to itself. The units can do something else in the meantime. Empty:
        tensors are everywhere at once.
    outside_us
        What a tensor that comes into the network takes to a unit, and one that leaves it from a unit,
        microseconds by [tensor][unit]; not read for other tensors. Empty: nothing.
    segments
        Sets of layers that run one right after the other on one unit, as one task. What they make for others
        is there when all of them are done.
    over_links
        Whether the units are devices that links join.
    """

    data_key: ClassVar[str] = "tasks"

    transfer_us: tuple[tuple[tuple[int, ...], ...], ...] = ()
    outside_us: tuple[tuple[int, ...], ...] = ()
    segments: tuple[tuple[int, ...], ...] = ()
    over_links: bool = False

    def __post_init__(self) -> None:
        defects = Defects("tasks")
        for index, square in enumerate(self.transfer_us):
            for unit, row in enumerate(square):
                defects.check_counts(f"transfer_us[{index}][{unit}]", row)
                if unit < len(row) and row[unit]:
                    defects.add(
                        f"transfer_us[{index}][{unit}][{unit}] is {row[unit]}: a unit to itself has 0"
                    )
        for index, row in enumerate(self.outside_us):
            defects.check_counts(f"outside_us[{index}]", row)
        defects.check_sets("segments", self.segments, "layers of segments")
        defects.raise_as(InvalidProblemError)

    def mismatches(self, platform: Platform, network: Network) -> Iterator[str]:
        """Yield what does not go with the units and the network of a problem."""
        layers, tensors, units = len(network.layers), len(network.tensors), len(platform.units)
        for field in ("transfer_us", "outside_us"):
            rows = getattr(self, field)
            if rows and len(rows) != tensors:
                yield f"tasks: {field} has {len(rows)} rows for {tensors} tensors"
        for index, square in enumerate(self.transfer_us):
            if len(square) != units or any(len(row) != units for row in square):
                yield f"tasks: transfer_us[{index}] is not {units} by {units}, one for each pair of units"
        for index, row in enumerate(self.outside_us):
            if len(row) != units:
                yield f"tasks: outside_us[{index}] has {len(row)} entries for {units} units"
        strange = sorted(layer for layer in chain.from_iterable(self.segments) if layer >= layers)
        if strange:
            text = ", ".join(map(str, strange[:5]))
            yield f"tasks: segments name {text}; the layers are 0 to {layers - 1}"

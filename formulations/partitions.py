"""Networks whose graph is cut into parts: the data of the formulation of convex partitions.

A layer graph with what a chain does not say: what each tensor costs each unit that sends or receives it,
which layers have to stay together, and which belong to the backward pass of training.

Source: Tarnawski, Phanishayee, Devanur, Mahajan and Nina Paravecino, "Efficient Algorithms for Device
Placement of DNN Graph Operators", NeurIPS 2020, sections 3 and 4 and appendix B.
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
class Partition(FileContent):
    """What is asked of the parts of a network.

    Attributes
    ----------
    tensor_us
        What it takes a unit to send or receive a tensor, microseconds by [tensor][unit]; a unit that reads
        the memory of the host has zeros. Empty: tensors cost nothing.
    colours
        Sets of layers that are in one part.
    backward
        The layers of the backward pass: they are where the forward layers of their colours are.
    instant
        The layers that take no time, wherever they can run: in the table of costs, which has positive times
        only, what is written for them does not count.
    over_links
        Whether the units are devices that links join.
    """

    data_key: ClassVar[str] = "partition"

    tensor_us: tuple[tuple[int, ...], ...] = ()
    colours: tuple[tuple[int, ...], ...] = ()
    backward: tuple[int, ...] = ()
    instant: tuple[int, ...] = ()
    over_links: bool = False

    def __post_init__(self) -> None:
        defects = Defects("partition")
        for index, row in enumerate(self.tensor_us):
            defects.check_counts(f"tensor_us[{index}]", row)
        for index, colour in enumerate(self.colours):
            defects.check_counts(f"colours[{index}]", colour)
        defects.check_unique("layers with a colour", tuple(chain.from_iterable(self.colours)))
        for field in ("backward", "instant"):
            defects.check_counts(field, getattr(self, field))
            defects.check_unique(field, getattr(self, field))
        defects.raise_as(InvalidProblemError)

    def mismatches(self, platform: Platform, network: Network) -> Iterator[str]:
        """Yield what does not go with the units and the network of a problem."""
        layers, tensors, units = len(network.layers), len(network.tensors), len(platform.units)
        if self.tensor_us and len(self.tensor_us) != tensors:
            yield f"partition: tensor_us has {len(self.tensor_us)} rows for {tensors} tensors"
        for index, row in enumerate(self.tensor_us):
            if len(row) != units:
                yield f"partition: tensor_us[{index}] has {len(row)} entries for {units} units"
        named = {"colours": chain.from_iterable(self.colours), "backward": self.backward}
        for field, indices in {**named, "instant": self.instant}.items():
            strange = sorted(index for index in indices if index >= layers)
            if strange:
                text = ", ".join(map(str, strange[:5]))
                yield f"partition: {field} names {text}; the layers are 0 to {layers - 1}"
        backward = set(self.backward)
        for tensor in network.tensors:
            if tensor.source in backward:
                ahead = [target for target in tensor.targets if target < layers and target not in backward]
                if ahead:
                    yield (
                        f"partition: tensor {tensor.name!r} goes from the backward layer {tensor.source} to "
                        f"layer {ahead[0]} of the forward pass"
                    )

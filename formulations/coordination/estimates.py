"""Times of chunks from one measured chunk a unit: the others by operations and bytes (Band, 4.3.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..hardware import ProcessingUnit, UnitKind
from ..network import Network
from .sections import Section
from .times import NetworkTimes

ACCELERATOR_BETA = 1000
"""Operations that count as much as one byte of the tensors of a chunk, on accelerators (Band, 4.3.2)."""

PROCESSOR_BETA = 10
"""The same on processor cores."""

Key = tuple[int, int, int]
"""First section of a chunk, one past the last, and index of the unit."""


def chunk_work(network: Network, sections: Sequence[Section], key: Key, unit: ProcessingUnit) -> int:
    """Return what the time of a chunk is taken to be proportional to: FLOPs + beta x bytes, at least 1.

    Bytes are those of what goes into the chunk and what comes out of it. Layers of unknown operations
    count none.
    """
    start, stop = sections[key[0]].start, sections[key[1] - 1].stop
    beta = PROCESSOR_BETA if unit.cores or unit.kind is UnitKind.CPU else ACCELERATOR_BETA
    held = network.boundary_bytes
    flops = sum(layer.flops or 0 for layer in network.layers[start:stop])
    return max(1, flops + beta * (held[start] + held[stop]))


def largest_chunks(
    network: Network, sections: Sequence[Section], keys: Collection[Key], units: Sequence[ProcessingUnit]
) -> dict[int, Key]:
    """Return, by index of unit, its chunk of most work; of equal ones the one of most sections."""
    found: dict[int, Key] = {}
    for index, unit in enumerate(units):
        own = [key for key in keys if key[2] == index]
        if own:
            found[index] = max(
                own, key=lambda key: (chunk_work(network, sections, key, unit), key[1] - key[0], -key[0])
            )
    return found


def estimated_times(
    network: Network,
    sections: Sequence[Section],
    keys: Collection[Key],
    units: Sequence[ProcessingUnit],
    measured_us: Mapping[Key, float],
) -> NetworkTimes:
    """Return the times of chunks by one measured chunk a unit."""
    rates = {
        key[2]: time_us / chunk_work(network, sections, key, units[key[2]])
        for key, time_us in measured_us.items()
    }
    return NetworkTimes(
        sections=len(sections),
        chunk_us={
            key: measured_us[key]
            if key in measured_us
            else max(1.0, rates[key[2]] * chunk_work(network, sections, key, units[key[2]]))
            for key in keys
        },
    )

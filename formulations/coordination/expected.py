"""Expected times as a table of costs, also from one measured chunk a unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..costs import CostTable, NetworkCosts
from ..hardware import Platform, ProcessingUnit, UnitKind
from ..network import Layer, Network
from .sections import Section
from .setting import Setting
from .times import NetworkTimes, Times

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


Row = Sequence[int | None]
"""Microseconds by unit; None: it cannot run there."""


def setting_of(platform: Platform, names: Sequence[str], times: Times) -> Setting:
    """Return a platform with networks as they are expected to be now, for simulations."""
    units = range(len(platform.units))
    tables = [expected_costs(name, times, index, 0, units) for index, name in enumerate(names)]
    found = [table for table in tables if table is not None]
    return Setting(
        platform=platform,
        networks=tuple(network for network, _ in found),
        costs=CostTable(units=platform.unit_names, networks=tuple(costs for _, costs in found)),
        borders={network.name: network.legal_cuts for network, _ in found},
        sessions={
            name: times.loaded(index)
            for index, (name, table) in enumerate(zip(names, tables, strict=True))
            if table is not None
        },
    )


def expected_costs(
    name: str, times: Times, network: int, done: int, units: Collection[int]
) -> tuple[Network, NetworkCosts] | None:
    """Return what is left of a network and what it is expected to cost: a layer for each section.

    What two neighbours cost beyond both together is a copy, and half of it is charged on each side.

    `network`, `done`: index of the network, and how many of its sections are done.
    None: a section can run on none of the units.
    """
    rows: list[list[int | None]] = []
    copies = [[0] * len(times.units)]
    for section in range(done, times.sections(network)):
        row = [
            times.chunk_us(network, section, section + 1, unit) if unit in units else None
            for unit in range(len(times.units))
        ]
        if all(time is None for time in row):
            return None
        rows.append(row)
        copies.append([_copy_us(times, network, section, unit) for unit in range(len(times.units))])
    layers = [
        [
            None if time_us is None else max(1, time_us - copies[at][unit] - copies[at + 1][unit])
            for unit, time_us in enumerate(row)
        ]
        for at, row in enumerate(rows)
    ]
    return costs_by_sections(name, layers, copies)


def costs_by_sections(
    name: str, rows: Sequence[Row], copies: Sequence[Sequence[int]] = ()
) -> tuple[Network, NetworkCosts]:
    """Return a network with a layer for each row, and its costs; `copies`: by boundary, in and out alike."""
    network = Network(name=name, layers=tuple(Layer(name=f"section {n}") for n in range(len(rows))))
    both = tuple(map(tuple, copies))
    layers = tuple(map(tuple, rows))
    return network, NetworkCosts(network=name, layer_us=layers, transfer_in_us=both, transfer_out_us=both)


def _copy_us(times: Times, network: int, section: int, unit: int) -> int:
    """Return half of what a section and the next one cost beyond both together on a unit."""
    if section + 1 == times.sections(network):
        return 0
    first = times.chunk_us(network, section, section + 1, unit)
    second = times.chunk_us(network, section + 1, section + 2, unit)
    both = times.chunk_us(network, section, section + 2, unit)
    if first is None or second is None or both is None:
        return 0
    return max(0, min(first + second - both, first - 1, second - 1)) // 2

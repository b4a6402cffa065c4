"""From measured times to the one integer table: rounded here, once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from ..formulations.costs import CostTable, NetworkCosts, Provenance
from ..formulations.errors import ProfilingError
from ..formulations.network import Network
from .isolated import UnitCosts
from .transfers import loads_in, loads_out

Rows = list[list[float]]


def reduce(
    network: Network, units: Sequence[UnitCosts], models: Sequence[range], provenance: Provenance
) -> CostTable:
    """Return the cost table of a network.

    The constant overhead of a session is part of the copy-in at a chunk's start, and so is, at each border
    inside of the network, what it costs to come from another unit (`hops`). Where one model of the
    network ends and the next begins, every chunk has to cross: what that costs belongs to the layers beside
    the seam, and crossing it is free.

    `units`: columns, in the order of the platform.
    Raises ProfilingError: a time is not a number, or negative; all such entries are named.
    """
    layers = [[unit.layer_us[layer] for unit in units] for layer in range(len(network.layers))]
    copies_in = [
        [unit.copy_in.time_us(load) + unit.overhead_us for unit in units]
        for load in loads_in(network, models)
    ]
    copies_out = [[unit.copy_out.time_us(load) for unit in units] for load in loads_out(network, models)]
    copies_in[-1] = copies_out[0] = [0.0] * len(units)
    for model in models[1:]:
        _fold(layers, model.start, copies_in, copies_out)
    copies_in[1:-1] = [
        [copy + unit.hop_us for copy, unit in zip(row, units, strict=True)] for row in copies_in[1:-1]
    ]
    _check(network, units, {"layer_us": layers, "transfer_in_us": copies_in, "transfer_out_us": copies_out})
    return CostTable(
        units=tuple(unit.unit for unit in units),
        networks=(
            NetworkCosts(
                network=network.name,
                layer_us=tuple(tuple(_optional(time) for time in row) for row in layers),
                transfer_in_us=_whole(copies_in, round),
                transfer_out_us=_whole(copies_out, round),
            ),
        ),
        provenance=provenance,
    )


def _fold(layers: list[list[float | None]], seam: int, copies_in: Rows, copies_out: Rows) -> None:
    for rows, layer in ((copies_in, seam), (copies_out, seam - 1)):
        layers[layer] = [
            None if time is None else time + copy
            for time, copy in zip(layers[layer], rows[seam], strict=True)
        ]
        rows[seam] = [0.0] * len(rows[seam])


def _check(
    network: Network, units: Sequence[UnitCosts], fields: dict[str, Sequence[Sequence[float | None]]]
) -> None:
    wrong = [
        f"{name}[{index}] on {unit.unit!r} is {time} us"
        for name, rows in fields.items()
        for index, row in enumerate(rows)
        for unit, time in zip(units, row, strict=True)
        if time is not None and not (isfinite(time) and time >= 0)
    ]
    if wrong:
        raise ProfilingError(f"{network.name!r} was measured wrongly: {'; '.join(wrong)}")


def _optional(time_us: float | None) -> int | None:
    return None if time_us is None else max(1, round(time_us))


def _whole(rows: Rows, rounded: Callable[[float], int]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(rounded(time) for time in row) for row in rows)

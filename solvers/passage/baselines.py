"""What people do without a planner: the fallback of an execution provider, and the whole network on one unit.

ONNX Runtime and OpenVINO HETERO put each layer on the first unit of a list that can run it, whatever it costs
to go to and fro.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import groupby
from typing import ClassVar

from ...formulations.chain import Chain, Part
from ...formulations.chunking.space import whole_parts
from ...formulations.chunking.tables import chain_of
from ...formulations.hardware import Platform, UnitKind
from ...formulations.problem import Problem
from ..placing import PLAIN, Placement
from ..protocol import Capabilities


class FallbackBackend(Placement):
    """Each layer on the first unit that can run it: the accelerator, then the fastest CPU."""

    name: ClassVar[str] = "fallback"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="each layer on the accelerator if it can run it, else on the CPU, as execution providers do",
        formulations={"passage": PLAIN},
    )

    def place(self, problem: Problem) -> Iterator[tuple[Part, ...]]:
        """Yield one plan, or none where borders cannot be moved to legal cuts."""
        parts = fallback(chain_of(problem), problem.platform)
        if parts is not None:
            yield parts


class OneUnitBackend(Placement):
    """The whole network on one unit."""

    name: ClassVar[str] = "one-unit"
    capabilities: ClassVar[Capabilities] = Capabilities(
        summary="the whole network on the unit that serves the objective best",
        formulations={"passage": PLAIN, "chunking": PLAIN},
    )

    def place(self, problem: Problem) -> Iterator[tuple[Part, ...]]:
        """Yield the plans of a single chunk."""
        return whole_parts(chain_of(problem))


def fallback(chain: Chain, device: Platform) -> tuple[Part, ...] | None:
    """Return the chunks of the plan whose layers are on the first unit that can run them.

    A border where no cut is legal moves to the nearest one that is; where a unit cannot run what it gets by
    that, there is no plan.
    """
    order = providers(chain, device)
    placed = [next((u for u in order if row[u] is not None), None) for row in chain.layer_us]
    borders: dict[int, int] = {}
    stop = 0
    for unit, layers in groupby(placed):
        if unit is None:
            return None
        start, stop = stop, stop + len(list(layers))
        borders[_nearest(chain.cuts, start)] = unit
    if borders.get(chain.layer_count) is not None:
        del borders[chain.layer_count]
    starts = sorted(borders)
    parts: list[Part] = []
    for start, end in zip(starts, [*starts[1:], chain.layer_count], strict=True):
        unit = borders[start]
        if not chain.runs(start, end, unit):
            return None
        if parts and parts[-1][2] == unit:
            parts[-1] = (parts[-1][0], end, unit)
        else:
            parts.append((start, end, unit))
    return tuple(parts)


def providers(chain: Chain, device: Platform) -> list[int]:
    """Return the units in the order in which people would list them as execution providers.

    The accelerator first: NPUs and DSPs, or GPUs where there are none. Then the other units, GPUs last, by
    the time of the whole network. Where that says nothing, the order is that of the platform.
    """
    kinds = [unit.kind for unit in device.units]
    special = {UnitKind.NPU, UnitKind.DSP} & set(kinds) or {UnitKind.GPU}

    def place(unit: int) -> tuple[int, int, int]:
        if kinds[unit] in special:
            return 0, 0, 0
        return 1 + (kinds[unit] is UnitKind.GPU), chain.blocked[unit][-1], chain.prefix_us[unit][-1]

    return sorted(range(chain.unit_count), key=place)


def _nearest(cuts: tuple[int, ...], border: int) -> int:
    """Return the legal cut that is nearest, the earlier one of two."""
    after = bisect_left(cuts, border)
    return min(cuts[max(after - 1, 0) : after + 1], key=lambda cut: abs(cut - border))

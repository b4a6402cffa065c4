"""Parts of a network: whether all of it presses on memory alike, and slices where it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise

from ....formulations.costs import (
    MOST_SLOWDOWN_PERMILLE,
    Interference,
    NetworkContention,
    SliceContention,
)
from ....formulations.network import Network
from .result import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class PartContention:
    """What a part does to others and minds of them, in whatever unit all parts of its network have."""

    part: Part
    time_us: float  # how long it takes alone
    causes: float
    suffers: float


def choose_parts(network: Network, *, count: int) -> tuple[Part, ...]:
    """Cut a network at legal cuts into parts of about as many operations each.

    `count`: how many parts; fewer where there are not enough cuts. 0: none.
    """
    if count == 0:
        return ()
    done = list(accumulate((layer.flops or 1 for layer in network.layers), initial=0))
    ends = {0, len(network.layers)}
    for border in range(1, count):
        target = done[-1] * border / count
        ends |= set(sorted(network.legal_cuts, key=lambda cut: abs(done[cut] - target))[:1])
    return tuple(Part(network=network.name, start=a, stop=b) for a, b in pairwise(sorted(ends)))


def with_slices(known: Interference, parts: Sequence[PartContention]) -> Interference:
    """Return how networks slow each other down, by the slices that some of them have as parts.

    A slice has the numbers of its network times what it causes, or suffers, over the mean of all parts by
    their time. A slice has one number for all units, and chunks take means by the time on their unit: so a
    chunk of the whole network has the numbers of the network where its parts share the time as they do in
    `parts`, but for rounding; more, where parts that press hard take more of the time. Networks that are not
    listed stay as they are.

    `parts`: of each network from the first layer to the last.
    """
    entries = {entry.network: entry for entry in known.networks}
    for name, group in groupby(parts, key=lambda each: each.part.network):
        own = list(group)
        if name in entries:
            entries[name] = _sliced(entries[name], own)
    return replace(known, networks=tuple(entries.values()))


def _sliced(network: NetworkContention, own: Sequence[PartContention]) -> NetworkContention:
    intensities = _scaled(network.intensity_permille, own, lambda each: each.causes)
    sensitivities = _scaled(network.sensitivity_permille, own, lambda each: each.suffers)
    return replace(
        network,
        slices=tuple(
            SliceContention(
                start=each.part.start,
                stop=each.part.stop,
                intensity_permille=intensity,
                sensitivity_permille=sensitivity,
            )
            for each, intensity, sensitivity in zip(own, intensities, sensitivities, strict=True)
        ),
    )


def _scaled(permille: int, own: Sequence[PartContention], of: Callable[[PartContention], float]) -> list[int]:
    """Return a number of a network for each of its parts; the same one where none of them stands out."""
    values = [max(0.0, of(each)) for each in own]
    mean = sum(value * each.time_us for value, each in zip(values, own, strict=True))
    mean /= sum(each.time_us for each in own)
    if mean <= 0:
        return [permille] * len(own)
    return [min(MOST_SLOWDOWN_PERMILLE, round(permille * value / mean)) for value in values]

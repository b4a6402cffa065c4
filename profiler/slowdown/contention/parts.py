"""Parts of a network, to see whether all of it presses on memory alike."""

from __future__ import annotations

from itertools import accumulate, pairwise

from ....formulations.network import Network
from .result import Part


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

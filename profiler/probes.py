"""Which chunks are measured: the smallest ones, groups worth a co-run, random ones to check the table."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..executor.model import Piece
from ..formulations.network import Network
from .measuring import PreparedPiece

MAX_PROBES = 16
"""Most groups of one network: each is measured on every unit, alone and beside the others."""

LEAST_PROBES = 4
"""Fewest groups, even of a network that is over in no time: copies are fitted to them."""

LONG_US = 500.0
"""Length of a group from which its ratio is steady: it is cut no shorter without need."""

Span = tuple[int, int]
"""Layers [start, stop) of one model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Consecutive layers of one model, ready to be measured."""

    span: Span
    prepared: PreparedPiece

    @property
    def layers(self) -> range:
        """Its layers."""
        return range(*self.span)


def blocks(network: Network) -> tuple[Span, ...]:
    """Return the shortest legal chunks: what lies between two neighbouring legal cuts."""
    ends = (*network.legal_cuts, len(network.layers))
    return tuple(zip((0, *network.legal_cuts), ends, strict=True))


def choose_groups(network: Network, layer_us: Sequence[float], seams: Sequence[int]) -> tuple[Span, ...]:
    """Cut a network into chunks that are long enough to measure what other units do to them.

    `seams`: where one model of the network ends and the next one starts: groups end there.
    """
    total = sum(layer_us)
    target = max(total / MAX_PROBES, min(LONG_US, total / LEAST_PROBES))
    groups: list[Span] = []
    for start, stop in _between((0, *seams, len(layer_us))):
        first, of_model = start, len(groups)
        for cut in (*(c for c in network.legal_cuts if start < c < stop), stop):
            if cut == stop or sum(layer_us[first:cut]) >= target:
                groups.append((first, cut))
                first = cut
        short = sum(layer_us[slice(*groups[-1])]) < target / 2
        if short and len(groups) - of_model > 1:
            groups[-2:] = [(groups[-2][0], stop)]
    return tuple(groups)


def choose_shortest(network: Network, layer_us: Sequence[float], *, count: int) -> tuple[Span, ...]:
    """Return the chunks with least to do, which take hardly more than a session costs by itself."""
    return tuple(sorted(blocks(network), key=lambda span: sum(layer_us[slice(*span)]))[:count])


def choose_checks(network: Network, *, count: int, seed: int, wanted: Callable[[Span], bool]) -> list[Span]:
    """Return random different chunks, short and long ones; none where hardly any can be run.

    `wanted`: whether a chunk can be run somewhere, and was not measured anyway.
    """
    layers = len(network.layers)
    ends = (0, *network.legal_cuts, layers)
    pick = random.Random(seed)
    found: dict[Span, None] = {}
    for _ in range(20 * count):
        # as many short ones as long ones, but none much shorter than those that plans are made of
        length = layers * MAX_PROBES ** -pick.random()
        start = pick.choice(ends[:-1])
        stop = min((cut for cut in ends if cut > start), key=lambda cut: abs(cut - start - length))
        if len(found) < count and (start, stop) != (0, layers) and wanted((start, stop)):
            found[start, stop] = None
    return list(found)


def _between(ends: Sequence[int]) -> list[Span]:
    return list(pairwise(ends))


def piece_spans(network: Network, pieces: Sequence[Piece], span: Span) -> list[Span]:
    """Return the layers of each piece: a piece ends with the layer that makes the last of its outputs."""
    made = {tensor.name: tensor.source for tensor in network.tensors}
    inner = [1 + max(made[piece.prefix + spec.name] for spec in piece.outputs) for piece in pieces[:-1]]
    return _between((span[0], *inner, span[1]))

"""Pieces of models, and what splitting a model in tiles costs.

Pieces are kept in the cache of the user: they depend on the network only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ..executor.engines.cache import cache_key, default_cache
from ..formulations.canonical import digest
from ..formulations.errors import InvalidInputError
from ..formulations.json_files import Schema, dump, load
from ..formulations.spatial import Axis, SpatialNetwork, check_pieces
from ..formulations.tiles import (
    bytes_of,
    even_rows,
    flops_of,
    halos,
    needs,
    obstacles,
    reference_rows,
    sources_of,
    tile_of,
)
from ..formulations.validation import STRICT
from ..solvers.pieces.finding import PieceMethod, Pieces, find_pieces, usual_pieces

PIECES = Schema(format="gapless.pieces", version=1, content=Pieces)
"""Pieces of a network in the cache."""

PIECES_VERSION = "2"
"""Changed whenever the same network would get other pieces."""


def pieces_of(
    network: SpatialNetwork, *, method: PieceMethod | None = None, time_limit_s: float | None = None
) -> Pieces:
    """Return the pieces of a network; from the cache where they were found before.

    `method`: how to find them; None: in the way that always gives the same ones, as granularity "piece" does.
    """
    cache = default_cache()
    key = cache_key("pieces", PIECES_VERSION, digest(network), str(method), str(time_limit_s))
    path = cache.path(key, ".pieces")
    if path is not None:
        with contextlib.suppress(InvalidInputError):  # what cannot be read is found anew
            kept = load(path, PIECES)
            if not any(check_pieces(network, kept.labels)):
                return kept
    found = (
        usual_pieces(network)
        if method is None
        else find_pieces(network, method=method, time_limit_s=time_limit_s)
    )
    cache.put(key, ".pieces", dump(found, PIECES).encode())
    return found


def labels_of(network: SpatialNetwork) -> tuple[int, ...]:
    """Return the number of the piece of each node, always the same (`PieceFinder` of `load_onnx`)."""
    return pieces_of(network).labels


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceSummary:
    """One piece of a network.

    `first`, `last`: names of its first and last operator; `operators`, `layers`: number of its operators, and
    of the convolutions and poolings among them; `flops`, `extra_flops`: operations, and what halos inside it
    add.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    first: str
    last: str
    operators: int
    layers: int
    flops: int
    extra_flops: int
    halo: tuple[int, int]  # largest halo inside it: rows and columns
    whole: str | None  # the operator for which it cannot be computed in tiles, or None


def piece_summaries(network: SpatialNetwork, pieces: Pieces) -> tuple[PieceSummary, ...]:
    """Return what is in each piece of a network."""
    found = []
    for piece, cost in enumerate(pieces.costs):
        members = pieces.members(piece)
        nodes = [network.nodes[index] for index in members]
        inside = [
            halo for index, halo in halos(network, members).items() if not network.nodes[index].is_whole
        ]
        found.append(
            PieceSummary(
                first=nodes[0].name,
                last=nodes[-1].name,
                operators=len(nodes),
                layers=sum(node.is_layer for node in nodes),
                flops=sum(node.flops for node in nodes),
                extra_flops=cost,
                halo=(max((h[0] for h in inside), default=0), max((h[1] for h in inside), default=0)),
                whole=next((node.name for node in nodes if not any(node.splits)), None),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSplit:
    """What becomes of one operator when a network is split along an axis.

    `stride`, `extent`, `up`: its window along the axis (`formulations.spatial.Window`); None where it does
    not split. `tile_flops`, `tile_bytes`: of the largest tile of this operator alone: operations, and bytes
    that it reads and makes.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    name: str
    op_type: str
    stride: int | None
    extent: int | None
    up: int | None
    size: tuple[int, int]  # rows and columns of its result
    obstacle: str | None  # why it does not split; None: it does
    tile_flops: int
    tile_bytes: int
    reread: float  # share of what it reads that more than one tile reads
    redundancy: float
    """Share of operations that are done more than once when everything that splits up to here is fused."""
    fused: int


def split_operators(network: SpatialNetwork, parts: int, axis: Axis) -> Iterator[OperatorSplit]:
    """Yield what becomes of each operator when its result is computed in a number of even parts."""
    if parts < 2:
        raise InvalidInputError(f"a model is split in 2 parts or more, not in {parts}")
    fused: dict[int, frozenset[int]] = {}
    for index in network.operators:
        node, alone = network.nodes[index], {index}
        before = [fused[source] for source in node.sources if source in fused]
        sources, obstacle = sources_of(network, alone), next(obstacles(network, alone, axis), None)
        window = next((read[axis] for read in node.windows if read[axis] is not None), None)
        if node.splits[axis]:
            fused[index] = frozenset(alone).union(*before)
        rows = [(0, 1)] if obstacle else even_rows(reference_rows(network, alone, axis), parts)
        needed = [needs(network, alone, tile_of(network, alone, part, axis), axis) for part in rows]
        reads = [bytes_of(network, sources, need, axis) for need in needed]
        once = sum(network.nodes[source].bytes for source in sources)
        yield OperatorSplit(
            name=node.name,
            op_type=node.op_type,
            stride=window.stride if window else None,
            extent=window.extent if window else None,
            up=window.up if window else None,
            size=node.size,
            obstacle=obstacle,
            tile_flops=max(flops_of(network, alone, need, axis) for need in needed),
            tile_bytes=max(
                bytes_of(network, alone, need, axis) + read for need, read in zip(needed, reads, strict=True)
            ),
            reread=max(0.0, sum(reads) / once - 1) if once and not obstacle else 0.0,
            redundancy=0.0 if obstacle else _fused_redundancy(network, index, fused[index], parts, axis),
            fused=len(fused.get(index, ())),
        )


def _fused_redundancy(
    network: SpatialNetwork, sink: int, members: frozenset[int], parts: int, axis: Axis
) -> float:
    """Return the redundancy of computing the result of one node in parts, from everything before it."""
    rows = even_rows(network.nodes[sink].size[axis], parts)
    needed = [needs(network, members, {sink: part}, axis) for part in rows]
    whole = sum(network.nodes[index].flops for index in needed[0] if index in members)
    done = sum(flops_of(network, members, need, axis) for need in needed)
    return max(0.0, done / whole - 1) if whole else 0.0

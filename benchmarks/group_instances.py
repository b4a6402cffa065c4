"""Chains like VGG16 over devices, to measure planners of groups with."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gapless.formulations.cluster import Link, Pipelines
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.groups import Cooperation
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.problem import Problem
from gapless.formulations.spatial import SpatialNetwork, SpatialNode, Window
from gapless.formulations.terms import Objective

_CONV = Window(stride=1, extent=3, before=1)
_POOL = Window(stride=2, extent=2, before=0)
_KERNEL_FLOPS, _FLOAT = 18, 4


def chain_network(pieces: int, rows: int = 224) -> SpatialNetwork:
    """Return convolutions of 3 x 3 with pools between them, as in VGG16: 64 channels to 512."""
    nodes = [SpatialNode(name="in", op_type="Input", size=(rows, rows), bytes=3 * rows * rows * _FLOAT)]
    channels, wanted = 3, 64
    pools = {2, 5, 9, 13, 17} if pieces > 8 else {2, 5}
    for piece in range(pieces):
        side = nodes[-1].size[0]
        pool = piece in pools and side >= 14
        out = side // 2 if pool else side
        made = channels if pool else wanted
        wanted = min(512, 2 * wanted) if pool else wanted
        nodes.append(
            SpatialNode(
                name=f"{'pool' if pool else 'conv'}{piece}",
                op_type="MaxPool" if pool else "Conv",
                sources=(piece,),
                windows=((_POOL if pool else _CONV,) * 2,),
                size=(out, out),
                bytes=made * out * out * _FLOAT,
                flops=(4 if pool else _KERNEL_FLOPS * channels) * made * out * out,
                weight_bytes=0 if pool else 9 * channels * made * _FLOAT,
            )
        )
        channels = made
    return SpatialNetwork(name=f"chain{pieces}", nodes=tuple(nodes), outputs=(pieces,))


def in_pieces(network: SpatialNetwork, pieces: Sequence[int]) -> Network:
    """Return a network with a layer for each piece; `pieces`: that of each of its nodes."""
    nodes, count = network.nodes, max(pieces) + 1
    members: list[list[SpatialNode]] = [[] for _ in range(count)]
    tensors = []
    for index, (node, piece) in enumerate(zip(nodes, pieces, strict=True)):
        if piece >= 0:
            members[piece].append(node)
        targets = sorted({pieces[reader] for reader in network.readers[index]} - {piece})
        targets += [count] if index in network.outputs else []
        if targets:
            tensors.append(Tensor(name=node.name, bytes=node.bytes, source=piece, targets=tuple(targets)))
    layers = tuple(
        Layer(name=f"p{n}", weight_bytes=sum(o.weight_bytes for o in own), flops=sum(o.flops for o in own))
        for n, own in enumerate(members)
    )
    return Network(name=network.name, layers=layers, tensors=tuple(tensors))


def group_problem(
    network: SpatialNetwork,
    pieces: Sequence[int],
    gflops: Sequence[float],
    *,
    types: Sequence[str] = (),
    mbit_per_second: float = 400.0,
    interstage: bool = True,
    objective: str = "period,latency",
) -> Problem:
    """Return a network over devices of some speeds with links that are all alike.

    Parameters
    ----------
    network, pieces
        The network and the piece of each of its nodes.
    gflops
        Speed of each device, 10^9 operations a second.
    types, interstage, objective
        As in `Pipelines`, `Cooperation` and `Objective.parse`.
    mbit_per_second
        Rate of each link.
    """
    names, table = tuple(f"d{number}" for number in range(len(gflops))), in_pieces(network, pieces)
    layer_us = tuple(
        tuple(max(1, round((layer.flops or 0) / speed / 1000)) for speed in gflops) for layer in table.layers
    )
    link = int(mbit_per_second * 1e6 / 8)
    kinds = sorted(set(types or names))
    return Problem(
        platform=Platform(name="cluster", units=tuple(ProcessingUnit(name=name) for name in names)),
        networks=(table,),
        costs=CostTable(units=names, networks=(NetworkCosts(network=network.name, layer_us=layer_us),)),
        objective=Objective.parse(objective),
        data=Cooperation(
            spatial=network,
            pieces=tuple(pieces),
            interstage=interstage,
            devices=Pipelines(
                types=tuple(types),
                links=tuple(
                    Link(source=one, target=other, bytes_per_second=link) for one in kinds for other in kinds
                ),
                overlap=False,
            ),
        ),
    )


def chain_problem(pieces: int, gflops: Sequence[float], **how: object) -> Problem:
    """Return a chain like VGG16 with a piece for each layer; parameters as for `group_problem`."""
    network = chain_network(pieces)
    return group_problem(network, (-1, *range(pieces)), gflops, **how)  # type: ignore[arg-type]


def unlike_speeds(devices: int, seed: int = 0) -> list[float]:
    """Return speeds of devices that are all different, 1 to 5 GFLOP/s: fast first."""
    rng = random.Random(seed)
    return sorted((rng.uniform(1, 5) for _ in range(devices)), reverse=True)

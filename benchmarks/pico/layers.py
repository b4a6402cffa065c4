"""Figures 2 and 5: what layers compute and make, and what fusing them over several devices adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapless.formulations.spatial import Axis, SpatialNetwork
from gapless.formulations.tiles import even_rows, flops_of, needs, reference_rows, tile_of

from ..pieces import network_of
from ..printing import Part, Statement, near, titled
from .testbed import PaperDevices, trunk

CONV_SHARES = {"vgg16": 0.9919, "yolov2": 0.9959}
"""Share of convolutions in all operations as printed (2.1)."""

DEVICES = (1, 2, 4, 6, 8)


def figure_2(bed: PaperDevices) -> Iterator[Part]:
    """Yield the share of each layer in operations and in bytes of results."""
    for name, printed in CONV_SHARES.items():
        network = network_of(name)
        shown = [node for node in network.nodes if node.is_layer or node.op_type in {"Gemm", "MatMul"}]
        flops, size = sum(node.flops for node in network.nodes), sum(node.bytes for node in shown)
        table = titled(f"Fig. 2, {name}: share of each layer", "layer", "operations", "bytes of results")
        for number, node in enumerate(shown, 1):
            table.add_row(f"{number} {node.op_type}", _share(node.flops, flops), _share(node.bytes, size))
        others = flops - sum(node.flops for node in shown)
        table.add_row("others (activations, normalisations)", _share(others, flops), "-")
        yield table
        own = sum(node.flops for node in shown if "Conv" in node.op_type) / flops
        text = f"{name}: convolutions are {100 * printed:.2f} % of the operations"
        yield Statement(text, f"{100 * own:.2f} %", near(own, printed))


def fused_flops(network: SpatialNetwork, layers: int, devices: int) -> list[int]:
    """Return by device the operations of the first layers of a chain, fused and split in even rows."""
    starts = [index for index, node in enumerate(network.nodes) if node.is_layer]
    stop = starts[layers] if layers < len(starts) else len(network.nodes)
    members = range(starts[0], stop)
    rows = even_rows(reference_rows(network, members, Axis.ROWS), devices)
    tiles = [needs(network, members, tile_of(network, members, part, Axis.ROWS), Axis.ROWS) for part in rows]
    return [flops_of(network, members, tile, Axis.ROWS) for tile in tiles]


def fused_grid(devices: Sequence[int] = DEVICES) -> dict[int, list[list[int]]]:
    """Return for VGG16, by number of fused layers, the operations of each device, by number of devices."""
    network = trunk("vgg16")
    count = sum(node.is_layer for node in network.nodes)
    return {n: [fused_flops(network, n, number) for number in devices] for n in range(1, count + 1)}


def figure_5(bed: PaperDevices) -> Iterator[Part]:
    """Yield what fusing the first layers of VGG16 costs, by device and in all."""
    table = titled(
        "Fig. 5, VGG16: GFLOP of the busiest device / of all devices (computed twice)",
        "fused layers",
        *(f"{number} device{'s' * (number > 1)}" for number in DEVICES),
    )
    grid = fused_grid()
    for layers, row in grid.items():
        table.add_row(str(layers), *(_cell(flops, sum(row[0])) for flops in row))
    yield table
    shown = [node for node in trunk("vgg16").nodes if node.is_layer]
    convolutions = [n for n, node in enumerate(shown, 1) if "Conv" in node.op_type]
    extra = [[sum(flops) / sum(grid[n][0]) - 1 for flops in grid[n]] for n in convolutions]
    with_all = [row[-1] for row in extra]
    yield Statement(
        "what is computed twice grows with the devices and with the fused layers",
        f"8 devices do {100 * with_all[0]:.0f} % more for one layer, {100 * with_all[-1]:.0f} % more up to "
        "the last convolution",
        all(row == sorted(row) for row in extra) and with_all == sorted(with_all),
    )


def _cell(flops: Sequence[int], once: int) -> str:
    return f"{max(flops) / 1e9:.2f} / {sum(flops) / 1e9:.2f} ({100 * (sum(flops) / once - 1):.0f} %)"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %"

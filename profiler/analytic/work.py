"""What the layers of a network have to do, whoever does it: operations, and bytes to move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...formulations.errors import InvalidInputError
from ...formulations.network import Layer, Network

_PRODUCTS = frozenset({"Gemm", "MatMul", "Attention", "Einsum"})
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """What one layer has to do."""

    product: bool
    """Whether it computes matrix products (fully connected, attention); otherwise it is a convolution, or
    work element by element."""
    flops: int  # floating-point operations for each inference
    moved_bytes: int  # bytes of the tensors that it reads and makes, for each inference
    weight_bytes: int
    """Bytes of weights that it reads once a run, however many inferences the run is a batch of. A look-up in
    a table reads no more of it than it returns."""


def works_of(network: Network) -> tuple[LayerWork, ...]:
    """Return the work of each layer of a network."""
    unknown = [layer.name for layer in network.layers if layer.flops is None]
    if unknown:
        raise InvalidInputError(
            f"network {network.name!r}: how many operations {', '.join(map(repr, unknown[:5]))} has is not "
            "known, so that its time cannot be computed; measure it with `gapless profile`"
        )
    return tuple(map(_work, network.layers, *_traffic(network)))


def _work(layer: Layer, read: int, made: int) -> LayerWork:
    kinds = frozenset(text.partition("[")[0] for text in layer.op_types)  # without attributes
    computes = kinds & (_PRODUCTS | _CONVOLUTIONS)
    return LayerWork(
        product=bool(kinds & _PRODUCTS),
        flops=layer.flops or 0,
        moved_bytes=read + made,
        weight_bytes=layer.weight_bytes if computes else min(layer.weight_bytes, made),
    )


def _traffic(network: Network) -> tuple[Sequence[int], Sequence[int]]:
    """Return the bytes of the tensors that each layer reads, and that it makes."""
    count = len(network.layers)
    read, made = [0] * (count + 1), [0] * (count + 1)  # the last: outputs and inputs of the network
    for tensor in network.tensors:
        made[tensor.source] += tensor.bytes
        for target in tensor.targets:
            read[target] += tensor.bytes
    return read[:count], made[:count]

"""From a network and a model of the units to a table of costs, for any size of batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from ...formulations.costs import NetworkCosts
from ...formulations.errors import InvalidInputError
from ...formulations.network import Layer, Network
from ...formulations.operators import excluded
from ...formulations.workload import MOST_BATCH
from .model import AnalyticModel, UnitModel

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


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTime:
    """The time of a batch of b inferences: fixed + b x each (Hetero2Pipe, Appendix D), microseconds."""

    fixed_us: float
    each_us: float

    def of(self, batch: int) -> float:
        """Return the time of a batch."""
        return self.fixed_us + batch * self.each_us

    def batch_for(self, time_us: float) -> int:
        """Return the batch that takes most nearly some time; at least one inference."""
        return min(MOST_BATCH, max(1, round((time_us - self.fixed_us) / self.each_us)))


def batched(network: Network, batch: int) -> Network:
    """Return a network that computes a batch of inferences at once: "mobilenetv2*4"."""
    if batch == 1:
        return network
    return replace(
        network,
        name=f"{network.name}*{batch}",
        layers=tuple(replace(layer, flops=batch * (layer.flops or 0)) for layer in network.layers),
        tensors=tuple(replace(tensor, bytes=batch * tensor.bytes) for tensor in network.tensors),
        source=f"{batch} inferences at once: {network.source}",
        models=(),
    )


def network_costs(network: Network, model: AnalyticModel, *, batch: int = 1) -> NetworkCosts:
    """Return the computed costs of a network, under the name of the batch.

    `network`: the network for one inference; `model`: the units; `batch`: inferences of one run.
    Raises InvalidInputError: the operations of a layer are not known, or a whole network is said to have run
    on a unit that cannot run one of its layers.
    """
    copies = [_copies_us(network, unit, batch) for unit in model.units]
    columns = [_layers_us(network, unit, batch) for unit in model.units]
    return NetworkCosts(
        network=batched(network, batch).name,
        layer_us=tuple(zip(*columns, strict=True)),
        transfer_in_us=tuple(zip(*copies, strict=True)),
    )


def time_of(network: Network, unit: UnitModel) -> BatchTime | None:
    """Return the time of a whole network on one unit; None: it cannot run all of it.

    Without the rounding of each layer to whole microseconds.
    """
    if not all(_runs(network, unit)):
        return None
    copy = BatchTime(fixed_us=unit.copy_us, each_us=network.boundary_bytes[0] / unit.copy_bytes_per_us)
    layers = _computed_layers(network, unit)
    scale = _scale(network, unit, layers)
    return BatchTime(
        fixed_us=copy.fixed_us + scale * sum(layer.fixed_us for layer in layers),
        each_us=copy.each_us + scale * sum(layer.each_us for layer in layers),
    )


def layer_times(network: Network, unit: UnitModel) -> tuple[float, ...] | None:
    """Return the time of each layer for one inference, microseconds, without copies; None as in `time_of`."""
    if not all(_runs(network, unit)):
        return None
    layers = _computed_layers(network, unit)
    scale = _scale(network, unit, layers)
    return tuple(scale * layer.of(1) for layer in layers)


def _computed_layers(network: Network, unit: UnitModel) -> tuple[BatchTime, ...]:
    """Return the time of each layer as the rates say, not scaled to any known total."""
    return tuple(_computed(work, unit) for work in works_of(network))


def _computed(work: LayerWork, unit: UnitModel) -> BatchTime:
    rate = unit.product_flops_per_us if work.product else unit.flops_per_us
    return BatchTime(
        fixed_us=unit.launch_us + work.weight_bytes / unit.bytes_per_us,
        each_us=work.flops / rate + work.moved_bytes / unit.bytes_per_us,
    )


def _layers_us(network: Network, unit: UnitModel, batch: int) -> list[int | None]:
    """Return the times in whole microseconds: rounded so that their sum is that of the exact times."""
    layers = _computed_layers(network, unit)
    scale = _scale(network, unit, layers)
    ends = accumulate((scale * layer.of(batch) for layer in layers), initial=0.0)
    times = [max(1, stop - start) for start, stop in pairwise(map(round, ends))]
    return [time if runs else None for time, runs in zip(times, _runs(network, unit), strict=True)]


def _runs(network: Network, unit: UnitModel) -> list[bool]:
    return [not excluded(layer.op_types, unit.unsupported) for layer in network.layers]


def _scale(network: Network, unit: UnitModel, layers: Sequence[BatchTime]) -> float:
    """Return what computed times are multiplied by so that one inference takes the known total."""
    total_us = unit.total_of(network.name)
    if total_us is None:
        return 1.0
    if not all(_runs(network, unit)):
        raise InvalidInputError(
            f"a time of {network.name!r} on {unit.unit!r} is given, which cannot run all of its layers"
        )
    return (total_us - _copies_us(network, unit, 1)[0]) / sum(layer.of(1) for layer in layers)


def _copies_us(network: Network, unit: UnitModel, batch: int) -> list[int]:
    """Return the time to bring the tensors alive at each boundary 0..n into a unit."""
    return [round(unit.copy_us + batch * alive / unit.copy_bytes_per_us) for alive in network.boundary_bytes]

"""Random workloads, equal for equal seeds.

Synthetic: the networks have the sizes and the orders of magnitude that Hetero2Pipe prints for a phone
(Table II and Figs. 1 and 2: SqueezeNet, BERT and ViT to the number, the others roughly), their layers
are drawn. Nothing here was measured.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from ...formulations.costs import CostTable, Interference, NetworkContention, NetworkCosts, Provenance
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Layer, Network
from ...formulations.objective import Objective
from ...formulations.problem import Problem
from ...formulations.workload import Execution, Request, RequestOrder, Workload

UNITS = ("npu", "cpu_b", "gpu", "cpu_s", "npu_2", "cpu_b_2", "gpu_2", "cpu_s_2")
_KINDS = 4
_SECOND_PERMILLE = 1250
"""Time on the second unit of a kind, compared with the first."""

_SLOWDOWN_PERMILLE = ((0, 30, 40, 20), (50, 0, 200, 120), (30, 110, 0, 60), (50, 250, 120, 0))
_LIGHT_MS, _FULL_MS = 250, 450
"""Balanced workloads repeat networks below the first until they take about the second on `cpu_b`."""


@dataclass(frozen=True, slots=True)
class _Model:
    """A network: layers, milliseconds on npu, cpu_b and gpu, layers the npu cannot run, intensity."""

    name: str
    layers: int
    npu_ms: float
    big_ms: float
    gpu_ms: float
    unsupported: int = 0
    intensity_permille: int = 1000


_MODELS = (
    _Model("alexnet", 8, 5.0, 60.0, 42.0, 0, 1500),
    _Model("vgg16", 21, 45.0, 410.0, 260.0, 0, 1400),
    _Model("googlenet", 25, 8.0, 75.0, 62.0, 0, 900),
    _Model("inceptionv4", 62, 50.0, 390.0, 300.0, 0, 800),
    _Model("resnet50", 54, 15.0, 135.0, 110.0, 0, 900),
    _Model("yolov4", 100, 95.0, 720.0, 430.0, 6, 1000),
    _Model("mobilenetv2", 53, 3.6, 20.0, 18.0, 0, 500),
    _Model("squeezenet", 26, 4.0, 13.46, 18.83, 0, 1900),
    _Model("bert", 50, 80.0, 553.91, 1109.23, 8, 700),
    _Model("vit", 38, 90.0, 453.37, 1474.53, 0, 800),
)


def random_workload(
    requests: int,
    units: int = 4,
    seed: int = 0,
    *,
    balanced: bool = False,
    slowdown: bool = False,
    order: RequestOrder = RequestOrder.FREE,
    execution: Execution = Execution.ASYNCHRONOUS,
) -> Problem:
    """Return a problem with the objective makespan.

    `requests`, `units`: size; the units are the first of npu, cpu_b, gpu and cpu_s, then slower ones of the
    same kinds. `balanced`: whether light networks are repeated until all requests take about as long; harder.
    """
    if units > len(UNITS):
        raise InvalidInputError(f"units is {units}, must be at most {len(UNITS)}")
    rng = random.Random(f"{requests} {units} {seed} {balanced}")
    costs = tuple(_costs(model, units, rng, balanced=balanced) for model in _MODELS)
    drawn = [rng.choice(_MODELS).name for _ in range(requests)]
    names = UNITS[:units]
    return Problem(
        platform=Platform(name="synthetic", units=tuple(ProcessingUnit(name=name) for name in names)),
        networks=tuple(_network(model, rng) for model in _MODELS),
        costs=CostTable(units=names, networks=costs, provenance=Provenance(source="drawn", estimated=True)),
        objective=Objective(terms=("makespan",)),
        data=Workload(
            requests=tuple(Request(name=f"r{i}", network=name) for i, name in enumerate(drawn)),
            order=order,
            execution=execution,
        ),
        interference=_interference(units) if slowdown else None,
    )


def _network(model: _Model, rng: random.Random) -> Network:
    weights = [int(rng.lognormvariate(13, 1)) for _ in range(model.layers)]
    return Network(
        name=model.name,
        layers=tuple(Layer(name=f"l{i}", weight_bytes=size) for i, size in enumerate(weights)),
    )


def _costs(model: _Model, units: int, rng: random.Random, *, balanced: bool) -> NetworkCosts:
    repeats = max(1, round(_FULL_MS / model.big_ms)) if balanced and model.big_ms < _LIGHT_MS else 1
    shape = [rng.lognormvariate(0, 0.8) for _ in range(model.layers)]
    small_ms = model.big_ms * rng.uniform(2.9, 3.4)
    first_ms = (model.npu_ms, model.big_ms, model.gpu_ms, small_ms)
    totals_ms = (*first_ms, *(total * _SECOND_PERMILLE / 1000 for total in first_ms))[:units]
    columns = [_spread(repeats * total, shape, rng) for total in totals_ms]
    blocked = set(rng.sample(range(model.layers), model.unsupported))
    rows = tuple(
        tuple(
            None if unit % _KINDS == 0 and layer in blocked else column[layer]
            for unit, column in enumerate(columns)
        )
        for layer in range(model.layers)
    )
    sizes = [rng.lognormvariate(12.5, 1) * repeats for _ in range(model.layers + 1)]
    starts_us = ((300, 40, 150, 40) * 2)[:units]
    bandwidths = ((2_000, 8_000, 4_000, 6_000) * 2)[:units]  # bytes per microsecond
    into = tuple(
        tuple(round(start + size / speed) for start, speed in zip(starts_us, bandwidths, strict=True))
        for size in sizes
    )
    return NetworkCosts(network=model.name, layer_us=rows, transfer_in_us=into)


def _spread(total_ms: float, shape: list[float], rng: random.Random) -> list[int]:
    """Return microseconds of each layer: the shape of the network, with a taste of the unit."""
    parts = [part * rng.lognormvariate(0, 0.3) for part in shape]
    return [max(1, round(1000 * total_ms * part / sum(parts))) for part in parts]


def _interference(units: int) -> Interference:
    return Interference(
        units=UNITS[:units],
        slowdown_permille=tuple((row * 2)[:units] for row in (_SLOWDOWN_PERMILLE * 2)[:units]),
        networks=tuple(
            NetworkContention(network=model.name, intensity_permille=model.intensity_permille)
            for model in _MODELS
        ),
        high_from_permille=1000,
        provenance=Provenance(source="drawn around Table II of the paper", estimated=True),
    )

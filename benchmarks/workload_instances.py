"""Random workloads for benchmarks, equal for equal seeds.

Synthetic: the networks have the sizes and the orders of magnitude that Hetero2Pipe prints for a phone
(Table II and Figs. 1 and 2: SqueezeNet, BERT and ViT to the number, the others roughly), their layers
are drawn. Nothing here was measured.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from gapless.formulations.costs import CostTable, Interference, NetworkContention, NetworkCosts, Provenance
from gapless.formulations.deployment import Mode
from gapless.formulations.flow_shop.rules import keep_off
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.objective import Objective
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Execution, LoadPolicy, Request, RequestOrder, Workload
from gapless.solvers.exhaustive import count_plans

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

    Parameters
    ----------
    requests, units
        Size; the units are the first of npu, cpu_b, gpu and cpu_s, then slower ones of the same kinds.
    seed
        Equal seeds give equal problems.
    balanced
        Whether light networks are repeated until all requests take about as long; harder.
    slowdown
        Whether the units slow each other down.
    order, execution
        As in `Workload`.
    """
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


def small_workload(seed: int) -> Problem:
    """Return a workload with at most about a thousand plans and any of the features that there are.

    Requests of one or two networks on two or three units; times of a few or of thousands of microseconds.
    """
    while True:
        rng = random.Random(f"small {seed}")
        problem = _small(rng)
        if count_plans(problem) <= 1_200:
            return problem
        seed += 1_000_000


def _small(rng: random.Random) -> Problem:
    names = UNITS[: rng.choice((2, 2, 3))]
    layers = {name: rng.randint(1, 4) for name in "ab"[: rng.randint(1, 2)]}
    most_us = rng.choice((9, 200, 20_000))
    columns = rng.random() < 0.25
    stream = not columns and rng.random() < 0.15
    late_us = (0,) if columns or stream else (0, 0, most_us, 3 * most_us)
    due_us = (None,) if stream else (None, None, None, 12 * most_us)
    requests = tuple(
        Request(
            name=f"r{i}",
            network=rng.choice(list(layers)),
            arrival_us=rng.choice(late_us),
            deadline_us=rng.choice(due_us),
        )
        for i in range(rng.randint(1, 4))
    )
    problem = Problem(
        platform=Platform(
            name="small",
            units=tuple(ProcessingUnit(name=unit, cores=rng.choice(((), (), (), (0,)))) for unit in names),
            memory_bytes=rng.choice((None, None, 90, 130)),
        ),
        networks=tuple(
            Network(
                name=name,
                layers=tuple(Layer(name=f"l{i}", weight_bytes=rng.randint(0, 20)) for i in range(count)),
                tensors=tuple(
                    Tensor(name=f"t{i}", bytes=rng.randint(0, 20), source=i - 1, targets=(i,))
                    for i in range(count)
                ),
            )
            for name, count in layers.items()
        ),
        costs=CostTable(
            units=names,
            networks=tuple(_small_costs(rng, *one, len(names), most_us) for one in layers.items()),
        ),
        objective=Objective(terms=("makespan",)),
        data=Workload(
            requests=requests,
            order=rng.choice(tuple(RequestOrder)),
            mode=Mode.STREAM if stream else Mode.BATCH,
            execution=Execution.COLUMNS if columns else Execution.ASYNCHRONOUS,
            load_policy=rng.choice(tuple(LoadPolicy)),
            task_slots=None if columns else rng.choice((None, None, 1, 2)),
        ),
        interference=_small_interference(rng, names, tuple(layers)) if rng.random() < 0.75 else None,
    )
    if rng.random() < 0.2:
        problem = problem.with_rules(keep_off("r0", unit=rng.choice(names)))
    return problem


def _small_costs(rng: random.Random, name: str, layers: int, units: int, most_us: int) -> NetworkCosts:
    def times(count: int, least_us: int, most_us: int) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(rng.randint(least_us, most_us) for _ in range(units)) for _ in range(count))

    runs = tuple(tuple(None if rng.random() < 0.1 else us for us in row) for row in times(layers, 1, most_us))
    copies = times(layers + 1, 0, most_us // 8) if rng.random() < 0.5 else ()
    return NetworkCosts(network=name, layer_us=runs, transfer_in_us=copies)


def _small_interference(
    rng: random.Random, units: tuple[str, ...], networks: tuple[str, ...]
) -> Interference:
    slowdowns, pressures = (0, 20, 100, 300, 700, 2500), (200, 1000, 2000)
    return Interference(
        units=units,
        slowdown_permille=tuple(tuple(0 if u == v else rng.choice(slowdowns) for v in units) for u in units),
        networks=tuple(
            NetworkContention(
                network=name,
                intensity_permille=rng.choice(pressures),
                sensitivity_permille=rng.choice(pressures),
            )
            for name in networks
        ),
        high_from_permille=1000,
    )

"""Small workloads on which every backend is compared with the oracle, and random ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...formulations.costs import CostTable, Interference, NetworkContention, NetworkCosts, Provenance
from ...formulations.deployment import Mode
from ...formulations.errors import InvalidInputError
from ...formulations.files import parse_problem
from ...formulations.flow_shop.rules import (
    before,
    deadline,
    keep_off,
    keep_on,
    memory_cap_while,
    never_beside,
)
from ...formulations.flow_shop.tables import workload_of
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Layer, Network
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ...formulations.terms import Objective
from ...formulations.workload import Execution, LoadPolicy, Request, RequestOrder, Workload
from ..samples import Samples

UNITS = ("npu", "cpu_b", "gpu", "cpu_s", "npu_2", "cpu_b_2", "gpu_2", "cpu_s_2")
_KINDS = 4
_SECOND_PERMILLE = 1250
"""Time on the second unit of a kind, compared with the first."""

_SLOWDOWN_PERMILLE = ((0, 30, 40, 20), (50, 0, 200, 120), (30, 110, 0, 60), (50, 250, 120, 0))
_LIGHT_MS, _FULL_MS = 250, 450
"""Balanced workloads repeat networks below the first until they take about the second on `cpu_b`."""


def samples() -> Samples:
    """Return a plain workload, and one for each way in which workloads can differ."""
    problems = list(sample_workloads())
    names = ("free", "one_slot", "stream", "late", "fixed", "fixed_columns", "columns")
    return Samples(
        plain=_plain(problems[0]).with_objective("makespan"),
        problems=dict(zip(names, problems, strict=True)),
        rules={
            "before": (before("b0", "a0"),),
            "never_beside": (never_beside("a0", "b0"),),
            "deadline": (deadline("b0", most_us=140),),
            "memory_cap_while": (memory_cap_while("a0", most_bytes=90),),
            "keep_on": (keep_on("a0", units=("npu",)),),
            "keep_off": (keep_off("b0", unit="npu"),),
            "numbers": (lambda view: view.start_us("b0") + 2 * view.load_us("cpu") <= view.makespan_us(),),
            "opaque": (OpaqueRule(name="few", predicate=lambda plan: len(plan.chunks) != 3),),
            "contradiction": (keep_on("b0", units=("npu",)), keep_off("b0", unit="npu")),
        },
        limits=(
            {"max_units": 1},
            {"min_units": 2},
            {"max_period_us": 100},
            {"max_gapness_us": 30},
            {"max_latency_us": 260},
            {"max_energy_nj": 120_000},
        ),
        objectives=("makespan,latency", "contention,displacement", "energy,makespan"),
    )


def _plain(problem: Problem) -> Problem:
    """Return a problem without what asks for special features."""
    costs = problem.costs
    networks = tuple(
        replace(network, layer_us=tuple(tuple(us or 77 for us in row) for row in network.layer_us))
        for network in costs.networks
    )
    return replace(
        problem,
        platform=replace(problem.platform, memory_bytes=None),
        costs=replace(costs, networks=networks),
        data=replace(workload_of(problem), order=RequestOrder.FIXED),
        interference=None,
    )


def sample_workloads() -> Iterator[Problem]:
    """Yield two requests of two networks on two units, in the ways in which workloads can differ."""
    units = [
        {"name": "npu", "power_mw": 800, "idle_mw": 100},
        {"name": "cpu", "power_mw": 400, "idle_mw": 30},
    ]
    document = {
        "format": "gapless.problem",
        "version": 1,
        "platform": {"name": "board", "memory_bytes": 120, "units": units},
        "networks": [
            {"name": name, "layers": [{"name": f"l{i}", "weight_bytes": 20} for i in range(3)]}
            for name in "ab"
        ],
        "costs": {
            "units": ["npu", "cpu"],
            "networks": [
                {"network": "a", "layer_us": [[30, 61], [42, 25], [50, None]]},
                {"network": "b", "layer_us": [[20, 71], [33, 38], [64, 29]]},
            ],
        },
    }
    plain = parse_problem(json.dumps(document).encode(), name="workload")
    requests = tuple(Request(name=f"{name}0", network=name) for name in "ab")
    late = (requests[0], replace(requests[1], arrival_us=25, deadline_us=150))
    slowdown = Interference(
        units=("npu", "cpu"), slowdown_permille=((0, 150), (320, 0)), high_from_permille=1000
    )
    fixed = Workload(requests=requests, order=RequestOrder.FIXED)
    for workload, interference, objective in (
        (Workload(requests=requests), slowdown, "makespan,latency"),
        (Workload(requests=requests, task_slots=1), None, "idle"),
        (Workload(requests=requests, mode=Mode.STREAM), slowdown, "period,contention,displacement"),
        (Workload(requests=late, load_policy=LoadPolicy.RUNNING), slowdown, "bubbles,peak_memory"),
        (fixed, None, "makespan,work"),
        (replace(fixed, execution=Execution.COLUMNS), slowdown, "makespan,bubbles"),
        (Workload(requests=requests, execution=Execution.COLUMNS), None, "gapness,bottleneck"),
    ):
        problem = replace(plain, data=workload, interference=interference).with_objective(objective)
        if workload.load_policy is LoadPolicy.RUNNING:  # less than all weights: not everything runs at once
            problem = replace(problem, platform=replace(plain.platform, memory_bytes=90))
        yield problem


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
    """Return a random workload, equal for equal seeds, with the objective makespan.

    Synthetic: the networks have the sizes and the orders of magnitude that Hetero2Pipe prints for a phone
    (Table II and Figs. 1 and 2: SqueezeNet, BERT and ViT to the number, the others roughly), their layers
    are drawn. Nothing here was measured.

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

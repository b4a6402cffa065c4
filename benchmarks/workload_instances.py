"""Random workloads for benchmarks, equal for equal seeds: those that comparisons can draw, and tiny ones."""

from __future__ import annotations

import random

from gapless.formulations.costs import CostTable, Interference, NetworkContention, NetworkCosts
from gapless.formulations.deployment import Mode
from gapless.formulations.flow_shop.rules import keep_off
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective
from gapless.formulations.workload import Execution, LoadPolicy, Request, RequestOrder, Workload
from gapless.solvers.exhaustive import count_plans
from gapless.solvers.flow_shop.samples import UNITS, random_workload

__all__ = ["UNITS", "crowded_workload", "random_workload", "small_workload"]


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


def crowded_workload(seed: int) -> Problem:
    """Return a workload with at most some hundred plans in which company would take more than all speed.

    Three requests on three units, or four in a given order on four; each has a unit that suits it best.
    """
    rng = random.Random(f"crowded {seed}")
    names = UNITS[: rng.choice((3, 3, 3, 4))]
    most_us, fixed = rng.choice((9, 60, 2_000)), len(names) > 3 or rng.random() < 0.5
    networks = tuple(
        Network(name=name, layers=tuple(Layer(name=f"l{i}") for i in range(count)))
        for name in "abcd"[: len(names)]
        for count in (1 + (len(names) < 4 and rng.random() < 0.2),)
    )
    columns = rng.random() < 0.25
    return Problem(
        platform=Platform(name="small", units=tuple(ProcessingUnit(name=unit) for unit in names)),
        networks=networks,
        costs=CostTable(
            units=names,
            networks=tuple(
                NetworkCosts(
                    network=network.name,
                    layer_us=tuple(
                        tuple(
                            rng.randint(1, most_us) * (1 if unit == index % len(names) else 5)
                            for unit in range(len(names))
                        )
                        for _ in network.layers
                    ),
                )
                for index, network in enumerate(networks)
            ),
        ),
        objective=Objective.parse(rng.choice(("makespan", "makespan", "latency", "makespan,latency"))),
        data=Workload(
            requests=tuple(
                Request(
                    name=network.name,
                    network=network.name,
                    arrival_us=0 if columns else rng.choice((0, 0, most_us // 3)),
                )
                for network in networks
            ),
            order=RequestOrder.FIXED if fixed else RequestOrder.FREE,
            execution=Execution.COLUMNS if columns else Execution.ASYNCHRONOUS,
        ),
        interference=Interference(
            units=names,
            slowdown_permille=tuple(
                tuple(0 if u == v else rng.choice((300, 1_200, 2_500)) for v in names) for u in names
            ),
        ),
    )


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

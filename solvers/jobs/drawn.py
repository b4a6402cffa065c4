"""Random single requests, equal for equal seeds."""

from __future__ import annotations

import random

from ...formulations.costs import CostTable, NetworkCosts, Provenance
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.job_requests import JobRequest, Jobs
from ...formulations.network import Layer, Network
from ...formulations.objective import Objective
from ...formulations.problem import Problem

_NETWORKS, _MOST_LAYERS = 4, 4
_LAYER_US = (500, 20_000)
_SPEED_PERMILLE = (500, 2500)
_MISSING = 0.15
"""Share of layers that a unit beside the first cannot run."""


def random_jobs(requests: int, units: int, seed: int = 0) -> Problem:
    """Return requests of four networks of up to four layers, all there at once or a little later.

    `requests`, `units`: size; the first unit runs every layer, the others most of them.
    """
    rng = random.Random(f"jobs {requests} {units} {seed}")
    names = tuple(f"unit{number}" for number in range(units))
    speeds = [rng.randint(*_SPEED_PERMILLE) for _ in names]
    costs = tuple(_costs(f"net{number}", speeds, rng) for number in range(_NETWORKS))
    return Problem(
        platform=Platform(name="synthetic", units=tuple(ProcessingUnit(name=name) for name in names)),
        networks=tuple(
            Network(
                name=one.network,
                layers=tuple(Layer(name=f"l{index}") for index in range(len(one.layer_us))),
            )
            for one in costs
        ),
        costs=CostTable(units=names, networks=costs, provenance=Provenance(source="drawn", estimated=True)),
        objective=Objective(terms=("makespan",)),
        data=Jobs(
            requests=tuple(
                JobRequest(
                    name=f"r{number}",
                    network=rng.choice(costs).network,
                    release_us=rng.choice((0, rng.randint(*_LAYER_US))),
                )
                for number in range(requests)
            )
        ),
    )


def _costs(name: str, speeds: list[int], rng: random.Random) -> NetworkCosts:
    rows = []
    for _ in range(rng.randint(1, _MOST_LAYERS)):
        work = rng.randint(*_LAYER_US)
        times = [round(work * 1000 / speed * rng.uniform(0.7, 1.4)) + 1 for speed in speeds]
        rows.append((times[0], *(None if rng.random() < _MISSING else time for time in times[1:])))
    return NetworkCosts(network=name, layer_us=tuple(rows))

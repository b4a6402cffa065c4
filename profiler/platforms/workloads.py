"""Several networks on one of the shipped platforms: problems from texts such as "yolov4,bert,mobilenetv2x3".

Costs are computed on the three phones of Hetero2Pipe (see `phones`), which also have contention; there,
batches are possible. On the other platforms they are the measured ones, of layers that run on all units at
once.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache

from ...formulations.costs import CostTable, Interference
from ...formulations.errors import InvalidInputError
from ...formulations.files import INTERFERENCE, NETWORK
from ...formulations.hardware import UnitKind
from ...formulations.network import Network
from ...formulations.problem import Problem
from ...formulations.terms import Objective
from ...formulations.validation import meant, shown
from ...formulations.workload import LoadPolicy, Request, Workload, requests_of, split_batch
from ..analytic.costs import BatchTime, batched, network_costs, time_of
from ..analytic.model import ANALYTIC, AnalyticModel
from .catalog import (
    file_names,
    folders_with,
    network_names,
    platform_names,
    read_shipped,
    shipped_platform,
    shipped_problem,
)

FEWEST_REQUESTS, MOST_REQUESTS = 5, 10
"""Sizes of random workloads. Hetero2Pipe takes "100 random model combinations" and does not say how large."""

_NETWORKS, _MODEL = "phone-networks", "analytic.json"


def phone_names() -> tuple[str, ...]:
    """Return the names of the platforms whose costs are computed."""
    return tuple(sorted(folders_with(_MODEL)))


def phone_network_names() -> tuple[str, ...]:
    """Return the names of the networks that these platforms have costs of."""
    return file_names(_NETWORKS)


def phone_model(platform: str) -> AnalyticModel:
    """Return the model that the costs on a phone are computed by."""
    return read_shipped(f"{platform}/{_MODEL}", ANALYTIC)


def shipped_workload(platform: str, text: str) -> Problem:
    """Return the problem of serving requests on a shipped platform in the shortest makespan.

    `platform`: "kirin990", "snapdragon778g", "snapdragon870" (costs are computed), or a measured platform.
    `text`: the requests, as for `formulations.workload.requests_of`; batches ("mobilenetv2*4") on phones
    only.
    """
    if platform in phone_names():
        return _on_phone(platform, requests_of(text, phone_network_names(), batches=True))
    if platform in platform_names():
        return _measured(platform, requests_of(text, network_names(platform)))
    known = (*phone_names(), *platform_names())
    raise InvalidInputError(f"no shipped platform is called {shown(platform)}; {meant(platform, known)}")


def balanced(platform: str, text: str) -> str:
    """Return a workload on a phone in which every request takes about as long as the longest.

    Light networks are served in batches, because a chunk of a few milliseconds next to one of hundreds leaves
    a bubble (Hetero2Pipe, Appendix D). Times are those of whole networks on the big cores. Requests that are
    batches already stay as they are.
    """
    if platform not in phone_names():
        raise InvalidInputError(
            f"batches cannot be computed on {platform!r}; they can on {', '.join(phone_names())}"
        )
    requests = requests_of(text, phone_network_names(), batches=True)
    asked = [split_batch(request.network) for request in requests]
    times = _solo_times(platform, {network for network, _ in asked})
    longest_us = max(times[network].of(size) for network, size in asked)
    sizes = [size if size > 1 else times[network].batch_for(longest_us) for network, size in asked]
    names = (network for network, _ in asked)
    return ",".join(f"{name}*{size}" if size > 1 else name for name, size in zip(names, sizes, strict=True))


def random_workloads(platform: str, count: int, seed: int, *, balance: bool = False) -> tuple[str, ...]:
    """Return random combinations of the networks of a phone, for studies; the same ones for the same seed.

    `balance`: whether light networks are served in batches, see `balanced`.
    Returns texts for `shipped_workload`: 5 to 10 requests, each of any network.
    """
    generator, networks = random.Random(seed), phone_network_names()
    texts = (
        ",".join(generator.choices(networks, k=generator.randint(FEWEST_REQUESTS, MOST_REQUESTS)))
        for _ in range(count)
    )
    return tuple(balanced(platform, text) if balance else text for text in texts)


def _on_phone(platform: str, requests: tuple[Request, ...]) -> Problem:
    model = phone_model(platform)
    names = _networks_of(requests)
    asked = [(phone_network(name), size) for name, size in map(split_batch, names)]
    return Problem(
        platform=shipped_platform(platform),
        networks=tuple(batched(network, size) for network, size in asked),
        costs=CostTable(
            units=tuple(unit.unit for unit in model.units),
            networks=tuple(network_costs(network, model, batch=size) for network, size in asked),
            provenance=model.provenance,
        ),
        objective=_MAKESPAN,
        data=Workload(requests=requests, load_policy=LoadPolicy.RUNNING),
        interference=_interference(platform, names),
    )


def _measured(platform: str, requests: tuple[Request, ...]) -> Problem:
    parts = [shipped_problem(f"{platform}/{network}") for network in _networks_of(requests)]
    return Problem(
        platform=parts[0].platform,
        networks=tuple(part.network for part in parts),
        costs=CostTable(
            units=parts[0].costs.units,
            networks=tuple(costs for part in parts for costs in part.costs.networks),
            provenance=parts[0].costs.provenance,
        ),
        objective=_MAKESPAN,
        data=Workload(requests=requests),
    )


_MAKESPAN = Objective(terms=("makespan",))


def _networks_of(requests: Sequence[Request]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(request.network for request in requests))


def _interference(platform: str, networks: Sequence[str]) -> Interference:
    """Return the contention of networks on a phone; a batch is taken to press as one inference does."""
    shipped = read_shipped(f"{platform}/interference.json", INTERFERENCE)
    return replace(
        shipped,
        networks=tuple(replace(shipped.of(split_batch(name)[0]), network=name) for name in networks),
    )


def _solo_times(platform: str, networks: Collection[str]) -> dict[str, BatchTime]:
    """Return the time of each network on the big cores of a phone, by the size of the batch."""
    big = next(unit.name for unit in shipped_platform(platform).units if unit.kind is UnitKind.CPU)
    model = next(unit for unit in phone_model(platform).units if unit.unit == big)
    times = {network: time_of(phone_network(network), model) for network in networks}
    return {network: time for network, time in times.items() if time is not None}  # CPUs run everything


@cache
def phone_network(name: str) -> Network:
    """Return the description of one of these networks, one layer for what a runtime fuses."""
    return read_shipped(f"{_NETWORKS}/{name}.json", NETWORK)

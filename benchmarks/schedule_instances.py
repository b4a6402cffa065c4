"""Random small schedules for benchmarks, equal for equal seeds: whatever an instance can ask."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

from gapless.formulations.costs import (
    CostTable,
    Interference,
    NetworkContention,
    NetworkCosts,
    SliceContention,
)
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.jobs.tables import tables_of
from gapless.formulations.limits import Limits
from gapless.formulations.network import Layer, Network
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import Cuts, JobRequest, Jobs
from gapless.formulations.terms import Objective
from gapless.solvers.exhaustive import count_plans

_OBJECTIVES = (
    *("makespan",) * 3,
    "latency",
    "late,makespan",
    "lateness,latency",
    "work,makespan",
)


def small_schedule(seed: int, most: int = 2_000) -> Problem:
    """Return requests of up to four layers on two or three units, which have at most `most` plans."""
    draw = random.Random(f"schedule {seed}")
    while True:
        problem = _limited(_ruled(_drawn(draw), draw), draw)
        if 2 <= count_plans(problem) <= most:
            return problem


def any_schedule(seed: int, most: int = 2_000) -> Problem:
    """Return one of `small_schedule`; the slowdown of two thirds is by slice."""
    problem = small_schedule(seed, most)
    return sliced(problem, seed) if seed % 3 else problem


def sliced(problem: Problem, seed: int) -> Problem:
    """Return a problem whose networks have layers that differ in what they lose to others and take from them.

    A problem without slowdown stays as it is.
    """
    known, draw = problem.interference, random.Random(f"slices {seed}")
    if known is None:
        return problem
    layers = {network.name: len(network.layers) for network in problem.networks}
    networks = tuple(
        replace(
            known.of(name),
            slices=tuple(
                SliceContention(
                    start=start,
                    stop=stop,
                    intensity_permille=draw.choice((0, 400, 1000, 1800)),
                    sensitivity_permille=draw.choice((0, 600, 1000, 1500)),
                )
                for start, stop in pairwise((0, *(c for c in range(1, count) if draw.random() < 0.7), count))
            ),
        )
        for name, count in layers.items()
    )
    return replace(problem, interference=replace(known, networks=networks))


def _drawn(draw: random.Random) -> Problem:
    names = ("u0", "u1", "u2")[: draw.choice((2, 3, 3))]
    networks = tuple(_network(name, draw) for name in ("a", "b")[: draw.choice((1, 2, 2))])
    most_us = draw.choice((9, 60, 3_000))
    cores = ((0,), (0, 1), (2,)) if draw.random() < 0.15 else ((), (), ())
    return Problem(
        platform=Platform(
            name="small",
            units=tuple(
                ProcessingUnit(name=name, cores=own, memory_bytes=25 if draw.random() < 0.1 else None)
                for name, own in zip(names, cores, strict=False)
            ),
            memory_bytes=draw.randint(30, 120) if draw.random() < 0.2 else None,
        ),
        networks=networks,
        costs=CostTable(
            units=names,
            networks=tuple(_costs(each, len(names), most_us, draw) for each in networks),
        ),
        objective=Objective.parse(draw.choice(_OBJECTIVES)),
        limits=Limits(max_units=2) if draw.random() < 0.1 else Limits(),
        data=_jobs(networks, names, most_us, draw),
        interference=_interference(names, networks, draw),
    )


def _network(name: str, draw: random.Random) -> Network:
    count = draw.randint(1, 4)
    forbidden = (draw.randint(1, count - 1),) if count > 2 and draw.random() < 0.2 else ()
    layers = tuple(Layer(name=f"l{index}", weight_bytes=10) for index in range(count))
    return Network(name=name, layers=layers, forbidden_cuts=forbidden)


def _costs(network: Network, units: int, most_us: int, draw: random.Random) -> NetworkCosts:
    rows: list[tuple[int | None, ...]] = []
    for _ in network.layers:
        row = [None if draw.random() < 0.25 else draw.randint(1, most_us) for _ in range(units)]
        rows.append(tuple(row) if any(row) else (draw.randint(1, most_us), *row[1:]))
    copied = draw.random() < 0.5
    copies = tuple(
        tuple(draw.randint(0, most_us // 5) for _ in range(units)) for _ in range(len(rows) + 1) if copied
    )
    return NetworkCosts(network=network.name, layer_us=tuple(rows), transfer_in_us=copies)


def _jobs(networks: tuple[Network, ...], units: tuple[str, ...], most_us: int, draw: random.Random) -> Jobs:
    requests: list[JobRequest] = []
    for number in range(draw.choice((2, 3, 3, 4))):
        requests.append(
            JobRequest(
                name=f"r{number}",
                network=draw.choice(networks).name,
                release_us=draw.choice((0, 0, draw.randint(0, most_us))),
                deadline_us=draw.choice((None, draw.randint(1, 3 * most_us))),
                weight=draw.randint(1, 3),
                after=tuple(each.name for each in requests if draw.random() < 0.15),
            )
        )
    order = ",".join(draw.sample(units, len(units)))
    return Jobs(
        requests=tuple(requests),
        cuts=draw.choice((Cuts.ALL, Cuts.ALL, Cuts.SECTIONS)),
        passage=draw.choice(("any", "any", "once", "ordered", f"ordered:{order}")),
    )


def _interference(
    units: tuple[str, ...], networks: tuple[Network, ...], draw: random.Random
) -> Interference | None:
    if draw.random() < 0.15:
        return None
    choices = draw.choice(((0, 100, 300, 800), (0, 300, 1500, 4000)))
    return Interference(
        units=units,
        slowdown_permille=tuple(tuple(draw.choice(choices) if u != v else 0 for v in units) for u in units),
        networks=tuple(
            NetworkContention(
                network=network.name,
                intensity_permille=draw.choice((500, 1000, 1500)),
                sensitivity_permille=draw.choice((700, 1000, 1300)),
            )
            for network in networks
        ),
    )


def _limited(problem: Problem, draw: random.Random) -> Problem:
    if draw.random() < 0.6:
        return problem
    name = draw.choice(
        (
            *("max_makespan_us", "max_request_latency_us", "max_latency_us"),
            *("max_memory_bytes", "max_unit_memory_bytes"),
        )
    )
    horizon_us = tables_of(problem).horizon_us
    times, sizes = (horizon_us // 8, horizon_us // 2), (20, 100)
    return problem.with_limits(**{name: draw.randint(*(times if name.endswith("_us") else sizes))})


def _ruled(problem: Problem, draw: random.Random) -> Problem:
    if draw.random() < 0.6:
        return problem
    first, unit = problem.data.requests[0].name, problem.platform.unit_names[0]
    at_us = draw.randint(1, 60)
    return problem.with_rules(
        draw.choice(
            (
                lambda view: ~view.uses(first, unit),
                lambda view: view.chunks(first) <= 2,
                lambda view: view.start_us("r1") >= view.finish_us(first),
                lambda view: ~view.is_late(first),
                lambda view: view.load_us(unit) <= at_us,
                lambda view: view.latency_us("r1") <= view.makespan_us() - 1,
            )
        )
    )

"""Frames of requests on unequal units, drawn by seed: what the offline bound is measured on.

Like Band's EagleEye (people are detected on patches, faces on those, faces identified one by one) and
Distream (vehicles detected, each classified); means as in its footnote 3. Networks and units are made up:
each layer is of a kind, each unit cannot run some kinds, accelerators are faster on the rest and pay copies.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest, Jobs
from gapless.formulations.terms import Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A made-up unit: how many times as fast as a big core it is, which kinds it cannot run, copies."""

    name: str
    speed: float
    lacks: str = ""
    copy_us: int = 0


UNITS = (
    Unit(name="cpu", speed=1.0),
    Unit(name="gpu", speed=1.8, lacks="p", copy_us=350),
    Unit(name="dsp", speed=2.4, lacks="tr", copy_us=600),
    Unit(name="npu", speed=4.5, lacks="pt", copy_us=800),
    Unit(name="little", speed=0.45),
)

NETWORKS = {
    "detector": "ccccrcccp",
    "faces": "cccccccc",
    "identify": "ccccrrcc",
    "restore": "cctccct",
    "classify": "ccccp",
}
"""Kinds of the layers: convolution, resize, post-processing, transposed convolution."""

LAYER_US = {"c": 6000, "r": 2500, "p": 3000, "t": 7000}
SIZE = {"detector": 1.0, "faces": 1.6, "identify": 0.8, "restore": 1.1, "classify": 0.7}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Requests of a frame: how many on average, and after which step each of them comes."""

    network: str
    mean: float
    after: str = ""


WORKFLOWS = {
    "eagleeye": (
        Step(network="detector", mean=6.0),
        Step(network="faces", mean=1.5, after="detector"),
        Step(network="restore", mean=2.3, after="faces"),
        Step(network="identify", mean=5.2, after="faces"),
    ),
    "distream": (
        Step(network="detector", mean=5.0),
        Step(network="classify", mean=5.6, after="detector"),
        Step(network="identify", mean=0.7, after="detector"),
    ),
}


def platform_units(seed: int) -> tuple[Unit, ...]:
    """Return four or five units, by seed."""
    return UNITS[: 4 + seed % 2]


def _costs(network: str, units: tuple[Unit, ...], draw: random.Random) -> NetworkCosts:
    kinds, rows = NETWORKS[network], []
    for kind in kinds:
        base = LAYER_US[kind] * SIZE[network] * draw.uniform(0.6, 1.5)
        rows.append(
            tuple(
                None if kind in unit.lacks else max(1, round(base / unit.speed * draw.uniform(0.8, 1.25)))
                for unit in units
            )
        )
    copies = tuple(tuple(unit.copy_us for unit in units) for _ in range(len(kinds) + 1))
    return NetworkCosts(network=network, layer_us=tuple(rows), transfer_in_us=copies, transfer_out_us=copies)


def _requests(workflow: str, wanted: int, draw: random.Random) -> tuple[JobRequest, ...]:
    """Return exactly so many requests: each step gets its share, each follower one of those before."""
    steps = WORKFLOWS[workflow]
    while True:
        found: list[JobRequest] = []
        total = sum(step.mean for step in steps)
        for step in steps:
            share = wanted * step.mean / total
            count = int(share) + (draw.random() < share % 1)
            before = [request.name for request in found if request.network == step.after]
            if step.after and not before:
                continue
            found += [
                JobRequest(
                    name=f"{step.network}#{number}",
                    network=step.network,
                    after=(draw.choice(before),) if step.after else (),
                )
                for number in range(1, count + 1)
            ]
        if len(found) == wanted:
            return tuple(found)


def frame(seed: int, requests: int, workflow: str, *, objective: str = "makespan") -> Problem:
    """Return a frame with a given number of requests."""
    draw, units = random.Random(seed), platform_units(seed)
    asked = _requests(workflow, requests, draw)
    names = tuple(dict.fromkeys(request.network for request in asked))
    unit_names = tuple(unit.name for unit in units)
    return Problem(
        platform=Platform(name="made up", units=tuple(ProcessingUnit(name=name) for name in unit_names)),
        networks=tuple(
            Network(
                name=name,
                layers=tuple(
                    Layer(name=f"{kind}{index}", op_types=(kind,))
                    for index, kind in enumerate(NETWORKS[name])
                ),
            )
            for name in names
        ),
        costs=CostTable(units=unit_names, networks=tuple(_costs(name, units, draw) for name in names)),
        objective=Objective.parse(objective),
        data=Jobs(requests=asked),
    )


FRAMES = tuple(
    (seed, 6 + round(17 * seed / 19), "eagleeye" if seed % 2 == 0 else "distream") for seed in range(20)
)
"""Seed, number of requests (6 to 23) and workflow of each of the 20 frames."""

OBJECTIVES = ("makespan,latency", "late,lateness", "latency", "lateness", "work,makespan")


def drawn(seed: int) -> Problem:
    """Return two or three requests on three units, drawn, with releases, deadlines and waiting."""
    draw, names = random.Random(seed), ("u0", "u1", "u2")
    rows = {
        name: [
            (draw.randint(1, 9), *(draw.choice((None, draw.randint(1, 9))) for _ in names[1:]))
            for _ in range(draw.randint(1, 2))
        ]
        for name in ("a", "b")
    }
    asked: list[JobRequest] = []
    for index in range(draw.randint(2, 3)):
        asked.append(
            JobRequest(
                name=f"r{index}",
                network=draw.choice("ab"),
                release_us=draw.choice((0, draw.randint(0, 8))),
                deadline_us=draw.choice((None, draw.randint(1, 15))),
                weight=draw.randint(1, 3),
                after=tuple(before.name for before in asked if draw.random() < 0.25),
            )
        )
    return Problem(
        platform=Platform(name="drawn", units=tuple(ProcessingUnit(name=name) for name in names)),
        networks=tuple(
            Network(name=name, layers=tuple(Layer(name=f"l{index}") for index, _ in enumerate(own)))
            for name, own in rows.items()
        ),
        costs=CostTable(
            units=names,
            networks=tuple(NetworkCosts(network=name, layer_us=tuple(own)) for name, own in rows.items()),
        ),
        objective=Objective.parse(OBJECTIVES[seed % len(OBJECTIVES)]),
        data=Jobs(requests=tuple(asked)),
    )

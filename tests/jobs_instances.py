"""Small problems of single requests, drawn by seed."""

from __future__ import annotations

import random
from dataclasses import replace

from gapless.formulations.costs import CostTable, Interference, NetworkContention, NetworkCosts
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import Cuts, JobRequest, Jobs
from gapless.formulations.terms import Objective


def jobs_problem(
    tables: dict[str, list[list[int | None]]],
    requests: tuple[JobRequest, ...],
    *,
    objective: str = "makespan",
    cores: tuple[tuple[int, ...], ...] = (),
) -> Problem:
    """Return a problem from tables of microseconds by [layer][unit]; units are u0, u1, ..."""
    units = tuple(f"u{index}" for index in range(len(next(iter(tables.values()))[0])))
    return Problem(
        platform=Platform(
            name="board",
            units=tuple(
                ProcessingUnit(name=name, cores=cores[index] if cores else ())
                for index, name in enumerate(units)
            ),
        ),
        networks=tuple(
            Network(name=name, layers=tuple(Layer(name=f"l{i}", weight_bytes=10) for i in range(len(rows))))
            for name, rows in tables.items()
        ),
        costs=CostTable(
            units=units,
            networks=tuple(
                NetworkCosts(network=name, layer_us=tuple(map(tuple, rows))) for name, rows in tables.items()
            ),
        ),
        objective=Objective.parse(objective),
        data=Jobs(requests=requests),
    )


def drawn_jobs(seed: int, objective: str = "makespan", *, requests: int = 3, units: int = 3) -> Problem:
    """Return a few requests of two networks of one or two layers, with releases, deadlines and waiting."""
    draw = random.Random(seed)
    tables: dict[str, list[list[int | None]]] = {}
    for name in ("a", "b"):
        rows = []
        for _ in range(draw.randint(1, 2)):
            row = [None if draw.random() < 0.3 else draw.randint(1, 9) for _ in range(units)]
            rows.append(row if any(row) else [draw.randint(1, 9), *row[1:]])
        tables[name] = rows
    asked: list[JobRequest] = []
    for index in range(requests):
        asked.append(
            JobRequest(
                name=f"r{index}",
                network=draw.choice("ab"),
                release_us=draw.choice((0, 0, draw.randint(0, 8))),
                deadline_us=draw.choice((None, draw.randint(1, 15))),
                weight=draw.randint(1, 3),
                after=tuple(before.name for before in asked if draw.random() < 0.25),
            )
        )
    return jobs_problem(tables, tuple(asked), objective=objective)


def slowed(problem: Problem, seed: int, *, strong: bool = False) -> Problem:
    """Return a problem whose units slow each other down; `strong`: so much that the cap can be at work."""
    draw = random.Random(seed)
    units = range(len(problem.platform.units))
    choices = (0, 300, 1500, 4000) if strong else (0, 100, 300, 800)
    return replace(
        problem,
        interference=Interference(
            units=problem.platform.unit_names,
            slowdown_permille=tuple(
                tuple(draw.choice(choices) if u != v else 0 for v in units) for u in units
            ),
            networks=tuple(
                NetworkContention(
                    network=network.name,
                    intensity_permille=draw.choice((500, 1000, 1500)),
                    sensitivity_permille=draw.choice((700, 1000, 1300)),
                )
                for network in problem.networks
            ),
        ),
    )


def passing(problem: Problem, passage: str, *, cuts: Cuts = Cuts.ALL) -> Problem:
    """Return a problem whose requests pass the units as a passage says, by default cut anywhere."""
    return replace(problem, data=replace(problem.data, passage=passage, cuts=cuts))


def longer(problem: Problem, factor: int) -> Problem:
    """Return a problem whose layers take `factor` times as long, so that rounding matters less."""
    networks = tuple(
        replace(
            costs,
            layer_us=tuple(
                tuple(None if time is None else factor * time for time in row) for row in costs.layer_us
            ),
        )
        for costs in problem.costs.networks
    )
    return replace(problem, costs=replace(problem.costs, networks=networks))


def drawn_pair(seed: int) -> Problem:
    """Return two or three requests without releases on two or three units, with copies, gaps, and company.

    Up to three layers of two requests, two of three; up to 60 % of slowdown between any two.
    """
    draw = random.Random(f"pair {seed}")
    requests = 3 if draw.random() < 0.4 else 2
    units = draw.choice((2, 2, 3))
    most = {(2, 2): 3, (2, 3): 2, (3, 2): 2, (3, 3): 1}[requests, units]
    most_us = draw.choice((300, 30_000))
    tables: dict[str, list[list[int | None]]] = {}
    for name in "ab" if requests == 2 else "abc":
        rows = []
        for _ in range(draw.randint(1, most)):
            row = [None if draw.random() < 0.2 else draw.randint(1, most_us) for _ in range(units)]
            rows.append(row if any(row) else [draw.randint(1, most_us), *row[1:]])
        tables[name] = rows
    names = [draw.choice(list(tables)) for _ in range(requests)]
    problem = jobs_problem(tables, tuple(JobRequest(name=f"r{i}", network=n) for i, n in enumerate(names)))
    copied = most_us // draw.choice((4, 20))
    costs = tuple(
        NetworkCosts(
            network=name,
            layer_us=tuple(map(tuple, rows)),
            transfer_in_us=tuple(
                tuple(draw.randint(0, copied) for _ in range(units)) for _ in range(len(rows) + 1)
            ),
        )
        for name, rows in tables.items()
    )
    problem = replace(problem, costs=replace(problem.costs, networks=costs))
    company = Interference(
        units=problem.platform.unit_names,
        slowdown_permille=tuple(
            tuple(draw.choice((0, 100, 300, 600)) if u != v else 0 for v in range(units))
            for u in range(units)
        ),
    )
    return passing(replace(problem, interference=company), "any")

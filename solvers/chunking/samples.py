"""Small instances of one network on which every backend is compared with the oracle."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from enum import StrEnum

from ...formulations.chunking.rules import (
    at_most,
    busy_cap,
    cuts_only_after,
    forbid,
    memory_cap,
    needs,
    pin,
    together,
)
from ...formulations.chunking.view import PlanView
from ...formulations.costs import CostTable, NetworkCosts, Provenance
from ...formulations.expr import BoolExpr
from ...formulations.files import parse_problem
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Layer, Network
from ...formulations.problem import Problem
from ...formulations.rules import AnyRule, OpaqueRule, RuleFunction
from ..samples import Samples, golden_instances


def samples() -> Samples:
    """Return a plain instance with four plans, and one with all kinds of restrictions."""
    plain = {golden.name: golden for golden in golden_instances()}["each_to_its_best"].problem
    return Samples(
        plain=powered(plain).with_objective("period"),
        problems={"restricted": powered(sample_problem())},
        rules=sample_rules(),
        limits=(
            {"min_units": 3},
            {"max_units": 1},
            {"min_units": 2, "max_units": 2},
            {"min_units": 3, "max_units": 2},
            {"min_balance_permille": 700},
            {"max_gapness_us": 40},
            {"max_bubbles_us": 60},
            {"min_utilisation_permille": 550},
            {"max_period_us": 150},
            {"max_period_us": 20},
            {"max_latency_us": 190},
            {"max_stream_latency_us": 190},
            {"max_in_flight": 1},
            {"max_in_flight": 2, "min_units": 2},
            {"max_energy_nj": 170_000},
            {"max_energy_nj": 130_000, "min_units": 2},
        ),
        objectives=(
            "paper",
            "peak_memory,period",
            "latency,gapness",
            "slack:100",
            "energy,units",
            "units,energy",
            "in_flight,period",
            "period,stream_latency",
        ),
    )


def powered(problem: Problem) -> Problem:
    """Return a problem whose units have powers: each more than the one before it."""
    units = enumerate(problem.platform.units, start=1)
    powers = tuple(replace(unit, power_mw=500 * place, idle_mw=7 * place) for place, unit in units)
    return replace(problem, platform=replace(problem.platform, units=powers))


def sample_problem(objective: str = "period,gapness") -> Problem:
    """Return a small instance with all kinds of restrictions, for tests."""
    document = {
        "format": "gapless.problem",
        "version": 1,
        "platform": {
            "name": "board",
            "memory_bytes": 900,
            "units": [
                {"name": "little", "cores": [0, 1], "memory_bytes": 500},
                {"name": "big", "cores": [2, 3]},
                {"name": "all", "cores": [0, 1, 2, 3]},
                {"name": "gpu", "memory_bytes": 400},
            ],
        },
        "networks": [
            {
                "name": "net",
                "layers": [{"name": f"l{i}", "weight_bytes": 20 * i + 10} for i in range(7)],
                "tensors": [
                    {"name": f"t{i}", "bytes": 90 - 12 * i, "source": i - 1, "targets": [i]} for i in range(8)
                ],
                "forbidden_cuts": [3],
            }
        ],
        "costs": {
            "units": ["little", "big", "all", "gpu"],
            "networks": [
                {
                    "network": "net",
                    "layer_us": [
                        [90, 44, 33, 20],
                        [70, 31, 25, 35],
                        [120, 60, 41, None],
                        [33, 20, 15, 17],
                        [80, 45, 30, 9],
                        [None, 25, 20, 60],
                        [61, 30, 22, 14],
                    ],
                    "transfer_in_us": [[0, 0, 0, 3]] * 8,
                    "transfer_out_us": [[0, 0, 0, 2]] * 8,
                }
            ],
        },
    }
    problem = parse_problem(json.dumps(document).encode(), name="sample")
    return problem.with_objective(objective)


def gpu_needs_big(view: PlanView) -> BoolExpr:
    """Demand that a plan on the gpu also uses the big cores, as a user would write it."""
    return view.uses("gpu").implies(view.uses("big"))


def sample_rules() -> dict[str, tuple[RuleFunction | AnyRule, ...]]:
    """Return rules of every kind for `sample_problem`; the last ones contradict each other."""
    return {
        "pin": (pin("l1", unit="little"),),
        "forbid": (forbid("l4", unit="gpu"),),
        "together": (together("l0", "l3"),),
        "at_most": (at_most(2),),
        "implication": (gpu_needs_big,),
        "needs": (needs("big", "little"),),
        "busy_cap": (busy_cap("big", most_us=90),),
        "memory_cap": (memory_cap(760),),
        "cuts": (cuts_only_after("l1", "l4"),),
        "position": (lambda view: view.position("l6") >= 2,),
        "numbers": (lambda view: 2 * view.busy_us("gpu") + view.latency_us() <= 5 * view.period_us(),),
        "opaque": (OpaqueRule(name="odd", predicate=lambda plan: plan.chunks[0].stop % 2 == 1),),
        "contradiction": (pin("l4", unit="gpu"), forbid("l4", unit="gpu")),
    }


class Shape(StrEnum):
    """How the times of the layers are spread.

    MIXED
        Log-uniform over two decades; units differ in speed, and each layer has its own taste.
    PLATEAU
        The same with one layer that dominates: millions of plans share the least period.
    UNEVEN
        The same with units up to thirty times as fast as others: the fastest plans are out of balance,
        so a balance filter binds.
    """

    MIXED = "mixed"
    PLATEAU = "plateau"
    UNEVEN = "uneven"


def random_problem(layers: int, units: int, *, seed: int = 0, shape: Shape = Shape.MIXED) -> Problem:
    """Return a problem with the default objective (period, gapness)."""
    rng = random.Random(f"{layers} {units} {seed} {shape}")
    fastest = 30 if shape is Shape.UNEVEN else 6
    speeds = [fastest ** rng.random() for _ in range(units)]
    work_ms = [10 ** rng.uniform(-1, 1) for _ in range(layers)]
    if shape is Shape.PLATEAU:
        work_ms[rng.randrange(layers)] = sum(work_ms)
    names = tuple(f"unit{unit}" for unit in range(units))
    layer_us = tuple(
        tuple(max(1, round(1000 * (work * rng.uniform(0.6, 1.6) / speed * 2))) for speed in speeds)
        for work in work_ms
    )
    return Problem(
        platform=Platform(name="synthetic", units=tuple(ProcessingUnit(name=name) for name in names)),
        networks=(Network(name="random", layers=tuple(Layer(name=f"layer{i}") for i in range(layers))),),
        costs=CostTable(
            units=names,
            networks=(NetworkCosts(network="random", layer_us=layer_us),),
            provenance=Provenance(source="drawn", estimated=True),
        ),
    )

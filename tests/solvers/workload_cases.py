"""Random workloads with every feature and with rules of every kind, equal for equal seeds."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gapless.formulations.costs import CostTable, Interference, NetworkContention, NetworkCosts
from gapless.formulations.deployment import Mode
from gapless.formulations.expr import BoolExpr
from gapless.formulations.flow_shop.quantities import TERMS as WORKLOAD_TERMS
from gapless.formulations.flow_shop.rules import (
    before,
    deadline,
    keep_off,
    keep_on,
    memory_cap_while,
    never_beside,
)
from gapless.formulations.flow_shop.view import WorkloadView
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.problem import Problem
from gapless.formulations.rules import AnyRule, OpaqueRule, RuleFunction, named
from gapless.formulations.terms import Objective
from gapless.formulations.workload import Execution, LoadPolicy, Request, RequestOrder, Workload
from tests.powers import with_powers

UNITS = ("npu", "big", "gpu", "little")

Build = Callable[[WorkloadView], BoolExpr]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Most requests, layers and units of a random problem."""

    requests: int = 3
    layers: int = 3
    units: int = 3


def rule_kinds(scale: int) -> dict[str, RuleFunction | AnyRule]:
    """Return rules about two requests on the first units, one for each quantity.

    `scale` is a time or a number of bytes that is neither small nor large in the problem.
    """
    first, second, last = UNITS[0], UNITS[1], -1
    plain: dict[str, Build] = {
        "load": lambda v: v.load_us(first) <= scale,
        "late_start": lambda v: v.start_us("r1") >= scale // 3,
        "late_finish": lambda v: v.finish_us("r0") >= scale,
        "beside": lambda v: v.beside("r0", "r1"),
        "position": lambda v: v.position("r0") == 1,
        "cut": lambda v: v.cut_after("r0", 0) if len(v.layers("r0")) > 1 else v.uses("r0", first),
        "pinned": lambda v: v.on("r1", 0, second),
        "bubbles": lambda v: v.bubbles_us() <= scale,
        "chunks": lambda v: v.chunks("r0") >= 2,
        "gapness": lambda v: v.gapness_us() <= scale,
        "either": lambda v: (v.makespan_us() <= scale) | v.uses("r1", v.units[last]),
        "peak": lambda v: v.peak_bytes() <= scale + 40,
        "chunk": lambda v: v.chunk_us("r0", first) >= 3,
        "contention": lambda v: v.contention() <= 1,
        "displacement": lambda v: v.displacement() >= 2,
        "long_period": lambda v: v.period_us() >= scale // 2,
    }
    ready: dict[str, RuleFunction | AnyRule] = {
        "before": before("r1", "r0"),
        "never_beside": never_beside("r0", "r1"),
        "deadline": deadline("r0", most_us=scale),
        "memory_while": memory_cap_while("r0", most_bytes=scale + 20),
        "keep_off": keep_off("r0", unit=first),
        "keep_on": keep_on("r1", units=(first, second)),
        "opaque": OpaqueRule(name="odd", predicate=lambda p: sum(c.stop for c in p.chunks) % 2 == 1),
    }
    return {**ready, **{name: named(name, name, build) for name, build in plain.items()}}


def random_workload(seed: int, size: Size = Size()) -> Problem:
    """Return a small problem with a workload; about a third of them is infeasible."""
    return _Random(seed, size).problem()


class _Random:
    def __init__(self, seed: int, size: Size) -> None:
        self.rng = random.Random(seed)
        self.size = size
        self.units = UNITS[: size.units]
        self.large = self.rng.random() < 0.5
        self.columns = self.rng.random() < 0.25
        self.stream = self.rng.random() < 0.15

    def problem(self) -> Problem:
        networks = tuple(self.network(name) for name in ("a", "b"))
        problem = Problem(
            platform=self.platform(),
            networks=networks,
            costs=CostTable(units=self.units, networks=tuple(map(self.costs, networks))),
            objective=self.objective(),
            data=self.workload(),
            interference=self.interference() if self.rng.random() < 0.7 else None,
        )
        if self.rng.random() < 0.2:
            problem = problem.with_limits(**self.limit())
        if self.rng.random() < 0.5 and self.size.requests > 1:
            rules = list(rule_kinds(self.rng.randint(20, 60) * (20 if self.large else 1)).values())
            problem = problem.with_rules(*self.rng.sample(rules, self.rng.choice([1, 1, 2])))
        return problem

    def limit(self) -> dict[str, Any]:
        limits: list[dict[str, Any]] = [
            {"min_units": 2},
            {"max_units": 1},
            {"min_balance_permille": 300},
            {"max_gapness_us": 30},
            {"min_utilisation_permille": 300},
            {"max_period_us": 300},
        ]
        return self.rng.choice(limits)

    def platform(self) -> Platform:
        shared = self.rng.random() < 0.15
        drawn = Platform(
            name="board",
            units=tuple(
                ProcessingUnit(
                    name=name,
                    cores=(0,) if shared and index < 2 else (),
                    memory_bytes=self.rng.choice([None, None, None, 70]),
                )
                for index, name in enumerate(self.units)
            ),
            memory_bytes=self.rng.choice([None, None, 80, 120, 160]),
        )
        return with_powers(drawn)

    def network(self, name: str) -> Network:
        count = self.rng.randint(1, self.size.layers)
        return Network(
            name=name,
            layers=tuple(Layer(name=f"l{i}", weight_bytes=self.rng.randint(0, 20)) for i in range(count)),
            tensors=tuple(
                Tensor(
                    name=f"t{i}",
                    bytes=self.rng.randint(0, 20),
                    source=i - 1,
                    targets=(self.rng.randint(i, count),),
                )
                for i in range(count)
            ),
            forbidden_cuts=tuple(cut for cut in range(1, count) if self.rng.random() < 0.1),
        )

    def time_us(self) -> int | None:
        if self.rng.random() < 0.12:
            return None
        return self.rng.randint(10, 400) if self.large else self.rng.randint(1, 9)

    def costs(self, network: Network) -> NetworkCosts:
        rows = [[self.time_us() for _ in self.units] for _ in network.layers]
        return NetworkCosts(
            network=network.name,
            layer_us=tuple(tuple(row) if any(row) else (5, *row[1:]) for row in rows),
            transfer_in_us=self.transfers(len(rows)),
            transfer_out_us=self.transfers(len(rows)),
        )

    def transfers(self, layers: int) -> tuple[tuple[int, ...], ...]:
        if self.rng.random() < 0.5:
            return ()
        return tuple(tuple(self.rng.randint(0, 9) for _ in self.units) for _ in range(layers + 1))

    def workload(self) -> Workload:
        late, timed = not (self.columns or self.stream), not self.stream
        return Workload(
            requests=tuple(
                Request(
                    name=f"r{index}",
                    network=self.rng.choice("ab"),
                    arrival_us=self.rng.choice([0, 0, 5, 40]) if late else 0,
                    deadline_us=self.rng.choice([None, None, 60, 900]) if timed else None,
                )
                for index in range(self.size.requests)
            ),
            order=self.rng.choice(list(RequestOrder)),
            mode=Mode.STREAM if self.stream else Mode.BATCH,
            execution=Execution.COLUMNS if self.columns else Execution.ASYNCHRONOUS,
            load_policy=self.rng.choice(list(LoadPolicy)),
            task_slots=None if self.columns else self.rng.choice([None, None, None, 1, 2]),
        )

    def interference(self) -> Interference:
        rows = [[self.rng.choice([0, 100, 300, 700]) for _ in self.units] for _ in self.units]
        for unit, row in enumerate(rows):
            row[unit] = 0
        return Interference(
            units=self.units,
            slowdown_permille=tuple(map(tuple, rows)),
            networks=tuple(
                NetworkContention(
                    network=name,
                    intensity_permille=self.rng.choice([200, 1000, 2000]),
                    sensitivity_permille=self.rng.choice([500, 1000, 2000]),
                )
                for name in "ab"
            ),
            high_from_permille=1000,
        )

    def objective(self) -> Objective:
        terms = [self.rng.choice(sorted(WORKLOAD_TERMS)) for _ in range(self.rng.choice([1, 1, 2, 3]))]
        first = ["makespan"] if self.rng.random() < 0.4 else []
        return Objective(terms=tuple(dict.fromkeys([*first, *terms])))

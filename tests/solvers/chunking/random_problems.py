"""Random small problems that use every feature, drawn from a seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gapless.formulations.chunking.quantities import TERMS as CHAIN_TERMS
from gapless.formulations.chunking.rules import (
    apart,
    at_least,
    at_most,
    busy_cap,
    cuts_only_after,
    forbid,
    latency_cap,
    memory_cap,
    needs,
    pin,
    together,
)
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.limits import Limits
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule, RuleFunction
from gapless.formulations.terms import Objective
from tests.powers import with_powers


def random_problem(seed: int, *, layers: int, units: int) -> Problem:
    """Return a problem with a random choice of features, terms, limits and rules."""
    draw = np.random.default_rng(seed)
    most = int(draw.choice([3, 30, 1000]))
    names = tuple(f"u{unit}" for unit in range(units))
    problem = Problem(
        platform=with_powers(_platform(draw, names, layers)),
        networks=(_network(draw, layers),),
        costs=CostTable(units=names, networks=(_costs(draw, most, layers, units),)),
        objective=Objective(terms=_terms(draw)) if draw.random() < 0.6 else Objective(),
        limits=_limits(draw, most * layers, units) if draw.random() < 0.4 else Limits(),
    )
    return _with_rules(problem, draw, most)


def _platform(draw: np.random.Generator, names: tuple[str, ...], layers: int) -> Platform:
    return Platform(
        name="p",
        units=tuple(
            ProcessingUnit(
                name=name,
                cores=(int(draw.integers(0, 3)),) if draw.random() < 0.15 else (),
                memory_bytes=int(draw.integers(20, 40 + 20 * layers)) if draw.random() < 0.15 else None,
            )
            for name in names
        ),
        memory_bytes=int(draw.integers(40, 60 + 20 * layers)) if draw.random() < 0.2 else None,
    )


def _network(draw: np.random.Generator, layers: int) -> Network:
    return Network(
        name="n",
        layers=tuple(
            Layer(name=f"l{i}", weight_bytes=size)
            for i, size in enumerate(draw.integers(0, 20, layers).tolist())
        ),
        tensors=tuple(
            Tensor(name=f"t{i}", bytes=size, source=i - 1, targets=(int(draw.integers(i, layers + 1)),))
            for i, size in enumerate(draw.integers(0, 15, layers).tolist())
        ),
        forbidden_cuts=tuple(cut for cut in range(1, layers) if draw.random() < 0.1),
    )


def _costs(draw: np.random.Generator, most: int, layers: int, units: int) -> NetworkCosts:
    """Draw times; often with identical units, equal layers, one dominant layer, or gaps."""
    times = draw.integers(1, most + 1, (layers, units))
    if draw.random() < 0.2:
        times[:] = times[:, :1]
    if draw.random() < 0.2:
        times[:] = times[:1]
    if draw.random() < 0.2:
        times[layers // 2] = 10 * most * layers
    gaps = 0.12 if draw.random() < 0.3 else 0.0

    def copies() -> tuple[tuple[int, ...], ...]:
        rows = draw.integers(0, most // 2 + 1, (layers + 1, units)).tolist()
        return tuple(map(tuple, rows)) if draw.random() < 0.3 else ()

    return NetworkCosts(
        network="n",
        layer_us=tuple(tuple(None if draw.random() < gaps else t for t in row) for row in times.tolist()),
        transfer_in_us=copies(),
        transfer_out_us=copies(),
    )


def _terms(draw: np.random.Generator) -> tuple[str, ...]:
    terms = list(CHAIN_TERMS)
    order = draw.permutation(len(terms))[: draw.integers(1, 4)]
    return tuple(terms[index] for index in order)


def _limits(draw: np.random.Generator, most: int, units: int) -> Limits:
    choices = {
        "max_latency_us": [most // 2, most],
        "max_energy_nj": [400 * most, 1000 * most],
        "max_period_us": [most // 4, most // 2, most],
        "min_units": list(range(units + 2)),
        "min_balance_permille": [0, 300, 800, 1000],
        "max_gapness_us": [0, most // 8, most // 2],
        "min_utilisation_permille": [200, 500, 900],
        "max_stream_latency_us": [most // 2, most],
        "max_in_flight": [1, 2, 3],
    }
    names = draw.permutation(list(choices))[: draw.integers(1, 3)].tolist()
    return Limits(**{name: int(draw.choice(choices[name])) for name in names})


def _with_rules(problem: Problem, draw: np.random.Generator, most: int) -> Problem:
    layers, units = chain_of(problem).layer_count, problem.platform.unit_names
    i, j = (int(index) for index in draw.integers(0, layers, 2))
    u, v = (str(name) for name in draw.choice(units, 2))
    size = int(draw.integers(1, most * 3 + 1))
    rules: list[RuleFunction] = [
        pin(i, unit=u),
        forbid(i, unit=u),
        together(i, j),
        apart(i, j),
        at_most(int(draw.integers(1, len(units) + 1))),
        at_least(int(draw.integers(1, len(units) + 1))),
        needs(u, v),
        busy_cap(u, most_us=size),
        memory_cap(int(draw.integers(20, 150))),
        memory_cap(int(draw.integers(10, 90)), unit=u),
        latency_cap(most_us=size * layers),
        cuts_only_after(*{min(i, layers - 2), min(j, layers - 2)} if layers > 1 else ()),
        lambda view: view.busy_us(u) <= view.busy_us(v),
        lambda view: 4 * view.gapness_us() <= view.period_us() + size,
        lambda view: view.uses(u) | (view.bubbles_us() <= size) | (view.position(i) >= 2),
        lambda view: (view.in_flight() >= 3) | (view.stream_latency_us() <= size),
    ]
    for number, index in enumerate(draw.permutation(len(rules))[: int(draw.choice([0, 0, 1, 2]))].tolist()):
        rule = replace(problem, rules=()).with_rules(rules[index]).expression_rules[-1]
        problem = problem.with_rules(replace(rule, name=f"rule{number}"))
    if draw.random() < 0.15:
        even = OpaqueRule(name="even", predicate=lambda plan: sum(c.stop for c in plan.chunks) % 2 == 0)
        problem = problem.with_rules(even)
    return problem

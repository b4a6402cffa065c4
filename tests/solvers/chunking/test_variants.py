"""Units with one variant an engine: which of them is used costs no further states, and no plan is lost."""

from __future__ import annotations

import random

import pytest

from gapless.formulations.chunking.rules import avoid, busy_cap, forbid
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.demands import SHARED_CORES, demands_of
from gapless.formulations.hardware import EngineSettings, Platform, ProcessingUnit, UnitKind
from gapless.formulations.limits import Limits
from gapless.formulations.network import Layer, Network
from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction
from gapless.formulations.terms import Objective
from gapless.solvers.chunking.lattice import Lattice, group_units, resources_of
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve
from tests.solvers.agreement import native_agrees, third_party_agrees

ENGINES = ("mnn", "onnxruntime")
TERMS = ("period", "latency", "gapness", "idle", "units")


def variants(cores: int, *, together: bool) -> Platform:
    """Return cores, and all of them together, each with two engines."""
    sets: dict[str, tuple[int, ...]] = {f"core{core}": (core,) for core in range(cores)}
    if together:
        sets["all"] = tuple(range(cores))
    return Platform(
        name="board",
        units=tuple(
            ProcessingUnit(
                name=name if engine == ENGINES[0] else f"{name}@{engine}",
                kind=UnitKind.CPU,
                cores=held,
                engine=EngineSettings(name=engine),
            )
            for engine in ENGINES
            for name, held in sets.items()
        ),
    )


def drawn(seed: int) -> Problem:
    """Return a random problem of variants, sometimes with limits and rules that name one of them."""
    pick = random.Random(seed)
    platform = variants(pick.choice([1, 2, 2, 3]), together=pick.random() < 0.5)
    return problem_on(platform, pick, layers=pick.randint(2, 4), lacking=0.4)


def problem_on(platform: Platform, pick: random.Random, *, layers: int, lacking: float) -> Problem:
    """Return a problem in which each engine lacks some layers, on all its units."""
    names, count = platform.unit_names, len(platform.units)
    rows = []
    for _ in range(layers):
        lacks = {engine for engine in ENGINES if pick.random() < lacking}
        times = [pick.randint(1, 9) for _ in names]
        held = zip(platform.units, times, strict=True)
        rows.append(tuple(None if unit.engine.name in lacks else time for unit, time in held))
    copies = tuple(tuple(pick.randint(0, 2) for _ in range(count)) for _ in range(layers + 1))
    rules: list[RuleFunction] = []
    if pick.random() < 0.3:
        rules.append(avoid(pick.choice(names)))
    if pick.random() < 0.3:
        rules.append(forbid("l0", unit=pick.choice(names)))
    if pick.random() < 0.3:
        rules.append(busy_cap(pick.choice(names), most_us=pick.randint(4, 12)))
    least = pick.choice([None, None, 1, 2])
    return Problem(
        platform=platform,
        networks=(Network(name="net", layers=tuple(Layer(name=f"l{i}") for i in range(layers))),),
        costs=CostTable(
            units=names,
            networks=(NetworkCosts(network="net", layer_us=tuple(rows), transfer_in_us=copies),),
        ),
        objective=Objective(terms=tuple(pick.sample(TERMS, 2))),
        limits=Limits(min_units=least),
    ).with_rules(*rules)


@pytest.mark.parametrize("top", [1, 12])
def test_native_agrees_with_the_oracle(top: int) -> None:
    native_agrees(drawn, top)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "z3", "pulp"])
def test_third_parties_agree_with_native(backend: str) -> None:
    third_party_agrees(backend, drawn, 8)


def test_a_chunk_costs_what_its_one_engine_takes() -> None:
    """The sum of the faster engine of each layer, 2 + 2, is no chunk's cost: one engine runs both layers."""
    platform = variants(1, together=False)
    rows = ((2, 9), (9, 2))
    problem = Problem(
        platform=platform,
        networks=(Network(name="net", layers=(Layer(name="a"), Layer(name="b"))),),
        costs=CostTable(units=platform.unit_names, networks=(NetworkCosts(network="net", layer_us=rows),)),
    )
    best = solve(problem, "native").best
    assert best is not None
    assert best.score.value("period") == 11


def test_variants_are_one_resource() -> None:
    chain = chain_of(drawn(3))
    platform = variants(2, together=True)
    assert resources_of(platform.exclusive) == (0, 1, 2, 0, 1, 2)
    assert resources_of((frozenset(), frozenset())) == (0, 1)
    assert len(chain.exclusive) == chain.unit_count
    classes = group_units([0, 1, 2, 0, 1, 2], [1] * 6, 100, resources_of(platform.exclusive))
    lattice = Lattice(classes, platform.exclusive)
    assert lattice.size == 8  # each of three resources is used or not
    assert lattice.exact
    point = lattice.after[0, 0]
    assert lattice.after[0, 3] == point
    assert lattice.after[point, 3] == lattice.size
    assert lattice.used_high[3, point]
    assert not lattice.used_low[:, point].any()  # by which engine is not told


@pytest.mark.slow
def test_sixteen_variants_are_planned_to_the_end(counted_time: None) -> None:
    """Eight cores, each with two engines: as many sets of units as eight cores have, not 3 to the 8th."""
    pick = random.Random(5)
    problem = problem_on(variants(8, together=True), pick, layers=40, lacking=0.0).with_objective("period")
    found = solve(problem, "native", SolveOptions(top=10, time_limit_s=20.0))
    assert found.status is SolveStatus.OPTIMAL
    assert len(found.candidates) == 10


def test_variants_still_exclude_each_other_where_shared_cores_do_not() -> None:
    """What a plan could be if cores were not shared says nothing of one core with two engines at once."""
    platform = variants(2, together=True)
    problem = problem_on(platform, random.Random(1), layers=3, lacking=0.0)
    (demand,) = [one for one in demands_of(problem) if one.name == SHARED_CORES]
    assert demand.text.endswith("exclude each other: core0/all, core1/all")
    assert demand.without(problem).platform.conflicts == ((0, 3), (1, 4), (2, 5))
    alone = problem_on(variants(2, together=False), random.Random(1), layers=3, lacking=0.0)
    assert not [one for one in demands_of(alone) if one.name == SHARED_CORES]

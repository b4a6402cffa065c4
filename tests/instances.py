"""Random small problems with every feature, for property tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from hypothesis import strategies as st

from gapless.formulations.chunking.quantities import TERMS as CHAIN_TERMS
from gapless.formulations.chunking.rules import (
    apart,
    at_most,
    avoid,
    busy_cap,
    forbid,
    memory_cap,
    needs,
    pin,
    together,
)
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.judge import check
from gapless.formulations.limits import Limits
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.parts import narrowed
from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction
from gapless.formulations.terms import Objective
from gapless.formulations.workload import Workload
from gapless.solvers.exhaustive import all_plans
from tests.powers import with_powers

UNITS = ("a", "b", "c", "d")


@st.composite
def problems(draw: st.DrawFn, *, most_layers: int = 6, most_units: int = 4) -> Problem:
    """Draw a problem with at most 6 layers and 4 units; few distinct times, so that ties are common."""
    layers = draw(st.integers(1, most_layers))
    units = UNITS[: draw(st.integers(1, most_units))]
    time = st.one_of(st.integers(1, 9), st.integers(1, 9), st.integers(10, 400), st.none())
    rows = draw(st.lists(_row(time, len(units)), min_size=layers, max_size=layers))
    return Problem(
        platform=draw(_platforms(units)),
        networks=(draw(_networks(layers)),),
        costs=CostTable(
            units=units,
            networks=(NetworkCosts(network="net", layer_us=tuple(rows), **draw(_copies(layers, units))),),
        ),
        objective=draw(objectives()),
        limits=draw(_limits()),
    )


def _row(time: st.SearchStrategy[int | None], width: int) -> st.SearchStrategy[tuple[int | None, ...]]:
    return st.lists(time, min_size=width, max_size=width).map(tuple)


@st.composite
def _platforms(draw: st.DrawFn, names: tuple[str, ...]) -> Platform:
    built = []
    for name in names:
        cores = draw(st.sampled_from([(), (), (), (0,), (0, 1)]))
        memory = draw(st.sampled_from([None, None, None, 60, 120]))
        built.append(ProcessingUnit(name=name, cores=cores, memory_bytes=memory))
    memory = draw(st.sampled_from([None, None, 150, 250]))
    return with_powers(Platform(name="board", units=tuple(built), memory_bytes=memory))


@st.composite
def _networks(draw: st.DrawFn, count: int) -> Network:
    sizes = st.integers(0, 20)
    tensors = [
        Tensor(name=f"t{i}", bytes=draw(sizes), source=i - 1, targets=(draw(st.integers(i, count)),))
        for i in range(count)
        if draw(st.booleans())
    ]
    cuts = [cut for cut in range(1, count) if draw(st.integers(0, 5)) == 0]
    return Network(
        name="net",
        layers=tuple(Layer(name=f"l{i}", weight_bytes=draw(sizes)) for i in range(count)),
        tensors=tuple(tensors),
        forbidden_cuts=tuple(cuts),
    )


@st.composite
def _copies(draw: st.DrawFn, count: int, units: tuple[str, ...]) -> dict[str, tuple[tuple[int, ...], ...]]:
    if draw(st.integers(0, 2)):
        return {}
    row = st.lists(st.integers(0, 9), min_size=len(units), max_size=len(units)).map(tuple)
    rows = st.lists(row, min_size=count + 1, max_size=count + 1).map(tuple)
    return {"transfer_in_us": draw(rows), "transfer_out_us": draw(rows)}


def objectives() -> st.SearchStrategy[Objective]:
    """Draw a lexicographic objective of one to three terms."""
    terms = st.lists(st.sampled_from(sorted(CHAIN_TERMS)), min_size=1, max_size=3, unique=True)
    return terms.map(lambda chosen: Objective(terms=tuple(chosen)))


def _limits() -> st.SearchStrategy[Limits]:
    some = st.sampled_from(
        [
            {},
            {},
            {},
            {"min_units": 2},
            {"max_units": 2},
            {"min_units": 2, "max_units": 3},
            {"min_units": 3, "max_units": 2},
            {"min_balance_permille": 500},
            {"max_gapness_us": 12},
            {"min_utilisation_permille": 400},
            {"max_period_us": 40},
            {"max_latency_us": 70},
            {"max_energy_nj": 60_000},
            {"min_units": 2, "max_gapness_us": 60},
        ]
    )
    return some.map(lambda chosen: Limits(**chosen))


@st.composite
def ruled_problems(draw: st.DrawFn, *, most_layers: int = 6, most_units: int = 4) -> Problem:
    """Draw a problem with zero to three rules."""
    problem = draw(problems(most_layers=most_layers, most_units=most_units))
    units, last = problem.platform.unit_names, len(problem.network.layers) - 1
    layer, unit = st.integers(0, last), st.sampled_from(units)
    rule: st.SearchStrategy[RuleFunction] = st.one_of(
        st.builds(lambda i, u: pin(i, unit=u), layer, unit),
        st.builds(lambda i, u: forbid(i, unit=u), layer, unit),
        st.builds(together, layer, layer),
        st.builds(apart, layer, layer),
        st.builds(at_most, st.integers(1, 3)),
        st.builds(needs, unit, unit),
        st.builds(avoid, unit),
        st.builds(lambda u, most: busy_cap(u, most_us=most), unit, st.integers(0, 60)),
        st.builds(memory_cap, st.integers(10, 200)),
        st.just(lambda view: 3 * view.busy_us(units[0]) <= 2 * view.period_us()),
        st.just(lambda view: view.position(last) >= 1),
    )
    for index, function in enumerate(draw(st.lists(rule, max_size=3))):
        built = problem.with_rules(function).expression_rules[-1]
        problem = replace(problem, rules=(*problem.rules, replace(built, name=f"rule{index}")))
    return problem


@st.composite
def co_run_problems(draw: st.DrawFn, *, most_layers: int = 6, most_units: int = 4) -> Problem:
    """Draw a problem with rules whose costs depend on the number of used units, in both directions."""
    problem = draw(ruled_problems(most_layers=most_layers, most_units=most_units))
    return replace(problem, co_run_costs=draw(co_run_tables(problem)))


@st.composite
def co_run_tables(draw: st.DrawFn, problem: Problem) -> tuple[CostTable, ...]:
    """Draw tables for plans that use 2, 3, ... units: other times, and other copies or none."""
    (alone,), units = problem.costs.networks, problem.platform.unit_names
    factor = st.sampled_from([300, 700, 1000, 1000, 1500, 4000])

    def table() -> CostTable:
        rows = tuple(
            tuple(None if time is None else max(1, time * draw(factor) // 1000) for time in row)
            for row in alone.layer_us
        )
        copies = draw(_copies(len(rows), units))
        return replace(
            problem.costs, networks=(NetworkCosts(network=alone.network, layer_us=rows, **copies),)
        )

    return tuple(table() for _ in units[1:])


@st.composite
def set_problems(draw: st.DrawFn, *, most_layers: int = 5, most_units: int = 4) -> Problem:
    """Draw a problem with rules whose costs depend on which units are used, in both directions."""
    problem = draw(ruled_problems(most_layers=most_layers, most_units=most_units))
    names, conflicts = problem.platform.unit_names, set(problem.platform.conflicts)
    tables = []
    for size in range(2, len(names) + 1):
        for members in combinations(range(len(names)), size):
            if not conflicts.intersection(combinations(members, 2)):
                (table, *_) = draw(co_run_tables(problem))
                tables.append(narrowed(table, [names[unit] for unit in members]))
    return replace(problem, co_run_costs=tuple(tables) or None)


def solvable(problem: Problem) -> Problem:
    """Return the problem, eased as far as needed for it to have a valid plan.

    Random rules, limits, memory and absent times leave no plan in half of the problems. To filter these out
    would waste most examples, and hypothesis refuses to.
    """
    return next(eased for eased in _easings(problem) if any(not check(eased, p) for p in all_plans(eased)))


def _easings(problem: Problem) -> Iterator[Problem]:
    """Yield the problem, without its rules, without its limits too, and with nothing in the way of a plan."""
    yield problem
    problem = replace(problem, rules=())
    yield problem
    problem = replace(problem, limits=Limits())
    yield problem
    beside = problem.co_run_costs
    roomy = tuple(replace(unit, memory_bytes=None) for unit in problem.platform.units)
    problem = replace(
        problem,
        platform=replace(problem.platform, units=roomy, memory_bytes=None),
        costs=_complete(problem.costs),
        co_run_costs=None if beside is None else tuple(map(_complete, beside)),
    )
    if isinstance(problem.data, Workload):
        patient = tuple(replace(request, deadline_us=None) for request in workload_of(problem).requests)
        problem = replace(problem, data=replace(workload_of(problem), requests=patient))
    yield problem


def _complete(costs: CostTable) -> CostTable:
    """Return costs with a time where a unit could not run a layer."""
    return replace(
        costs,
        networks=tuple(
            replace(own, layer_us=tuple(tuple(7 if t is None else t for t in row) for row in own.layer_us))
            for own in costs.networks
        ),
    )

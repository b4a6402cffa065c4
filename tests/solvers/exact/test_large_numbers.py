"""Large numbers are right or refused by name, and exact searches of chains begin where `native` ends."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from benchmarks.schedule_instances import small_schedule
from gapless.formulations.costs import CostTable, NetworkCosts, Provenance
from gapless.formulations.errors import InvalidProblemError, UnsupportedFeatureError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network
from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction
from gapless.formulations.terms import Objective
from gapless.solvers.chunking.samples import random_problem, sample_problem
from gapless.solvers.flow_shop.samples import sample_workloads
from gapless.solvers.protocol import Backend, SolveOptions, SolveStatus
from gapless.solvers.session import solve
from gapless.solvers.sources import Source, StartMode

from ..agreement import in_one_child
from ..brute import problem_of

pytestmark = pytest.mark.slow

RULES: dict[str, RuleFunction] = {
    "factors": lambda view: (10**17 + 1) * view.busy_us("big") <= (10**17 + 3) * view.busy_us("gpu") + 10**19,
    "constant": lambda view: view.busy_us("big") <= 10**20,
    "a choice": lambda view: (
        ((10**18 + 1) * view.busy_us("big") + view.busy_us("gpu") <= 10**20) | view.uses("gpu")
    ),
}


def ruled(name: str) -> Problem:
    return sample_problem().with_rules(RULES[name])


@pytest.mark.parametrize("name", ["factors", "a choice"])
def test_cpsat_names_the_rule_and_its_bits(name: str) -> None:
    (rule,) = ruled(name).rules
    with pytest.raises(UnsupportedFeatureError, match=rf"{rule.name}.*64 bits"):
        solve(ruled(name), "cpsat")


@pytest.mark.parametrize("name", RULES)
def test_others_solve_it(name: str) -> None:
    right = solve(ruled(name), "exhaustive")
    for backend in ("native", "z3"):
        found = solve(ruled(name), backend)
        assert (found.status, found.values) == (right.status, right.values)


def bits_of(bits: int, *, memory_less: int | None = None, power: bool = False) -> Problem:
    """Return a chain whose times and weights have many bits; memory may lack some bytes of the weights."""
    rng, names = random.Random(f"{bits} 11"), ("a", "b", "c")  # CBC denies plans of this one
    layers = tuple(
        Layer(name=f"l{at}", weight_bytes=rng.randrange(2 ** (bits - 1), 2**bits)) for at in range(5)
    )
    times = tuple(tuple(rng.randrange(2 ** (bits - 1), 2**bits) for _ in names) for _ in layers)
    powers = [(rng.randrange(10**5, 10**7), rng.randrange(10**5)) if power else (None, None) for _ in names]
    memory = None if memory_less is None else sum(layer.weight_bytes for layer in layers) - memory_less
    return Problem(
        platform=Platform(
            name="p",
            units=tuple(
                ProcessingUnit(name=name, power_mw=most, idle_mw=least)
                for name, (most, least) in zip(names, powers, strict=True)
            ),
            memory_bytes=memory,
        ),
        networks=(Network(name="net", layers=layers),),
        costs=CostTable(
            units=names,
            networks=(NetworkCosts(network="net", layer_us=times),),
            provenance=Provenance(source="drawn", estimated=True),
        ),
    )


def tight(problem: Problem, scale: int, *, free: bool) -> Problem:
    """Return a problem with a rule of large factors that its best plan meets exactly."""
    best = solve(problem, "exhaustive").plan
    assert best is not None
    busy = dict.fromkeys(problem.platform.unit_names, 0)
    for chunk in best.chunks:
        rows = problem.costs.networks[0].layer_us[chunk.start : chunk.stop]
        busy[chunk.unit] = sum(row[problem.platform.unit_names.index(chunk.unit)] or 0 for row in rows)
    one, other = 1237 * scale + 1, 4567 * scale + 3
    most = one * busy["a"] - other * busy["b"]

    def rule(view: Any) -> Any:
        met = one * view.busy_us("a") - other * view.busy_us("b") <= most
        return met | ~view.uses("b") if free else met & view.uses("b")

    return problem.with_rules(rule)


LARGE: dict[str, Callable[[], Problem]] = {
    "times and weights of 41 bits": lambda: bits_of(41),
    "memory to the byte": lambda: bits_of(41, memory_less=0),
    "energy": lambda: bits_of(20, power=True).with_objective(Objective(terms=("energy", "period"))),
    "energy beyond 64 bits": lambda: bits_of(41, power=True).with_objective(Objective(terms=("energy",))),
    **{
        f"rule of 1e{digits}{' or none' * free}": partial(
            lambda scale, free: tight(bits_of(20), scale, free=free), 10**digits, free
        )
        for digits in (6, 12, 18)
        for free in (False, True)
    },
}


REFUSED = {
    "native": ("energy beyond 64 bits",),
    "cpsat": ("energy beyond 64 bits", "rule of 1e12", "rule of 1e18"),
}


@pytest.mark.parametrize("backend", ["native", "z3", "cpsat", "pulp", "pulp-cbc"])
def test_large_numbers_are_solved_or_refused_by_name(backend: str) -> None:
    def check(loose: Backend) -> None:
        for name, make in LARGE.items():
            problem = make()
            right = solve(problem, "exhaustive")
            for start in (StartMode.NATIVE, StartMode.NONE):
                how = SolveOptions(time_limit_s=60, start=start)
                if name.removesuffix(" or none") in REFUSED.get(backend, ()):
                    with pytest.raises(
                        (UnsupportedFeatureError, InvalidProblemError), match=r"64 bits|native takes at most"
                    ):
                        solve(problem, loose, how)
                    continue
                found = solve(problem, loose, how)
                assert (found.status, found.values) == (right.status, right.values), (name, start)

    in_one_child(backend, check)


@pytest.mark.parametrize("backend", ["pulp", "pulp-cbc"])
def test_what_lacks_a_byte_is_never_solved(backend: str) -> None:
    """Floats see no byte of 2**43: every plan that they find is refuted, and no proof comes from them."""
    problem = bits_of(41, memory_less=1)
    assert solve(problem, "exhaustive").status is SolveStatus.INFEASIBLE
    found = solve(problem, backend, SolveOptions(time_limit_s=2, start=StartMode.NONE))
    assert (found.status in (SolveStatus.INFEASIBLE, SolveStatus.NO_SOLUTION), found.plan) == (True, None)


def test_times_of_a_day_in_a_workload() -> None:
    """CBC called it infeasible, and HiGHS found nothing "in time", after 0.04 s."""
    problem = next(iter(sample_workloads()))
    rng, factor = random.Random(10), 10**10
    networks = tuple(
        replace(
            each,
            layer_us=tuple(
                tuple(None if time is None else time * factor + rng.randrange(factor) for time in row)
                for row in each.layer_us
            ),
        )
        for each in problem.costs.networks
    )
    problem = replace(problem, costs=replace(problem.costs, networks=networks))
    right = solve(problem, "exhaustive")
    for backend in ("native", "pulp-cbc"):
        found = solve(problem, backend, SolveOptions(time_limit_s=60, start=StartMode.NONE))
        assert (found.status, found.values) == (right.status, right.values)
    try:
        found = solve(problem, "pulp", SolveOptions(time_limit_s=60, start=StartMode.NONE))
    except UnsupportedFeatureError as error:  # as HiGHS 1.14 is
        assert re.match(r"the objective makespan.*HiGHS", str(error))  # noqa: PT017
    else:
        assert (found.status, found.values) == (right.status, right.values)


def test_chains_start_from_plan_and_bound_of_native() -> None:
    problem = random_problem(40, 8, seed=1)
    best = solve(problem, "native").objective
    for backend in ("cpsat", "z3", "pulp"):
        found = solve(problem, backend, SolveOptions(time_limit_s=2))
        assert (found.objective, found.bound) == (best, best)
        assert Source.START in (found.plan_source, found.bound_source)
    cold = solve(problem, "cpsat", SolveOptions(time_limit_s=1, start=StartMode.NONE))
    assert Source.START not in (cold.plan_source, cold.bound_source)


@pytest.mark.parametrize(
    ("objective", "rules"),
    [("period,gapness", ()), ("latency", (lambda view: view.gapness_us() <= 30,))],
)
def test_small_plans_among_large_times_are_found(objective: str, rules: tuple[RuleFunction, ...]) -> None:
    """HiGHS called 35 us an optimum where 20 exist, and denied a plan of 144 us: others took days."""
    day = 2**39
    rows: list[list[int | None]] = (
        [[5, 38, 31, 26], [50, 513981263706, 10, 50], [46, 52, 20, 42], [22, 57, 21, 32], [43, 49, 58, 39]]
        if rules
        else [[day if i * j % 3 else 1 + i + j for j in range(4)] for i in range(8)]
    )
    if rules:
        rows.append([399083735940, 24, 539622725765, 58])
    problem = problem_of(rows).with_objective(objective).with_rules(*rules)
    right = solve(problem, "exhaustive", SolveOptions(top=3))
    for start in (StartMode.NATIVE, StartMode.NONE):
        found = solve(problem, "pulp", SolveOptions(top=3, start=start))
        assert (found.status, found.values) == (right.status, right.values)
        assert [c.plan for c in found.candidates] == [c.plan for c in right.candidates]


def test_cbc_refuses_numbers_that_are_far_apart_by_name() -> None:
    """It called 6 the least gapness where the plan on "c" has 0, and so it is not asked."""
    far = 2**30
    rows: list[list[int | None]] = [
        [far - 7, 4, 54], [far, far - 9, 47], [13, 33, 39], [25, 42, far + 5], [59, 12, far - 3],
    ]  # fmt: skip
    with pytest.raises(UnsupportedFeatureError, match=r"far apart that CBC denies plans.*native, z3"):
        solve(problem_of(rows).with_objective("paper"), "pulp-cbc", SolveOptions(time_limit_s=60))


def test_numbers_that_are_far_apart_in_a_smaller_model_are_no_failure() -> None:
    """The first bound of schedules had ended as a failure of CBC that should be reported."""
    problem = small_schedule(8)
    (costs,) = problem.costs.networks
    rows = tuple((first and first + 2**29, *others) for first, *others in costs.layer_us)
    problem = replace(problem, costs=replace(problem.costs, networks=(replace(costs, layer_us=rows),)))
    with pytest.raises(UnsupportedFeatureError, match=r"far apart that CBC denies plans.*native, z3"):
        solve(problem, "pulp-cbc", SolveOptions(start=StartMode.NONE))

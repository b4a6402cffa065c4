"""Ready-made rules about pipelines: each means what it says, on every plan and in every exact backend."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import pytest

from gapless.formulations.chunking.rules import avoid, cuts_only_after, forbid, latency_cap, needs, pin
from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.judge import check
from gapless.formulations.pipelines.quantities import PipelineValues
from gapless.formulations.pipelines.rules import (
    begins,
    ends,
    energy_cap,
    least_pipelines,
    most_pipelines,
    never_sends,
    same_pipeline,
    separate,
    traffic_cap,
)
from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction
from gapless.solvers.exhaustive import all_plans
from tests.formulations.pipelines.test_judge import pair
from tests.pipeline_instances import drawn_problem
from tests.solvers.agreement import solved


def on(v: PipelineValues, layer: int) -> set[int]:
    return {d for pipe in v.pipes for i, j, d in pipe if i <= layer < j}


def sent(v: PipelineValues) -> set[tuple[int, int]]:
    return {(pipe[k][2], pipe[k + 1][2]) for pipe in v.pipes for k in range(len(pipe) - 1)}


def groups(v: PipelineValues) -> list[set[int]]:
    return [{d for *_, d in pipe} for pipe in v.pipes]


def instance() -> Problem:
    """Return three devices that can all run all of four layers, with powers and all links."""
    found = (drawn_problem(seed, layers=4, devices=3) for seed in range(2000))
    return next(
        problem
        for problem in found
        if problem.data.power_mw
        and problem.data.most is None
        and None not in [time for row in problem.costs.networks[0].layer_us for time in row]
        and not any(unit.memory_bytes for unit in problem.platform.units)
        and problem.data.links
        and all(times[0] is not None for row in problem.tables.link_us for times in row)
        and not problem.network.forbidden_cuts
    )


PROBLEM = instance()
PLANS = list(all_plans(PROBLEM))
NUMBERS = [PROBLEM.formulation.numbers(PROBLEM, PROBLEM.formulation.code(PROBLEM, plan)) for plan in PLANS]
LATENCY_US, ENERGY_NJ = (
    int(median(values.term(name) for values in NUMBERS)) for name in ("latency", "energy")
)

Meaning = tuple[RuleFunction, Callable[[PipelineValues], bool]]
MEANINGS: list[Meaning] = [
    (most_pipelines(1), lambda v: len(v.pipes) <= 1),
    (least_pipelines(2), lambda v: len(v.pipes) >= 2),
    (same_pipeline("d2", "d0"), lambda v: any({0, 2} <= group for group in groups(v))),
    (separate("d0", "d1"), lambda v: not any({0, 1} <= group for group in groups(v))),
    (never_sends("d1", "d2"), lambda v: (1, 2) not in sent(v)),
    (begins("d1"), lambda v: 1 not in v.place or 1 in on(v, 0)),
    (ends("d0"), lambda v: 0 not in v.place or 0 in on(v, 3)),
    (traffic_cap(most_bytes=12), lambda v: v.traffic_bytes <= 12),
    (energy_cap(most_nj=ENERGY_NJ), lambda v: v.energy_nj <= ENERGY_NJ),
    (pin("l1", unit="d1"), lambda v: 1 in on(v, 1)),
    (forbid("l0", unit="d2"), lambda v: 2 not in on(v, 0)),
    (avoid("d0"), lambda v: 0 not in v.place),
    (needs("d0", "d2"), lambda v: 0 not in v.place or 2 in v.place),
    (latency_cap(most_us=LATENCY_US), lambda v: v.latency_us <= LATENCY_US),
    (cuts_only_after("l1"), lambda v: {j for pipe in v.pipes for _, j, _ in pipe} <= {2, 4}),
]


@pytest.mark.parametrize(("rule", "meaning"), MEANINGS, ids=lambda x: getattr(x, "__name__", ""))
def test_a_rule_means_what_it_says(rule: RuleFunction, meaning: Callable[[PipelineValues], bool]) -> None:
    ruled = PROBLEM.with_rules(rule)
    kept = 0
    for plan, values in zip(PLANS, NUMBERS, strict=True):
        assert isinstance(values, PipelineValues)
        assert (check(ruled, plan) == ()) == meaning(values), str(plan)
        kept += meaning(values)
    assert 0 < kept < len(PLANS)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "pulp", "z3"])
def test_exact_backends_keep_each(backend: str) -> None:
    ruled = [PROBLEM.with_rules(rule) for rule, _ in MEANINGS]
    known = solved(ruled, "exhaustive")
    for problem, found, right in zip(ruled, solved(ruled, backend), known, strict=True):
        assert found.values == right.values, problem.rules[0].name


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(InvalidProblemError, match="no device 'x'"):
        pair().with_rules(begins("x"))
    with pytest.raises(InvalidProblemError, match="'a' is given twice"):
        pair().with_rules(separate("a", "a"))
    with pytest.raises(InvalidProblemError, match="no chunk follows the last layer"):
        pair().with_rules(lambda view: view.cut_after("l2"))

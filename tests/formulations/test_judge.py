"""The judge: golden instances, the canonical order, and identities of plans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.api.problems import table_problem
from gapless.formulations.chunking.space import all_parts
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.judge import check, rank_key, score
from gapless.formulations.plan import Chunk, Plan
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.samples import Golden, golden_instances

GOLDEN = list(golden_instances())
BROKEN = [
    pytest.param(golden, rule, plan, id=f"{golden.name}-{rule}-{index}")
    for golden in GOLDEN
    for index, (rule, plan) in enumerate(golden.invalid)
]


@pytest.mark.parametrize(("golden", "rule", "plan"), BROKEN)
def test_an_invalid_plan_breaks_what_it_should(golden: Golden, rule: str, plan: Plan) -> None:
    assert rule in {violation.rule for violation in check(golden.problem, plan)}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden.name)
def test_the_optimum_is_scored_as_worked_out_by_hand(golden: Golden) -> None:
    if golden.best is not None:
        judged = score(golden.problem, golden.best)
        assert judged.valid
        assert judged.values(golden.problem.objective.terms) == golden.optimum


def plan(*parts: tuple[int, int, str]) -> Plan:
    return Plan(chunks=tuple(Chunk(network="net", start=a, stop=b, unit=u) for a, b, u in parts))


def test_the_canonical_order_is_total() -> None:
    problem = table_problem([[2, 2], [2, 2], [2, 2]], ["a", "b"], network="net")
    keys = []
    for parts in all_parts(chain_of(problem)):
        made = chain_of(problem).plan(parts)
        keys.append(rank_key(problem, score(problem, made)))
    assert len(set(keys)) == len(keys)


def test_plans_are_equal_when_their_chunks_are() -> None:
    one, two = plan((0, 1, "a"), (1, 2, "b")), plan((1, 2, "b"), (0, 1, "a"))
    assert one == two
    assert one.plan_id == two.plan_id
    assert one.plan_id != plan((0, 2, "a")).plan_id


def test_a_plan_is_never_empty() -> None:
    with pytest.raises(InvalidPlanError, match="written as None"):
        Plan(chunks=())
    with pytest.raises(InvalidPlanError, match="empty"):
        Chunk(network="net", start=2, stop=2, unit="a")


def test_the_fingerprint_sees_every_change() -> None:
    problem = sample_problem()
    changed = [
        problem.with_objective("period"),
        problem.with_limits(min_units=2),
        problem.with_rules(lambda view: view.uses("gpu")),
        replace(problem, platform=replace(problem.platform, memory_bytes=901)),
    ]
    assert len({p.fingerprint for p in (problem, *changed)}) == 5
    assert sample_problem().fingerprint == problem.fingerprint

"""What a plan is worth whose units have several chunks."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gapless
from gapless.formulations.chain import Chain
from gapless.formulations.chunking.space import all_parts
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import InvalidInputError, MalformedPlanError
from gapless.formulations.judge import score
from gapless.formulations.passage.formulation import count_parts
from gapless.formulations.passage.quantities import PassageValues
from gapless.formulations.passages import Passage
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.weights import Weights
from tests.solvers.brute import random_problem

PROBLEM = gapless.with_passage(
    gapless.table_problem(
        {"a": [1.0, 9.0], "b": [9.0, 2.0], "c": [1.5, 9.0], "d": [9.0, 1.0]}, ["npu", "cpu"]
    )
)


def plan(*parts: tuple[int, int, str]) -> Plan:
    name = PROBLEM.network.name
    return Plan(chunks=tuple(Chunk(network=name, start=a, stop=b, unit=unit) for a, b, unit in parts))


def test_loads_are_sums_over_the_chunks_of_a_unit() -> None:
    judged = score(PROBLEM, plan((0, 1, "npu"), (1, 2, "cpu"), (2, 3, "npu"), (3, 4, "cpu")))
    assert judged.valid
    assert judged.busy_us == (2500, 3000)
    assert (judged.period_us, judged.latency_us, judged.hops) == (3000, 5500, 3)
    assert (judged.gapness_us, judged.bubbles_us, judged.units) == (500, 500, 2)


def test_each_visit_pays_its_copies() -> None:
    network = PROBLEM.costs.networks[0]
    copies = replace(network, transfer_in_us=((7, 70),) * 5, transfer_out_us=((1, 10),) * 5)
    problem = PROBLEM.with_costs(replace(PROBLEM.costs, networks=(copies,)))
    judged = score(problem, plan((0, 1, "npu"), (1, 2, "cpu"), (2, 3, "npu"), (3, 4, "cpu")))
    assert judged.busy_us == (2500 + 2 * 8, 3000 + 2 * 80)


def test_neighbours_on_one_unit_are_one_chunk() -> None:
    with pytest.raises(MalformedPlanError, match="goes on where the chunk before it ends"):
        score(PROBLEM, plan((0, 1, "npu"), (1, 2, "npu"), (2, 4, "cpu")))


def test_a_second_chunk_is_malformed_without_the_passage() -> None:
    with pytest.raises(MalformedPlanError, match="second chunk on that unit"):
        score(gapless.with_passage(PROBLEM, "once"), plan((0, 1, "npu"), (1, 2, "cpu"), (2, 4, "npu")))


def chain(**changes: object) -> Chain:
    return replace(chain_of(PROBLEM), **changes)  # type: ignore[arg-type]


def test_shared_weights_count_once_per_unit_and_live_tensors_for_each_session() -> None:
    tables = chain(weights=Weights((0, 1, 11, 111, 1111), ((5000, (0, 2)),)), working_bytes=(30, 40, 50, 60))
    found = PassageValues(tables, ((0, 1, 0), (1, 2, 1), (2, 3, 0), (3, 4, 1)))
    assert found.memory_bytes == {0: 1 + 100 + 5000 + 30 + 50, 1: 10 + 1000 + 40 + 60}
    assert found.peak_bytes == sum(found.memory_bytes.values())


def test_a_unit_too_small_for_all_its_chunks_is_a_violation_once() -> None:
    small = replace(
        PROBLEM.platform, units=tuple(replace(unit, memory_bytes=1) for unit in PROBLEM.platform.units)
    )
    heavy = replace(
        PROBLEM.network, layers=tuple(replace(layer, weight_bytes=1) for layer in PROBLEM.network.layers)
    )
    problem = replace(PROBLEM, platform=small, networks=(heavy,))
    judged = score(problem, plan((0, 1, "npu"), (1, 2, "cpu"), (2, 3, "npu"), (3, 4, "cpu")))
    assert [violation.rule for violation in judged.violations] == ["unit_memory", "unit_memory"]


@pytest.mark.parametrize("seed", range(6))
def test_the_space_is_counted_exactly(seed: int) -> None:
    tables = chain_of(random_problem(seed, features="nu", layers=5, units=3))
    plans = list(all_parts(tables, once=False))
    assert len(set(plans)) == len(plans) == count_parts(tables)


def test_a_passage_is_any_or_once() -> None:
    with pytest.raises(InvalidInputError, match="passage is 'twice'"):
        gapless.with_passage(PROBLEM, "twice")
    assert gapless.with_passage(PROBLEM, "any") == PROBLEM
    assert gapless.with_passage(PROBLEM, "once").data is None


def test_rules_and_limits_stay_with_the_passage() -> None:
    once = gapless.with_passage(PROBLEM, "once").with_rules(gapless.rules.busy_cap("npu", most_us=2400))
    both = gapless.with_passage(once.with_limits(max_hops=2))
    assert both.data == Passage()
    judged = score(both, plan((0, 1, "npu"), (1, 2, "cpu"), (2, 3, "npu"), (3, 4, "cpu")))
    assert {v.rule for v in judged.violations} == {"max_hops", "busy_cap(npu, 2400)"}

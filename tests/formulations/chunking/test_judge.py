"""The judge on plans of one network: scores in exact integers, and what is malformed."""

from __future__ import annotations

import pickle

import pytest

from gapless.api.problems import table_problem
from gapless.formulations.chunking.space import all_parts
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import InvalidPlanError, MalformedPlanError
from gapless.formulations.judge import check, score
from gapless.formulations.plan import Chunk, Plan
from gapless.solvers.chunking.samples import sample_problem


def plan(*parts: tuple[int, int, str]) -> Plan:
    return Plan(chunks=tuple(Chunk(network="net", start=a, stop=b, unit=u) for a, b, u in parts))


def test_every_number_of_a_score() -> None:
    problem = sample_problem()
    judged = score(problem, plan((0, 2, "little"), (2, 4, "big"), (4, 7, "gpu")))
    # little: 90 + 70; big: 60 + 20; gpu: 9 + 60 + 14 and copies of 3 + 2 at its two boundaries
    assert judged.busy_us == (160, 80, None, 88)
    assert judged.period_us == 160
    assert judged.latency_us == 328
    assert judged.gapness_us == judged.paper_gapness_us == 80
    assert judged.bubble_us == (0, 80, None, 72)
    assert judged.bubbles_us == 152
    assert judged.idle_permille == 488  # 312 of 640 microseconds, rounded up
    assert judged.utilisation_permille == 512
    # weights 10+30, 50+70, 90+110+130; live tensors 90+78, 66+54, 42+30
    assert judged.memory_bytes == (208, 240, None, 402)
    assert judged.peak_bytes == 850
    assert {v.rule for v in judged.violations} == {"unit_memory"}
    assert judged.throughput == 1e6 / 160


def test_a_plan_on_one_unit_is_not_balanced() -> None:
    problem = table_problem([[5, 6]], ["a", "b"], network="net")
    judged = score(problem, plan((0, 1, "a")))
    assert (judged.gapness_us, judged.paper_gapness_us) == (5000, 0)
    alone = table_problem([[5]], ["a"], network="net")
    assert score(alone, plan((0, 1, "a"))).gapness_us == 0
    balanced = problem.with_limits(min_balance_permille=1)
    assert [v.rule for v in check(balanced, plan((0, 1, "a")))] == ["min_balance_permille"]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (((0, 1, "a"), (2, 3, "b")), "layers 1 to 1 are not covered"),
        (((0, 2, "a"), (1, 3, "b")), "covered twice"),
        (((1, 3, "a"),), "layers 0 to 0 are not covered"),
        (((0, 2, "a"),), "layers 2 to 2 are not covered"),
        (((0, 4, "a"),), "only 3 layers"),
        (((0, 3, "z"),), "no such unit"),
        (((0, 1, "a"), (1, 2, "b"), (2, 3, "a")), "second chunk"),
    ],
)
def test_malformed_plans_have_no_score(parts: tuple[tuple[int, int, str], ...], words: str) -> None:
    problem = table_problem([[1, 2], [3, 4], [5, 6]], ["a", "b"], network="net")
    with pytest.raises(InvalidPlanError, match=words):
        score(problem, plan(*parts))
    assert check(problem, plan(*parts)) != ()


def test_the_error_says_everything_that_is_malformed_on_other_processes_too() -> None:
    problem = table_problem([[1, 2], [3, None], [5, 6]], ["a", "b"], network="net")
    with pytest.raises(MalformedPlanError) as caught:
        score(problem, plan((0, 1, "a"), (1, 2, "b")))
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert [violation.rule for violation in error.violations] == ["support", "coverage"]
        assert error.problems[1] == "coverage: layers 2 to 2 are not covered"
        assert "0-0 a | 1-1 b" in str(error)


def test_renaming_units_changes_no_score() -> None:
    problem = table_problem([[1, 2], [3, 4], [5, 6]], ["a", "b"], network="net")
    renamed = table_problem([[1, 2], [3, 4], [5, 6]], ["x", "y"], network="net")
    for parts in all_parts(chain_of(problem)):
        ours, theirs = (score(p, chain_of(p).plan(parts)) for p in (problem, renamed))
        assert ours == theirs


def test_scaling_the_costs_scales_the_score() -> None:
    problem = table_problem([[1, 2], [3, 4], [5, 6]], ["a", "b"], network="net")
    tenfold = table_problem([[10, 20], [30, 40], [50, 60]], ["a", "b"], network="net")
    for parts in all_parts(chain_of(problem)):
        small, large = (score(p, chain_of(p).plan(parts)) for p in (problem, tenfold))
        for term in ("period", "gapness", "latency", "bubbles"):
            assert large.value(term) == 10 * small.value(term)
        assert large.idle_permille == small.idle_permille

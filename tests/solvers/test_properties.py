"""Properties that theory gives: exact backends against the oracle, and against themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless.api.problems import table_problem
from gapless.formulations.chunking.rules import forbid
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.hardware import Platform
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.registry import get_backend
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve
from tests.instances import problems, ruled_problems

QUICK = settings(max_examples=50, suppress_health_check=list(HealthCheck))
SLOW = settings(max_examples=12, suppress_health_check=list(HealthCheck))


def best(problem: Problem, backend: str = "native", top: int = 5) -> SolveResult:
    return solve(problem, backend, SolveOptions(top=top), explain=False)


def same(one: SolveResult, other: SolveResult) -> bool:
    return (
        one.status is other.status
        and one.candidates == other.candidates
        and one.proven == other.proven
        and one.bound == other.bound
    )


@pytest.mark.slow
@QUICK
@given(ruled_problems())
def test_native_equals_the_oracle(problem: Problem) -> None:
    assert same(best(problem), best(problem, "exhaustive"))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "z3", "pulp"])
@SLOW
@given(problem=ruled_problems())
def test_the_other_exact_backends_equal_the_oracle(backend: str, problem: Problem) -> None:
    if not get_backend(backend).availability().ok:
        pytest.skip(f"{backend} is not installed")
    assert same(best(problem, backend, top=3), best(problem, "exhaustive", top=3))


@pytest.mark.slow
@SLOW
@given(
    rows=st.lists(st.lists(st.integers(1, 40), min_size=3, max_size=3), min_size=1, max_size=5),
    objective=st.sampled_from(["paper", "period", "gapness"]),
)
def test_the_papers_encoding_equals_the_oracle(rows: list[list[int]], objective: str) -> None:
    if not get_backend("z3-paper").availability().ok:
        pytest.skip("z3 is not installed")
    problem = table_problem(rows, ["a", "b", "c"], objective=objective)
    assert same(best(problem, "z3-paper"), best(problem, "exhaustive"))


@pytest.mark.slow
@QUICK
@given(problems())
def test_forbidding_something_never_improves_the_optimum(problem: Problem) -> None:
    free = best(problem)
    ruled = best(problem.with_rules(forbid(0, unit=problem.platform.unit_names[0])))
    if ruled.values is not None:
        assert free.values is not None
        assert free.values <= ruled.values
    if free.status is SolveStatus.INFEASIBLE:
        assert ruled.status is SolveStatus.INFEASIBLE


@pytest.mark.slow
@QUICK
@given(problems())
def test_renaming_units_changes_nothing(problem: Problem) -> None:
    names = {unit.name: f"unit {unit.name}" for unit in problem.platform.units}
    renamed = replace(
        problem,
        platform=Platform(
            name="board",
            units=tuple(replace(u, name=names[u.name]) for u in problem.platform.units),
            memory_bytes=problem.platform.memory_bytes,
        ),
        costs=replace(problem.costs, units=tuple(names.values())),
    )
    ours, theirs = best(problem), best(renamed)
    assert [c.score for c in ours.candidates] == [c.score for c in theirs.candidates]
    assert [chain_of(problem).parts(c.plan) for c in ours.candidates] == [
        chain_of(renamed).parts(c.plan) for c in theirs.candidates
    ]


@pytest.mark.slow
@QUICK
@given(problems())
def test_reversing_the_units_keeps_the_optimum(problem: Problem) -> None:
    backwards = replace(
        problem,
        platform=replace(problem.platform, units=problem.platform.units[::-1]),
        costs=replace(
            problem.costs,
            units=problem.costs.units[::-1],
            networks=tuple(
                replace(
                    costs,
                    layer_us=tuple(row[::-1] for row in costs.layer_us),
                    transfer_in_us=tuple(row[::-1] for row in costs.transfer_in_us),
                    transfer_out_us=tuple(row[::-1] for row in costs.transfer_out_us),
                )
                for costs in problem.costs.networks
            ),
        ),
    )
    assert best(problem).values == best(backwards).values

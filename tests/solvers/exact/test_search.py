"""The search for the best plans, with an engine that simply tries all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gapless.formulations.chain import Part
from gapless.formulations.chunking.encoding import Parts, encode_boundary
from gapless.formulations.chunking.quantities import PlanValues
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import BackendFailedError
from gapless.formulations.expr import BoolExpr, Variable
from gapless.formulations.model import Encoded, Values
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.solvers.exact.cp_sat import CpSatBackend
from gapless.solvers.exact.lowering import Lowering
from gapless.solvers.exact.search import PortAnswer, Query, Search, Space, Verdict, add_model, build_levels
from gapless.solvers.protocol import Claim, Deadline, SolveOptions, SolveStatus, StopReason
from gapless.solvers.sources import Source

from ..brute import CASES, Case, all_parts, problem_of, random_problem, ranked
from ..exact_backend import check_list


def values_of(parts: tuple[Part, ...]) -> Values:
    """Return the literals of the boundary encoding on a plan."""
    on = {(layer, unit) for start, stop, unit in parts for layer in range(start, stop)}
    chosen: dict[str, set[tuple[int, ...]]] = {
        "x": {*on},
        "s": {(start, unit) for start, _, unit in parts},
        "e": {(stop - 1, unit) for _, stop, unit in parts},
        "uses": {(unit,) for _, _, unit in parts},
        "cut": {(start,) for start, _, _ in parts},
    }

    def read(variable: Variable) -> int:
        return int(variable.args in chosen[variable.name])

    return read


@dataclass
class TryAll:
    """Answers from a list of all plans; `worst` makes it return the last of equal ones, not the first."""

    plans: list[tuple[Part, ...]]
    worst: bool = False
    conditions: list[BoolExpr] = field(default_factory=list)
    objectives: list[int] = field(default_factory=list)
    spoil: Callable[[PortAnswer], PortAnswer] = lambda answer: answer

    def add(self, condition: BoolExpr) -> None:
        self.conditions.append(condition)

    def minimise(self, query: Query) -> PortAnswer:
        conditions = (*self.conditions, *query.conditions)
        left = [values_of(parts) for parts in self.plans]
        left = [values for values in left if all(c.evaluate(values) for c in conditions)]
        if not left:
            return self.spoil(PortAnswer(verdict=Verdict.INFEASIBLE))
        least = min(query.objective.evaluate(values) for values in left)
        best = [values for values in left if query.objective.evaluate(values) == least]
        assert query.at_least is None or query.at_least <= least
        chosen = best[-1] if self.worst else best[0]
        query.progress(chosen, least - 1)
        return self.spoil(PortAnswer(verdict=Verdict.OPTIMAL, values=chosen, bound=least))


def search(
    problem: Problem,
    options: SolveOptions,
    engine: TryAll | None = None,
    encoded: Encoded[Parts] | None = None,
    **known: Any,
) -> Claim:
    encoded = encoded or encode_boundary(problem)
    engine = engine or TryAll(list(all_parts(chain_of(problem))))
    lowering, deadline = Lowering(encoded.model), Deadline(options.time_limit_s)
    space = Space(problem, encoded, lowering, 100)
    add_model(encoded.model, lowering, engine, deadline)
    return Search(
        problem=problem,
        options=options,
        capabilities=CpSatBackend.capabilities,
        space=space,
        lowering=lowering,
        port=engine,
        deadline=deadline,
        **known,
    ).run()


def possible(problem: Problem) -> list[tuple[Part, ...]]:
    """Return the plans that the encoding has literals for."""
    return [
        parts
        for parts in all_parts(chain_of(problem))
        if {p[1] for p in parts} <= set(chain_of(problem).cuts)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("worst", [False, True])
@pytest.mark.parametrize("case", CASES[::2], ids=lambda case: case.name)
def test_the_list_equals_brute_force(case: Case, worst: bool) -> None:
    problem = case.problem(21, layers=6)
    for top in (1, 4):
        claim = search(problem, SolveOptions(top=top), TryAll(possible(problem), worst=worst))
        check_list(problem, claim, top)


@pytest.mark.slow
def test_ties_of_everything_cost_about_one_call_a_plan() -> None:
    problem = problem_of([[2, 2, 2]] * 6).with_objective("latency")
    assert len(ranked(problem)) == 93
    few = search(problem, SolveOptions(top=5))
    check_list(problem, few, 5)
    assert int(few.statistics["calls"]) <= 40
    every = search(problem, SolveOptions(top=200))
    check_list(problem, every, 200)
    assert every.exhausted
    assert int(every.statistics["calls"]) == 94


def test_distinct_plans_cost_one_call_each() -> None:
    problem = random_problem(5, layers=5).with_objective("latency,period")
    claim = search(problem, SolveOptions(top=10))
    check_list(problem, claim, 10)
    assert int(claim.statistics["calls"]) <= 14


def test_the_levels_are_the_canonical_order() -> None:
    problem = random_problem(1, layers=5, features="e").with_objective("idle,peak_memory")
    encoded = encode_boundary(problem)
    chain = chain_of(problem)
    levels = build_levels(problem, encoded, Lowering(encoded.model), 100)

    def key_of(parts: Parts) -> tuple[int, ...]:
        return tuple(level.value(parts, PlanValues(chain, parts)) for level in levels)

    plans = sorted(all_parts(chain), key=key_of)
    assert [chain.plan(parts) for parts in plans] == ranked(problem)
    for parts in plans[::7]:
        values, key = values_of(parts), key_of(parts)
        for level, value in zip(levels, key, strict=True):
            assert Lowering(encoded.model).truth(level.at_most(value)).evaluate(values) == 1
            if value > 0:
                assert Lowering(encoded.model).truth(level.at_most(value - 1)).evaluate(values) == 0


def test_every_step_is_published() -> None:
    problem = random_problem(5).with_objective("period")
    seen: list[Claim] = []
    claim = search(problem, SolveOptions(top=4, publish=seen.append))
    assert seen[0].status is SolveStatus.FEASIBLE
    assert seen[0].proven == 0
    proven = [published.proven for published in seen]
    assert proven == sorted(proven)
    assert seen[-1] == claim
    for published in seen:
        assert published.bound is None or published.values is None or published.bound <= published.values[0]


def test_a_deadline_before_the_first_question() -> None:
    claim = search(random_problem(5), SolveOptions(time_limit_s=1e-9))
    assert (claim.status, claim.stop) == (SolveStatus.NO_SOLUTION, StopReason.TIME_LIMIT)
    assert claim.bound is None


def test_a_solver_out_of_time_keeps_plan_and_bound() -> None:
    problem = random_problem(5).with_objective("period")
    plans = list(all_parts(chain_of(problem)))
    best = search(problem, SolveOptions()).values

    def late(answer: PortAnswer) -> PortAnswer:
        bound = answer.bound and answer.bound - 5
        engine.spoil = lambda _: PortAnswer(verdict=Verdict.UNKNOWN)
        return replace(answer, verdict=Verdict.FEASIBLE, bound=bound)

    engine = TryAll(plans, spoil=late)
    claim = search(problem, SolveOptions(time_limit_s=60), engine)
    assert (claim.status, claim.stop, claim.proven) == (SolveStatus.FEASIBLE, StopReason.TIME_LIMIT, 0)
    assert best is not None
    assert (claim.values, claim.bound) == (best, best[0] - 1)  # `progress` had told more than the answer


def test_unknown_without_a_limit_is_a_failure() -> None:
    problem = random_problem(5)
    engine = TryAll(list(all_parts(chain_of(problem))), spoil=lambda _: PortAnswer(verdict=Verdict.UNKNOWN))
    with pytest.raises(BackendFailedError, match="gave up"):
        search(problem, SolveOptions(), engine)


def test_ties_left_open_do_not_undo_an_optimum() -> None:
    problem = problem_of([[2, 2, 2]] * 4).with_objective("latency")

    def once(answer: PortAnswer) -> PortAnswer:
        engine.spoil = lambda _: PortAnswer(verdict=Verdict.UNKNOWN)
        return answer

    engine = TryAll(list(all_parts(chain_of(problem))), spoil=once)
    claim = search(problem, SolveOptions(time_limit_s=60), engine)
    assert (claim.status, claim.stop, claim.proven) == (SolveStatus.OPTIMAL, StopReason.TIME_LIMIT, 1)
    assert claim.values == (8,)


@pytest.mark.slow
def test_opaque_rules_cut_plans_off() -> None:
    problem = random_problem(5).with_rules(
        OpaqueRule(name="two", predicate=lambda plan: len(plan.chunks) == 2)
    )
    claim = search(problem, SolveOptions(top=3))
    check_list(problem, claim, 3)
    assert int(claim.statistics["rejected"]) > 0
    refused = problem.with_rules(OpaqueRule(name="never", predicate=lambda plan: False))
    stopped = search(refused, SolveOptions(max_rejections=4))
    assert (stopped.status, stopped.stop) == (SolveStatus.NO_SOLUTION, StopReason.REJECTION_LIMIT)
    proof = search(refused, SolveOptions())
    assert (proof.status, proof.exhausted) == (SolveStatus.INFEASIBLE, True)
    assert proof.statistics["rejected"] == 93


@pytest.mark.slow
def test_a_plan_that_breaks_the_problem_is_refuted_and_the_search_goes_on() -> None:
    problem = random_problem(5).with_objective("period")
    capped = problem.with_limits(max_period_us=170)
    encoded = encode_boundary(problem)  # a model that lacks the limit, as if within tolerance
    claim = search(capped, SolveOptions(top=500), encoded=encoded)
    assert list(claim.plans) == ranked(capped)
    assert int(claim.statistics["refuted"]) == 93 - len(claim.plans)


def test_a_solution_that_is_no_plan_is_an_error() -> None:
    problem = problem_of([[1, 1], [1, 1], [1, 1]])
    encoded = encode_boundary(problem)
    spoilt = replace(encoded, decode=lambda values: encoded.decode(values)[:-1])  # loses its last chunk
    with pytest.raises(BackendFailedError, match=r"which is no plan.*is not well formed:\n  - coverage"):
        search(problem, SolveOptions(top=20), encoded=spoilt)


def test_a_solver_that_repeats_itself_is_stopped() -> None:
    problem = random_problem(5)

    @dataclass
    class Forgetful(TryAll):
        def add(self, condition: BoolExpr) -> None:
            pass

    with pytest.raises(BackendFailedError, match="ruled out"):
        search(problem, SolveOptions(top=3), Forgetful(list(all_parts(chain_of(problem)))))


def test_what_was_handed_over_is_told_from_what_was_found() -> None:
    problem = random_problem(3, layers=3, units=2)
    chain = chain_of(problem)
    term = problem.objective.terms[0]
    plans = sorted(all_parts(chain), key=lambda parts: PlanValues(chain, parts).term(term))
    worst, best = plans[-1], plans[0]
    least = PlanValues(chain, best).term(term)

    def sources(seed: tuple[Part, ...] | None, given: int | None) -> tuple[Source, Source]:
        found = search(problem, SolveOptions(), seed=seed, given=given, at_least=given)
        assert found.bound == least
        return found.plan_source, found.bound_source

    assert sources(None, None) == (Source.OWN, Source.OWN)
    assert sources(worst, 1) == (Source.OWN, Source.OWN)
    assert sources(best, 1) == (Source.START, Source.OWN)
    assert sources(worst, least) == (Source.OWN, Source.START)
    assert sources(best, least) == (Source.START, Source.START)

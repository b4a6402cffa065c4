"""The tests that every backend must pass; a backend author subclasses `BackendConformance`.

    class TestMyBackend(BackendConformance):
        def make_backend(self):
            return MyBackend()

They go through every formulation that the backend supports, and there through every term, limit, quantity
and kind of rule, and compare with the oracle. A test that could not try anything fails, and so does one whose
backend answers nothing. Plain asserts and method names that pytest collects; nothing here imports pytest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..formulations.expr import BoolExpr, Const, Variable
from ..formulations.judge import check, examined, rank_key
from ..formulations.problem import Problem
from ..formulations.rules import AnyRule, OpaqueRule, Rule, RuleFunction
from ..formulations.terms import QuantityInfo
from .exhaustive import ExhaustiveBackend
from .families import families
from .protocol import Backend, RuleHandling, SolveOptions, SolveStatus, StopReason, Support
from .result import SolveResult
from .samples import Golden, Samples, golden_instances
from .session import solve

_WEAK = {RuleHandling.CHECKED, RuleHandling.REPAIRED}

LEAST_SHARE_SOLVED = 0.5
"""Share of the samples with a plan for which a heuristic has to find one."""


class BackendConformance:
    """What a backend promises by its capabilities, as tests."""

    def make_backend(self) -> Backend:
        """Return the backend under test."""
        raise TypeError("a subclass of BackendConformance overrides make_backend")

    # What is tried

    def _samples(self) -> Iterator[Samples]:
        """Yield the samples of the formulations that the backend supports; at least one there must be."""
        tried = 0
        for family in families().values():
            if family.samples is not None:
                samples: Samples = family.load(family.samples)()
                if self.make_backend().capabilities.support(samples.plain) is not None:
                    tried += 1
                    yield samples
        assert tried, "the backend supports no formulation that has samples"

    def _problems(self, *, whole: bool = True) -> Iterator[tuple[str, Problem, Samples]]:
        """Yield (name, problem, samples) of what the backend is able to solve; without `whole` a few."""
        for samples in self._samples():
            named = {"plain": samples.plain, **samples.problems}
            able = [(name, problem) for name, problem in named.items() if self._able(problem)]
            assert able, f"the backend can solve none of the samples {', '.join(named)}"
            for name, problem in able if whole else able[:2]:
                yield name, problem, samples

    def _golden(self) -> list[Golden]:
        found = [golden for golden in golden_instances() if self._able(golden.problem)]
        assert any(golden.easy for golden in found), "the backend is able to solve no easy golden instance"
        return found

    def _able(self, problem: Problem) -> bool:
        return not self.make_backend().capabilities.missing(problem)

    def _support(self, problem: Problem) -> Support:
        support = self.make_backend().capabilities.support(problem)
        assert support is not None
        return support

    def _solve(self, problem: Problem, top: int = 1, **options: object) -> SolveResult:
        asked = replace(SolveOptions(top=top), **options)  # type: ignore[arg-type]
        return solve(problem, self.make_backend(), asked, explain=False)

    def _compare(self, problems: Sequence[Problem], top: int = 3, distance: int = 1) -> None:
        """Compare with the oracle: equal lists if exact, never better otherwise, and an answer mostly."""
        assert problems, "nothing was tried: the backend refuses every variant of this kind"
        solvable = solved = 0
        for problem in problems:
            options = SolveOptions(top=top, distance=distance)
            result = self._solve(problem, top, distance=distance)
            oracle = solve(problem, ExhaustiveBackend(), options, explain=False)
            assert oracle.status in (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE)
            solvable += oracle.values is not None
            solved += result.values is not None
            if self._support(problem).exact:
                self._equals(problem, result, oracle)
            else:
                _is_not_better(result, oracle)
        assert solved >= LEAST_SHARE_SOLVED * solvable, f"{solved} answers to {solvable} solvable problems"

    def _equals(self, problem: Problem, result: SolveResult, oracle: SolveResult) -> None:
        """Compare an exact answer with the oracle's: status, values, bound, and plans as far as proven."""
        assert result.status is oracle.status
        assert (result.values, result.bound) == (oracle.values, oracle.bound)
        found, known = ([c.score.values(problem.ranking) for c in r.candidates] for r in (result, oracle))
        assert found[: result.proven] == known[: result.proven]
        if problem.formulation.tie_break:  # then exact backends prove the whole list
            assert [c.plan for c in result.candidates] == [c.plan for c in oracle.candidates]
            assert result.proven == len(oracle.candidates)

    # Golden instances

    def test_golden_instances(self) -> None:
        """The optimum is found, or infeasibility is proved, as worked out by hand."""
        for golden in self._golden():
            result = self._solve(golden.problem)
            if self._support(golden.problem).exact:
                assert (result.values, result.plan) == (golden.optimum, golden.best), golden.name
                wanted = SolveStatus.INFEASIBLE if golden.best is None else SolveStatus.OPTIMAL
                assert result.status is wanted, golden.name
                continue
            assert result.values is not None or not golden.easy, f"no plan for {golden.name}"
            if result.values is not None:
                assert golden.optimum is not None, golden.name
                assert result.values >= golden.optimum, golden.name

    def test_every_plan_is_valid_and_the_bound_below(self) -> None:
        """No plan breaks anything, and no bound lies above a plan."""
        for golden in self._golden():
            result = self._solve(golden.problem, top=3)
            for candidate in result.candidates:
                assert check(golden.problem, candidate.plan) == ()
            if result.objective is not None and result.bound is not None:
                assert result.bound <= result.objective

    # Everything that can be asked

    def test_every_objective_agrees_with_the_oracle(self) -> None:
        """All terms that the backend declares, by themselves and in some combinations."""
        asked = []
        for _, problem, samples in self._problems():
            for text in dict.fromkeys((*problem.formulation.terms, *samples.objectives)):
                variant = problem.with_objective(text)
                if self._able(variant):
                    asked.append(variant)
        self._compare(asked)

    def test_every_sample_agrees_with_the_oracle(self) -> None:
        """Every way in which instances can differ, as it stands."""
        self._compare([problem for _, problem, _ in self._problems()], top=6)

    def test_every_limit_agrees_with_the_oracle(self) -> None:
        """All filters of `Limits`, satisfiable or not."""
        variants = [
            problem.with_limits(**limits)
            for _, problem, samples in self._problems(whole=False)
            for limits in samples.limits
        ]
        able = [problem for problem in variants if self._able(problem)]
        if able or any(self._takes_limits(problem) for problem in variants):
            self._compare(able)

    def _takes_limits(self, problem: Problem) -> bool:
        features = self._support(problem).features
        return features is None or "limits" in features

    def test_every_kind_of_rule_agrees_with_the_oracle(self) -> None:
        """Rules are kept, the optimum under them is found, and their handling is told."""
        for samples in self._samples():
            for problem in (samples.plain, *samples.problems.values()):
                variants = [problem.with_rules(*rules) for rules in _fitting(problem, samples)]
                able = [variant for variant in variants if self._able(variant)]
                if self._support(problem).rules is not None and self._able(problem):
                    self._compare(able)
                    self._tells_handling(able[0])

    def test_every_quantity_agrees_with_the_oracle(self) -> None:
        """A rule on each quantity of the formulation that shuts out the best plan, or says what it does."""
        for _, problem, _ in self._problems(whole=False):
            if self._support(problem).rules is not None:
                variants = [replace(problem, rules=(rule,)) for rule in _quantity_rules(problem)]
                named = {rule.name.split("(")[0] for variant in variants for rule in variant.rules}
                assert named >= set(problem.formulation.quantities), "a quantity was not tried"
                self._compare([variant for variant in variants if self._able(variant)], top=1)

    def _tells_handling(self, problem: Problem) -> None:
        support, handling = self._support(problem), self._solve(problem).handling
        for rule in problem.rules:
            wanted = support.opaque_rules if isinstance(rule, OpaqueRule) else support.rules
            assert handling[rule.name] is wanted
            assert not (support.exact and handling[rule.name] in _WEAK)

    def test_plans_that_differ_agree_with_the_oracle(self) -> None:
        """The session asks for lists, by rules or longer ones, until enough plans are far apart."""
        for _, problem, _ in self._problems(whole=False):
            if problem.formulation.difference is not None:
                self._compare([problem], top=3, distance=2)

    # Lists, seeds, limits of time

    def test_the_best_plans_are_distinct_and_ordered(self) -> None:
        """Top-K has no plan twice, and is in canonical order as far as it is proven."""
        for _, problem, _ in self._problems(whole=False):
            result = self._solve(problem, top=8)
            plans = [c.plan for c in result.candidates]
            assert len(set(plans)) == len(plans)
            keys = [rank_key(problem, c.plan, c.score) for c in result.candidates]
            assert keys == sorted(keys)

    def test_asking_for_more_plans_than_exist(self) -> None:
        """The whole space comes back, and is said to be exhausted."""
        for samples in self._samples():
            problem = samples.plain
            if self._able(problem) and self._support(problem).exact:
                oracle = solve(problem, ExhaustiveBackend(), SolveOptions(top=500), explain=False)
                result = self._solve(problem, top=500)
                assert {c.plan for c in result.candidates} == {c.plan for c in oracle.candidates}
                assert result.exhausted

    def test_the_objective_decides(self) -> None:
        """Another objective changes the best value: what is asked reaches the search."""
        for _, problem, _ in self._problems(whole=False):
            terms = [t for t in problem.formulation.terms if self._able(problem.with_objective(t))]
            for term in terms if self._support(problem).exact else ():
                best = self._solve(problem.with_objective(term)).best
                others = (self._solve(problem.with_objective(other)).best for other in terms)
                assert best is None or all(
                    best.score.value(term) <= other.score.value(term) for other in others if other
                )

    def test_equal_seeds_give_equal_plans(self) -> None:
        """Two runs with one seed answer alike."""
        for _, problem, _ in self._problems(whole=False):
            if self.make_backend().capabilities.deterministic:
                runs = [self._solve(problem, top=4, seed=7).candidates for _ in range(2)]
                assert runs[0] == runs[1]

    def test_a_time_limit_is_no_proof_of_infeasibility(self) -> None:
        """With hardly any time, the status stays honest."""
        for _, problem, _ in self._problems(whole=False):
            result = self._solve(problem, time_limit_s=1e-6)
            if result.status is SolveStatus.INFEASIBLE:
                oracle = solve(problem, ExhaustiveBackend(), SolveOptions(), explain=False)
                assert oracle.status is SolveStatus.INFEASIBLE
            if result.status is SolveStatus.NO_SOLUTION:
                assert result.stop is not StopReason.COMPLETE or not self._support(problem).proves


def _is_not_better(result: SolveResult, oracle: SolveResult) -> None:
    """Compare the answer of a heuristic with the oracle's."""
    if result.values is not None:
        assert oracle.values is not None
        assert result.values >= oracle.values
    if result.bound is not None and oracle.values is not None:
        assert result.bound <= oracle.values[0]
    if result.status is SolveStatus.OPTIMAL:
        assert result.values == oracle.values


def _fitting(problem: Problem, samples: Samples) -> Iterator[tuple[RuleFunction | AnyRule, ...]]:
    """Yield the rules of the samples that are about something that the problem has."""
    for rules in samples.rules.values():
        try:
            problem.with_rules(*rules)
        except ValueError:
            continue
        yield rules


def _quantity_rules(problem: Problem) -> Iterator[Rule]:
    """Yield rules about each quantity, with some of its indices: another value than on the best plan.

    Where no plan has another value there are none, and the problem with that rule is infeasible.
    """
    best = solve(problem, ExhaustiveBackend(), SolveOptions(), explain=False).plan
    assert best is not None
    numbers, _ = examined(problem, problem.formulation.code(problem, best))
    find = problem.formulation.variables(problem).find
    for name, info in problem.formulation.quantities.items():
        for indices in _few_indices(problem, info):
            variable = find(name, indices)
            yield Rule(
                name=f"{name}({', '.join(map(str, indices))})", expr=_other(variable, numbers(variable))
            )


def _other(variable: Variable, value: int) -> BoolExpr:
    """Return "less than a value", or what is possible beside it: "more", or for a truth its negation."""
    if isinstance(variable, BoolExpr):
        return ~variable if value else variable | Const(0)
    return variable <= value - 1 if value else variable >= 1


def _few_indices(problem: Problem, info: QuantityInfo, most: int = 3) -> list[tuple[int, ...]]:
    """Return a few of the indices that a quantity can have."""
    found: list[tuple[int, ...]] = [()]
    for index in info.indices:
        found = [
            (*before, value)
            for before in found
            for allowed in [index.allowed(problem.tables, *before)]
            for value in sorted({allowed[0], allowed[len(allowed) // 2], allowed[-1]} if len(allowed) else ())
        ]
    step = max(1, len(found) // most)
    return found[::step][:most]

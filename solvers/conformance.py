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
from typing import TypeVar

from ..formulations.expr import BoolExpr, Const, Variable
from ..formulations.judge import check, rank_key
from ..formulations.problem import Problem
from ..formulations.rules import AnyRule, OpaqueRule, Rule, RuleFunction
from .exhaustive import ExhaustiveBackend
from .families import families
from .protocol import Backend, RuleHandling, SolveOptions, SolveStatus, StopReason, Support
from .result import SolveResult
from .samples import Golden, Samples, golden_instances, quantity_rules
from .sandbox import call_in_child
from .session import solve

Asked = TypeVar("Asked")

_WEAK = {RuleHandling.CHECKED, RuleHandling.REPAIRED}

LEAST_SHARE_SOLVED = 0.5
"""Share of the samples with a plan for which a heuristic has to find one."""


class BackendConformance:
    """What a backend promises by its capabilities, as tests.

    Attributes
    ----------
    every, first
        Of the questions (samples, objectives, limits, rules, quantities, lists, seeds) one in `every` is
        asked, from number `first` on (from 0): for backends that share their models, and so the questions.
    """

    every, first = 1, 0

    def make_backend(self) -> Backend:
        """Return the backend under test."""
        raise TypeError("a subclass of BackendConformance overrides make_backend")

    # What is tried

    def _samples(self) -> Iterator[Samples]:
        """Yield the samples of the formulations that the backend supports; at least one there must be."""
        tried = 0
        for family in families().values():
            if family.instances is not None:
                samples = family.instances().samples()
                if self.make_backend().capabilities.support(samples.plain) is not None:
                    tried += 1
                    yield samples
        assert tried, "the backend supports no formulation that has samples"

    def _by_samples(self) -> Iterator[tuple[Samples, list[Problem]]]:
        """Yield samples, and those of their problems that the backend is able to solve."""
        for samples in self._samples():
            able = [p for p in (samples.plain, *samples.problems.values()) if self._able(p)]
            assert able, f"the backend can solve none of the samples plain, {', '.join(samples.problems)}"
            yield samples, able

    def _problems(self, *, whole: bool = True) -> Iterator[tuple[Problem, Samples]]:
        """Yield (problem, samples) of what it is able to solve; without `whole` two of each formulation."""
        for samples, able in self._by_samples():
            for problem in able if whole else able[:2]:
                yield problem, samples

    def _golden(self) -> list[Golden]:
        found = [golden for golden in golden_instances() if self._able(golden.problem)]
        assert any(golden.easy for golden in found), "the backend is able to solve no easy golden instance"
        return found

    def _share(self, problems: Sequence[Asked]) -> list[Asked]:
        """Return those that this backend is asked; of a few problems one at least."""
        return [*problems[min(self.first, max(len(problems) - 1, 0)) :: self.every]]

    def _few(self) -> list[Problem]:
        """Return two problems of each formulation, of which this backend is asked its share."""
        return self._share([problem for problem, _ in self._problems(whole=False)])

    def _able(self, problem: Problem) -> bool:
        return not self.make_backend().capabilities.missing(problem)

    def _support(self, problem: Problem) -> Support:
        support = self.make_backend().capabilities.support(problem)
        assert support is not None
        return support

    def _solve(self, problem: Problem, top: int = 1, **options: object) -> SolveResult:
        asked = replace(SolveOptions(top=top), **options)  # type: ignore[arg-type]
        return solve(problem, self.make_backend(), asked, explain=False)

    def _solve_all(self, problems: Sequence[Problem], options: SolveOptions) -> list[SolveResult]:
        """Solve many problems; all of them in one child process, if the backend has to run in one."""
        backend = self.make_backend()
        if not backend.capabilities.isolated:
            return [solve(problem, backend, options, explain=False) for problem in problems]
        loose = Loose(backend)
        return call_in_child(
            lambda: [solve(problem, loose, options, explain=False) for problem in problems], backend.name
        )

    def _compare(self, problems: Sequence[Problem], top: int = 3, distance: int = 1) -> Sequence[SolveResult]:
        """Compare with the oracle: equal lists if exact, never better otherwise, and an answer mostly."""
        assert problems, "nothing was tried: the backend refuses every variant of this kind"
        options = SolveOptions(top=top, distance=distance)
        results = self._solve_all(problems, options)
        solvable = solved = 0
        for problem, result in zip(problems, results, strict=True):
            oracle = _oracle(problem, options)
            solvable += oracle.values is not None
            solved += result.values is not None
            if self._support(problem).exact:
                self._equals(problem, result, oracle, options)
            else:
                _is_not_better(result, oracle)
        assert solved >= LEAST_SHARE_SOLVED * solvable, f"{solved} answers to {solvable} solvable problems"
        return results

    def _compare_narrowed(
        self, asked: Sequence[tuple[Problem, Sequence[Problem]]], top: int = 3
    ) -> tuple[int, list[tuple[Problem, SolveResult]]]:
        """Compare problems, each with some that have more rules or limits, with the oracle.

        A heuristic that checks plans may find none that passes; but it has to find one where a plan that it
        finds for the wide problem does.

        Returns how many of the problems have to have an answer, and what was answered.
        """
        assert all(narrow for _, narrow in asked), "nothing was tried: the backend refuses every variant"
        proving = [problem for wide, narrow in asked if self._support(wide).exact for problem in narrow]
        found = [*zip(proving, self._compare(proving, top), strict=True)] if proving else []
        options, due = SolveOptions(top=top), len(proving)
        for wide, narrow in asked:
            if self._support(wide).exact:
                continue
            plans = [candidate.plan for candidate in self._solve(wide, top).candidates]
            results = self._solve_all(narrow, options)
            for problem, result in zip(narrow, results, strict=True):
                _is_not_better(result, _oracle(problem, options))
                if any(not check(problem, plan) for plan in plans):
                    due += 1
                    assert result.values is not None, f"no plan, but one without {_narrowing(problem)} passes"
            found += zip(narrow, results, strict=True)
        return due, found

    def _equals(
        self, problem: Problem, result: SolveResult, oracle: SolveResult, options: SolveOptions
    ) -> None:
        """Compare an exact answer with the oracle's: status, values, bound, and plans as far as proven."""
        assert result.status is oracle.status
        assert (result.values, result.bound) == (oracle.values, oracle.bound)
        # Where encodings do not tell equal plans apart any will do, and a single plan has no tie-break.
        told_apart = bool(problem.formulation.tie_break) and _has_digits(problem)
        alone = options.top == 1 and not told_apart
        terms = problem.objective.terms if alone else problem.ranking
        found, known = ([c.score.values(terms) for c in r.candidates] for r in (result, oracle))
        assert found[: result.proven] == known[: result.proven]
        if problem.formulation.tie_break:
            assert found == known
        if told_apart:  # then exact backends prove the whole list
            assert [c.plan for c in result.candidates] == [c.plan for c in oracle.candidates]
            assert result.proven == len(oracle.candidates)

    # Golden instances

    def test_golden_instances(self) -> None:
        """The optimum is found, or infeasibility is proved, as worked out by hand."""
        golden_ones = self._golden()
        answers = self._solve_all([golden.problem for golden in golden_ones], SolveOptions())
        for golden, result in zip(golden_ones, answers, strict=True):
            if self._support(golden.problem).exact:
                assert (result.values, result.plan) == (golden.optimum, golden.best), golden.name
                wanted = SolveStatus.INFEASIBLE if golden.best is None else SolveStatus.OPTIMAL
                assert result.status is wanted, golden.name
                continue
            # An easy plan may lie outside of what a backend says that it looks at.
            needed = golden.easy and not self._support(golden.problem).searches
            assert result.values is not None or not needed, f"no plan for {golden.name}"
            if result.values is not None:
                assert golden.optimum is not None, golden.name
                assert result.values >= golden.optimum, golden.name

    def test_every_plan_is_valid_and_the_bound_below(self) -> None:
        """No plan breaks anything, and no bound lies above a plan."""
        golden_ones, seen = self._share(self._golden()), 0
        answers = self._solve_all([golden.problem for golden in golden_ones], SolveOptions(top=3))
        for golden, result in zip(golden_ones, answers, strict=True):
            for candidate in result.candidates:
                seen += 1
                assert check(golden.problem, candidate.plan) == ()
            if result.objective is not None and result.bound is not None:
                assert result.bound <= result.objective
        assert seen, "no plan was found"

    # Everything that can be asked

    def test_every_objective_agrees_with_the_oracle(self) -> None:
        """All terms that the backend declares, by themselves and in some combinations."""
        asked = []
        for samples, problems in self._by_samples():
            for index, problem in enumerate(problems):
                texts = list(dict.fromkeys((*problem.known_terms, *samples.objectives)))
                # All of them on the first one; each once more on the others.
                later = texts[index - 1 :: max(1, len(problems) - 1)]
                variants = [problem.with_objective(text) for text in (later if index else texts)]
                asked += [variant for variant in variants if self._able(variant)]
        self._compare(self._share(asked))

    def test_every_sample_agrees_with_the_oracle(self) -> None:
        """Every way in which instances can differ, as it stands."""
        self._compare(self._share([problem for problem, _ in self._problems()]), top=6)

    def test_every_limit_agrees_with_the_oracle(self) -> None:
        """All filters of `Limits`, satisfiable or not."""
        asked = []
        for problem, samples in self._problems(whole=False):
            variants = [problem.with_limits(**limits) for limits in samples.limits]
            able = self._share([variant for variant in variants if self._able(variant)])
            if able or (variants and self._takes_limits(problem)):
                asked.append((problem, able))
        assert not asked or self._compare_narrowed(asked)[0], "no plan was found under any limit"

    def _takes_limits(self, problem: Problem) -> bool:
        features = self._support(problem).features
        return features is None or "limits" in features

    def test_every_kind_of_rule_agrees_with_the_oracle(self) -> None:
        """Rules are kept, the optimum under them is found, and their handling is told."""
        asked = []
        for problem, samples in self._problems(whole=False):
            if self._support(problem).rules is not None:
                variants = [problem.with_rules(*rules) for rules in _fitting(problem, samples)]
                asked.append((problem, self._share([each for each in variants if self._able(each)])))
        due, found = self._compare_narrowed(asked)
        self._tells_handling(found)
        assert due or not asked, "no plan was found under any rule"

    def test_every_quantity_agrees_with_the_oracle(self) -> None:
        """Rules on each quantity: one that shuts out the best plan, one that holds on the plan found."""
        asked = []
        for problem, samples in self._problems(whole=False):
            support = self._support(problem)
            if support.rules is not None:
                best = _oracle(problem, SolveOptions()).plan
                assert best is not None
                found = best if support.exact else self._solve(problem).plan
                rules = [*quantity_rules(problem, best, _other, most=3 if problem is samples.plain else 1)]
                assert {_quantity(rule) for rule in rules} == set(problem.formulation.quantities)
                rules += quantity_rules(problem, found, _same, most=1) if found is not None else ()
                variants = [replace(problem, rules=(rule,)) for rule in rules]
                asked.append((problem, self._share([each for each in variants if self._able(each)])))
        assert not asked or self._compare_narrowed(asked, top=1)[0], "no plan was found under any rule"

    def _tells_handling(self, found: Sequence[tuple[Problem, SolveResult]]) -> None:
        """Each rule is handled as promised, or, where that was no more than checking, better."""
        for problem, result in found:
            support = self._support(problem)
            for rule in problem.rules:
                wanted = support.opaque_rules if isinstance(rule, OpaqueRule) else support.rules
                told = result.handling[rule.name]
                assert told is wanted or (wanted in _WEAK and told not in _WEAK)
                assert not (support.exact and told in _WEAK)

    def test_plans_that_differ_agree_with_the_oracle(self) -> None:
        """The session asks for lists, by rules or longer ones, until enough plans are far apart."""
        for problem in self._few():
            narrow = self._support(problem).searches  # it may have no such plan
            if problem.formulation.difference is not None and not narrow:
                self._compare([problem], top=3, distance=2)

    # Lists, seeds, limits of time

    def test_the_best_plans_are_distinct_and_ordered(self) -> None:
        """Top-K has no plan twice, and is in canonical order as far as it is proven."""
        seen = 0
        asked = self._few()
        for problem, result in zip(asked, self._solve_all(asked, SolveOptions(top=8)), strict=True):
            plans = [c.plan for c in result.candidates]
            assert len(set(plans)) == len(plans)
            keys = [rank_key(problem, c.score) for c in result.candidates]
            assert keys == sorted(keys)
            seen += len(plans)
        assert seen, "no plan was found"

    def test_asking_for_more_plans_than_exist(self) -> None:
        """The whole space comes back, and is said to be exhausted."""
        for problem in self._share([first for _, (first, *_) in self._by_samples()]):
            if self._support(problem).exact:
                oracle = _oracle(problem, SolveOptions(top=500))
                result = self._solve(problem, top=500)
                assert {c.plan for c in result.candidates} == {c.plan for c in oracle.candidates}
                assert result.exhausted is oracle.exhausted

    def test_the_objective_decides(self) -> None:
        """Another objective changes the best value: what is asked reaches the search."""
        differ = expected = False
        for problem in self._few():
            if self._support(problem).exact:
                variants = {term: problem.with_objective(term) for term in problem.known_terms}
                able = {term: variant for term, variant in variants.items() if self._able(variant)}
                results = self._solve_all([*able.values()], SolveOptions())
                scores = [result.best.score for result in results if result.best is not None]
                assert len(scores) == len(able)
                for term, score in zip(able, scores, strict=True):
                    assert score.value(term) == min(other.value(term) for other in scores)
                best = {_oracle(variant, SolveOptions()).plan for variant in able.values()}
                differ |= len({result.plan for result in results}) > 1
                expected |= len(best) > 1
        assert differ or not expected, "every objective has the same plan"

    def test_equal_seeds_give_equal_plans(self) -> None:
        """Two runs with one seed answer alike."""
        if self.make_backend().capabilities.deterministic:
            asked, options = self._few(), SolveOptions(top=4, seed=7)
            runs = [[result.candidates for result in self._solve_all(asked, options)] for _ in range(2)]
            assert runs[0] == runs[1]
            assert any(runs[0]), "no plan was found"

    def test_a_time_limit_is_no_proof_of_infeasibility(self) -> None:
        """With hardly any time, the status stays honest."""
        for problem in self._few():
            result = self._solve(problem, time_limit_s=1e-6)
            if result.status is SolveStatus.INFEASIBLE:
                oracle = _oracle(problem, SolveOptions())
                assert oracle.status is SolveStatus.INFEASIBLE
            if result.status is SolveStatus.NO_SOLUTION:
                assert result.stop is not StopReason.COMPLETE or not self._support(problem).proves


class Loose:
    """A backend that runs in this process whatever it says; for many solves in one child process."""

    def __init__(self, backend: Backend) -> None:
        self.name, self.solve, self.availability = backend.name, backend.solve, backend.availability
        self.capabilities = replace(backend.capabilities, isolated=False)


_answers: dict[tuple[str, int, int], SolveResult] = {}


def _oracle(problem: Problem, options: SolveOptions) -> SolveResult:
    """Return the answer of the oracle, which is kept: all backends are compared with it."""
    asked = (problem.fingerprint, options.top, options.distance)
    if asked not in _answers:
        _answers[asked] = solve(problem, ExhaustiveBackend(), options, explain=False)
    oracle = _answers[asked]
    assert oracle.status in (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE)
    return oracle


def _has_digits(problem: Problem) -> bool:
    """Return whether models of a problem know the canonical order of plans that are equal in all terms."""
    return problem.formulation.encode(problem).digits is not None


def _narrowing(problem: Problem) -> str:
    return ", ".join([*(rule.name for rule in problem.rules), *problem.limits.in_use()])


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


def _quantity(rule: Rule) -> str:
    return rule.name.partition("(")[0]


def _other(variable: Variable, value: int) -> BoolExpr:
    """Return "less than a value", or what is possible beside it: "more", or for a truth its negation."""
    if isinstance(variable, BoolExpr):
        return ~variable if value else variable | Const(0)
    return variable <= value - 1 if value else variable >= 1


def _same(variable: Variable, value: int) -> BoolExpr:
    """Return "as it is"."""
    if isinstance(variable, BoolExpr):
        return variable | Const(0) if value else ~variable
    return (variable <= value) & (variable >= value)

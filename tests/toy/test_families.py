"""What solvers have for single formulations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gapless.formulations import registry as formulations
from gapless.formulations.errors import BackendFailedError, UnsupportedFeatureError
from gapless.formulations.judge import check
from gapless.formulations.problem import Problem
from gapless.formulations.registry import formulation_names, register_formulation
from gapless.formulations.terms import Objective
from gapless.solvers import families as module
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.families import (
    EXACT_BACKENDS,
    Family,
    Usual,
    families,
    family_of,
    register_family,
    starts_for,
)
from gapless.solvers.protocol import EXACT, SolveOptions, Support
from gapless.solvers.registry import backend_names, get_backend
from gapless.solvers.session import solve
from tests.entry_points import install
from tests.toy.family import TOY, Toy
from tests.workload_instances import workload_problem


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a test registers outlives it."""
    monkeypatch.setattr(module._families, "_known", {})
    monkeypatch.setattr(formulations, "_registered", {})


WORKLOAD = workload_problem({"a": [[3, 5], [4, 2]], "b": [[2, 7], [9, 3]]}, ["a", "b"])


def toy_problem() -> Problem:
    """Return two jobs on two units: the best period is 3."""
    problem = workload_problem({"a": [[3, 5]], "b": [[4, 2]]}, ["a", "b"])
    return replace(problem, data=Toy(weights=(1, 1)), objective=Objective(terms=("period",)))


@pytest.mark.parametrize("name", formulation_names())
def test_what_a_family_names_is_there(name: str) -> None:
    family = family_of(name)
    assert families()[name] is family
    assert (family.search is None) == (family.support is None)
    assert family.search is None or callable(family.search().native)
    assert tuple(found().name for found in family.classes()) == family.backends
    assert set(family.usual.names) <= set(backend_names())
    assert set(family.backends) <= set(backend_names())
    assert all(get_backend(backend).name == backend for backend in family.backends)


@pytest.mark.parametrize("name", formulation_names())
def test_samples_are_of_the_formulation(name: str) -> None:
    family = family_of(name)
    assert family.instances is not None
    samples = family.instances().samples()
    assert (family.instances().draw is None) == (family.drawn is None)
    for problem in (samples.plain, *samples.problems.values()):
        assert problem.formulation.name == name
    assert samples.plain.features == frozenset()
    quantities = {term for problem in samples.problems.values() for term in problem.objective.terms}
    assert quantities | set(samples.plain.formulation.terms) == set(samples.plain.formulation.terms)


def test_support_is_what_the_native_backend_says() -> None:
    supports = get_backend("native").capabilities.formulations
    assert supports == {name: f.support for name, f in families().items() if f.support is not None}
    assert {"chunking", "flow_shop"} <= set(supports)


def test_a_formulation_without_a_family_has_nothing_but_exact_backends() -> None:
    register_formulation(TOY)
    assert family_of("toy") == Family()
    assert family_of("not a name") == Family()
    assert family_of("toy").usual == Usual(names=EXACT_BACKENDS)
    assert list(starts_for(toy_problem(), SolveOptions())) == []
    with pytest.raises(UnsupportedFeatureError, match=r"problems of independent jobs.*exhaustive"):
        solve(toy_problem(), "native")
    assert solve(toy_problem(), "exhaustive").values == (3,)


def test_a_registered_family_is_asked_first() -> None:
    assert [start.at_least is not None for start in starts_for(WORKLOAD, SolveOptions())] == [True]
    family = Family(usual=Usual(names=("serial",)))
    register_family("flow_shop", family)
    assert family_of("flow_shop") is family
    assert list(starts_for(WORKLOAD, SolveOptions())) == []
    assert "serial" not in backend_names()


def test_starts_of_workloads_are_bounds() -> None:
    (start,) = starts_for(WORKLOAD, SolveOptions())
    best = solve(WORKLOAD, "exhaustive").objective
    assert start.at_least is not None
    assert best is not None
    assert 0 < start.at_least <= best
    (other,) = starts_for(WORKLOAD.with_objective("bottleneck"), SolveOptions())
    assert other.at_least is None


@pytest.mark.parametrize("problem", [sample_problem(), WORKLOAD], ids=["network", "workload"])
def test_with_a_time_limit_a_valid_plan_comes_first(problem: Problem) -> None:
    start = next(starts_for(problem, SolveOptions(time_limit_s=1e-6)))
    assert check(problem, problem.formulation.plan(problem, start.code)) == ()
    assert list(starts_for(sample_problem(), SolveOptions())) == []


FAMILY = """
from gapless.solvers.exhaustive import ExhaustiveBackend
from gapless.solvers.families import Family, Search
from gapless.solvers.protocol import EXACT

def walk(problem, options, support):
    return ExhaustiveBackend().solve(problem, options)

FAMILY = Family(support=EXACT, search=lambda: Search(walk))
"""


def test_families_come_as_entry_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    register_formulation(TOY)
    site = tmp_path / "site-packages" / "toyshop"
    site.mkdir(parents=True)
    (site / "__init__.py").write_text("")
    (site / "toys.py").write_text(FAMILY)
    targets = {"toy": "toyshop.toys:FAMILY", "lost": "gapless.nowhere:X"}
    install(monkeypatch, tmp_path, module.ENTRY_POINT_GROUP, targets)
    assert family_of("toy").support == EXACT
    assert solve(toy_problem(), "native").values == (3,)
    with pytest.raises(BackendFailedError, match=r"'lost' .*gapless\.nowhere:X: ModuleNotFoundError"):
        family_of("lost")


def test_support_of_features_and_terms() -> None:
    problem = WORKLOAD
    assert EXACT.missing(problem) == set()
    narrow = Support(guarantee=EXACT.guarantee, features=frozenset(), terms=frozenset({"latency"}))
    assert narrow.missing(problem) == {"free_order", "objective makespan"}
    assert narrow.missing(problem.with_objective("slack:9:latency")) == {
        "free_order",
        "objective period (for the slack mode)",
    }

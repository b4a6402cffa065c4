"""Formulations by name, by data and by the keys of files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from gapless.api.problems import table_problem
from gapless.formulations import files, registry
from gapless.formulations.errors import InvalidProblemError
from gapless.formulations.problem import Problem
from gapless.formulations.registry import (
    data_keys,
    formulation_by_keys,
    formulation_named,
    formulation_names,
    formulation_of,
    register_formulation,
)
from gapless.formulations.workload import Request, Workload
from gapless.solvers.chunking.samples import sample_problem
from tests.entry_points import install
from tests.toy.family import TOY, Toy, ToyFormulation

WORKLOAD = Workload(requests=(Request(name="r", network="net"),))


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a test registers outlives it."""
    monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture
def toy() -> ToyFormulation:
    register_formulation(TOY)
    return TOY


def test_those_of_gapless_are_known_by_name() -> None:
    assert {"chunking", "flow_shop"} <= set(formulation_names())
    for name in formulation_names():
        found = formulation_named(name)
        assert found.name == name
        assert formulation_named(name) is found
        assert next(iter(found.terms)), "what is asked where only feasibility counts"
        assert set(found.tie_break) <= set(found.terms)
        assert all(str(name) == info.name for name, info in found.terms.items())
        assert all(str(name) == info.name for name, info in found.quantities.items())


def test_an_unknown_name_is_explained() -> None:
    with pytest.raises(InvalidProblemError, match="no formulation 'chunkin'; did you mean chunking"):
        formulation_named("chunkin")
    with pytest.raises(InvalidProblemError, match=r"no formulation 'xyzzy'.*chunking.*flow_shop"):
        formulation_named("xyzzy")


def test_data_belongs_to_a_formulation() -> None:
    assert formulation_of(None).name == "chunking"
    assert formulation_of(WORKLOAD).name == "flow_shop"
    assert sample_problem().formulation.name == "chunking"


@dataclass(frozen=True)
class Stray:
    """Data of a formulation that is not there."""

    data_key: ClassVar[str] = "stray"


@pytest.mark.parametrize(
    ("data", "word"), [(Stray(), "Stray"), (object(), "object"), ("flow_shop", "str"), (3, "int")]
)
def test_data_of_no_formulation_is_refused(data: object, word: str) -> None:
    with pytest.raises(InvalidProblemError, match=f"{word} is no data of a problem"):
        formulation_of(data)
    with pytest.raises(InvalidProblemError):
        replace(sample_problem(), data=data)


def test_the_keys_of_a_file_name_its_formulation(toy: ToyFormulation) -> None:
    assert formulation_by_keys(()).name == "chunking"
    assert formulation_by_keys(("platform", "costs", "nonsense")).name == "chunking"
    assert formulation_by_keys(("platform", "workload")).name == "flow_shop"
    assert formulation_by_keys(("toy", "platform")) is toy
    assert {"workload", "toy"} <= set(data_keys())


def test_a_registered_formulation_is_like_any_other(toy: ToyFormulation) -> None:
    assert "toy" in formulation_names()
    assert formulation_named("toy") is toy
    problem = _toy_problem()
    assert problem.formulation is toy
    assert files.parse_problem(files.dump_problem(problem).encode(), name="file") == problem


def test_registering_twice_is_the_same_as_once(toy: ToyFormulation) -> None:
    register_formulation(toy)
    assert formulation_names().count("toy") == 1


def test_names_and_keys_belong_to_one_formulation(toy: ToyFormulation) -> None:
    class SameName(ToyFormulation):
        name = "toy"
        data_key = "other"

    class SameKey(ToyFormulation):
        name = "other"
        data_key = "workload"

    class NoKey(ToyFormulation):
        name = "other"
        data_key = None

    with pytest.raises(InvalidProblemError, match="there is a formulation 'toy' already"):
        register_formulation(SameName())
    with pytest.raises(InvalidProblemError, match="'workload' belongs to the formulation 'flow_shop'"):
        register_formulation(SameKey())
    with pytest.raises(InvalidProblemError, match="without data belong to the formulation 'chunking'"):
        register_formulation(NoKey())
    assert "other" not in formulation_names()


def test_formulations_come_as_entry_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    targets = {"toy": "tests.toy.family:TOY", "lost": "gapless.nowhere:X", "chunking": "tests.toy.family:TOY"}
    install(monkeypatch, tmp_path, registry.ENTRY_POINT_GROUP, targets)
    assert formulation_names()[-2:] == ("toy", "lost")
    assert formulation_named("toy") is TOY
    assert formulation_named("chunking").data_key is None, "built-in names come first"
    with pytest.raises(InvalidProblemError, match=r"'lost' .*gapless\.nowhere:X: ModuleNotFoundError"):
        formulation_named("lost")
    # What cannot be loaded is in the way of nothing else.
    assert data_keys() == (
        "cooperation",
        "workload",
        "jobs",
        "partition",
        "passage",
        "pipelines",
        "tasks",
        "toy",
    )
    assert formulation_of(WORKLOAD).name == "flow_shop"
    assert sample_problem().formulation.name == "chunking"
    with pytest.raises(InvalidProblemError, match="did you mean gapness"):
        sample_problem("gapnes")


def _toy_problem() -> Problem:
    plain = table_problem([[3, 5]], ["cpu", "gpu"], network="net", objective="period")
    return replace(plain, data=Toy(weights=(2,)))

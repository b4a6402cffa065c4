"""The examples in the docstrings of public names do what they show."""

from __future__ import annotations

import doctest
import inspect
from dataclasses import replace
from typing import Any

import pytest

from gapless.formulations.coordination.scenario import Scenario
from gapless.profiler.coordination import catalog
from tests.gapless.test_public_names import public_names

MEASURING = {"profile", "run", "tune"}
"""Their examples measure this machine, so they are shown and not run."""

SLOW = {
    "bound_coordination",
    "chunks_over_graph",
    "compare_instances",
    "compare_kinds",
    "compare_layer_orders",
}

WITH_EXAMPLES = {"check", "compare", "load_problem", "load_workload", "plan", "score", "simulate", *MEASURING}


def examples_of(name: str) -> list[doctest.DocTest]:
    found = inspect.unwrap(public_names()[name])
    if not callable(found):
        return []
    finder = doctest.DocTestFinder(recurse=inspect.isclass(found), exclude_empty=True)
    return [test for test in finder.find(found, name, globs={}) if test.examples]


@pytest.fixture(autouse=True)
def short_scenarios(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let shipped scenarios last two seconds of simulated time instead of a minute."""
    usual = catalog.shipped_scenario

    def short(name: str) -> Scenario:
        return replace(usual(name), duration_us=2_000_000)

    monkeypatch.setattr(catalog, "shipped_scenario", short)


def is_skipped(example: doctest.Example) -> bool:
    return doctest.SKIP in example.options


SHOWN: dict[str, list[doctest.DocTest]] = {
    name: tests for name in public_names() if (tests := examples_of(name))
}


def test_what_users_begin_with_has_examples() -> None:
    assert set(SHOWN) >= WITH_EXAMPLES
    for name in WITH_EXAMPLES - MEASURING:
        assert not any(is_skipped(example) for test in SHOWN[name] for example in test.examples), name


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in SHOWN
        if name not in MEASURING
    ],
)
def test_they_do_what_they_show(name: str) -> None:
    for test in SHOWN[name]:
        told: list[Any] = []
        doctest.DocTestRunner(verbose=False).run(test, out=told.append)
        assert not told, "".join(told)

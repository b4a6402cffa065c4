"""Sizes of batches as a decision: which choices there are, and which one is taken."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import pytest

from gapless.api.batches import batchings, plan_batches
from gapless.api.models import in_batches
from gapless.api.problems import ServiceWords, load_workload
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_problem, save
from gapless.formulations.problem import Problem
from tests.workload_instances import workload_problem

FROM_FILE = ("net", "net*2", "net*4", "other")

ONE: list[list[int | None]] = [[30, 50], [20, 40]]
"""A batch of 2 takes 1.2 times as long as one inference, a batch of 4 3.2 times."""


def scaled(factor: float) -> list[list[int | None]]:
    return [[round(factor * (time or 0)) for time in row] for row in ONE]


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    tables = {"net": ONE, "net*2": scaled(1.2), "net*4": scaled(3.2)}
    problem: Problem = workload_problem(tables, ["net"])
    path = tmp_path / "problem.json"
    save(dump_problem(problem), path)
    return path


def test_each_size_is_filled_and_the_rest_is_smaller() -> None:
    assert batchings("mobilenetv2x7,bert", [1, 2, 4]) == (
        "mobilenetv2x7,bert",
        "mobilenetv2*2x3,mobilenetv2,bert",
        "mobilenetv2*4,mobilenetv2*3,bert",
    )
    assert batchings("netx6,other", [4, 2], FROM_FILE) == (
        "netx6,other",
        "net*2x3,other",
        "net*4,net*2,other",
    )
    assert batchings("net*2x3", [4], FROM_FILE) == ("net*2x3",)


@pytest.mark.parametrize(
    ("workload", "sizes", "known", "words"),
    [
        ("bertx2", [0], None, "from 1 to"),
        ("bertx2", [], None, "not given"),
        ("netx2", [3], FROM_FILE, "no network in batches of 3"),
        ("netx2", [2], ("other",), "net"),
        ("bertx64,vitx64", list(range(1, 60)), None, "more than 100"),
    ],
)
def test_what_cannot_be_chosen(
    workload: str, sizes: list[int], known: tuple[str, ...] | None, words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        batchings(workload, sizes, known)


def test_the_least_time_for_all_inferences_is_taken(measured: Path) -> None:
    found = plan_batches("netx4", [1, 2, 4], problem=str(measured))
    assert found[0].workload == "net*2x2"
    assert [choice.key for choice in found] == sorted(choice.key for choice in found)
    assert {choice.workload for choice in found} == {"netx4", "net*2x2", "net*4"}


@pytest.mark.slow
def test_windows_decide_too(measured: Path) -> None:
    """A batch of 4 leaves as a whole, 160 us after it came."""
    found = plan_batches("netx4", [4], problem=str(measured), windows={"net": (0, 155)})
    assert [choice.workload for choice in found if choice.result.values] == ["netx4"]


def test_objectives_that_count_requests_are_refused(measured: Path) -> None:
    with pytest.raises(InvalidInputError, match="means another thing for batches"):
        plan_batches("netx2", [1, 2], problem=str(measured), objective="latency")


def test_models_in_batches_are_networks_of_their_own() -> None:
    shapes = {"x": (1, 3, 8, 8)}
    assert in_batches(["dir/a.onnx"], shapes, [1, 4]) == (
        ["dir/a.onnx=dir/a.onnx", "dir/a.onnx*4=dir/a.onnx"],
        {"dir/a.onnx/x": (1, 3, 8, 8), "dir/a.onnx*4/x": (4, 3, 8, 8)},
    )
    assert in_batches(["a=b.onnx"], shapes, [2]) == (["a*2=b.onnx"], {"a*2/x": (2, 3, 8, 8)})
    for wrong in ({}, {"x": (2, 3, 8, 8)}):
        with pytest.raises(InvalidInputError, match="first dimension"):
            in_batches(["a=b.onnx"], wrong, [2])


def test_its_words_are_those_of_workloads() -> None:
    own = [name for name in signature(load_workload).parameters if name != "text"]
    assert list(ServiceWords.__annotations__) == own

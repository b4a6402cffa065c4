from __future__ import annotations

import inspect
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gapless
from gapless.api.asked import Words, asked_problem, for_backends
from gapless.api.coordinators import CoordinatorOptions, open_coordinator
from gapless.api.execution import PipelineOptions
from gapless.api.planning import plan
from gapless.formulations.deployment import Mode
from gapless.formulations.errors import GaplessError, InvalidInputError, UnknownBackendError
from gapless.formulations.files import dump_problem
from gapless.formulations.limits import Limits
from gapless.formulations.passages import Passage
from gapless.formulations.problem import Problem
from gapless.question.question import Question

OCTREE = "pixel7a/octree"
SHARES = f"{Path(__file__).parents[3] / 'docs/examples/shares_backend.py'}:SharesBackend"
"""A heuristic that knows one chunk per unit, and no other plans."""


def hopping() -> Problem:
    """Return a problem that knows what a hop costs, and where coming back pays."""
    rows = {"a": [1.0, 9.0], "b": [9.0, 2.0], "c": [1.0, 9.0]}
    problem = gapless.table_problem(rows, ["npu", "cpu"])
    measured = replace(problem.costs.provenance, hops=True)
    return replace(problem, costs=replace(problem.costs, provenance=measured))


def test_the_words_of_python_are_the_fields_of_a_question() -> None:
    names = [each.name for each in fields(Question) if each.name != "problem"]
    assert set(Words.__annotations__) == {*names, "rules"}
    given = list(inspect.signature(plan).parameters)
    assert given[: len(names) + 2] == ["problem", *Words.__annotations__]


def test_python_and_a_question_ask_for_the_same_problem() -> None:
    words = Words(objective="latency", limits=Limits(max_units=2), layer_order="fixed")
    asked = asked_problem(OCTREE, words)
    question = Question(problem=OCTREE, objective="latency", limits=Limits(max_units=2), layer_order="fixed")
    assert asked.question == question
    assert asked_problem(question, {}).problem == asked.problem
    assert asked_problem(gapless.load_problem(OCTREE), words).problem == asked.problem
    assert gapless.plan(question).best == gapless.plan(OCTREE, **words).best
    front = gapless.pareto(question, "period,latency")
    assert front.points[0].candidate.plan == gapless.plan(question, objective="period,latency").plan


def test_a_workload_is_asked_for_by_words() -> None:
    words = Words(workload="yolov4,bert", platform="kirin990", window={"bert": (20_000, None)})
    asked = asked_problem(None, words)
    assert asked.question.passage == "any"
    assert asked.problem == gapless.load_workload(
        "yolov4,bert", platform="kirin990", windows={"bert": (20_000, None)}
    )
    late = asked_problem(None, Words(**{**words, "window": "bert=20ms.."}))  # type: ignore[typeddict-item]
    assert late.problem == asked.problem, "values may be texts, as in files"
    stream = asked_problem(None, Words(workload="yolov4,bert", platform="kirin990", mode="stream"))
    assert (stream.problem.data.mode, stream.question.passage) == (Mode.STREAM, "ordered")
    batch = asked_problem(None, Words(workload="yolov4,bert", platform="kirin990", mode="batch"))
    assert batch.problem == gapless.load_workload("yolov4,bert", platform="kirin990")
    ordered = asked_problem(None, Words(**{**words, "order": "fixed", "passage": "ordered"}))
    assert str(ordered.problem.data.order) == "fixed"


def test_a_model_is_planned_over_devices_by_words() -> None:
    found = asked_problem("squeezenet", Words(platform="raspberry-pis", devices={"pi4": 0}, batch=2)).problem
    model = gapless.open_model("squeezenet")
    assert (
        found.costs.networks[0].layer_us
        == asked_problem(model, Words(platform="raspberry-pis", devices={"pi4": 0}, batch=2))
        .problem.costs.networks[0]
        .layer_us
    )
    with pytest.raises(InvalidInputError, match="a model is given, and no problem"):
        asked_problem(model, {})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"colour": "red"}, "colour cannot be asked"),
        ({"order": "fre", "workload": "bert", "platform": "kirin990"}, "order is 'fre'; did you mean free"),
        ({"batch": 2}, "--batch is about a network over devices"),
        ({"costs": "heavy"}, "this one is made"),
        ({"costs": "heavy", "workload": "octree"}, "this one is made"),
        ({"mode": "bad", "workload": "bert", "platform": "kirin990"}, "mode is 'bad'"),
        ({"over_graph": "no"}, "over_graph is 'no', must be True or False"),
        ({"limits": {"max_units": 2}}, "must be gapless.Limits"),
        ({"window": {"bert": 7}}, "window is {'bert': 7}, must be NAME=FROM..TO"),
        ({"batch": 0}, "batch is 0, must be at least 1"),
        ({"devices": "agx"}, "devices: 'agx'"),
        ({"task_slots": 2}, "task_slots are of a workload"),
    ],
)
def test_what_cannot_be_asked_is_refused(words: Any, said: str) -> None:
    problem = None if "platform" in words else gapless.load_problem(OCTREE)
    with pytest.raises(InvalidInputError, match=said):
        asked_problem(problem, words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"top": 1.5}, "top is 1.5, must be a whole number"),
        ({"top": "3"}, "top is '3', must be a whole number"),
        ({"distance": 0}, "distance is 0, must be at least 1"),
        ({"threads": 1_000_000}, "threads is 1000000, must be at most 1024"),
        ({"seed": -1}, "seed is -1, must be at least 0"),
        ({"time_limit_s": "3"}, "the time limit is '3', must be a number of seconds"),
        ({"time_limit_s": True}, "the time limit is True, must be a number of seconds"),
        ({"backend": 3}, "backend is 3, must be a name such as 'native'"),
        ({"rules": lambda view: view.uses("Big")}, "must be a list of rules"),
        ({"rules": "rules.py"}, "rules is 'rules.py', must be a list of rules"),
    ],
)
@pytest.mark.parametrize("backend", ["native", "pulp"])
def test_how_it_is_solved_is_checked(words: Any, said: str, backend: str) -> None:
    with pytest.raises((InvalidInputError, UnknownBackendError), match=said):
        gapless.plan(gapless.load_problem(OCTREE), **{"backend": backend, **words})


@pytest.mark.parametrize("time_limit_s", [np.int64(60), np.float32(60)])
def test_numbers_of_numpy_say_how_it_is_solved(time_limit_s: Any) -> None:
    words: Any = {"top": np.int64(2), "seed": np.uint8(1), "time_limit_s": time_limit_s}
    found = gapless.plan(gapless.load_problem(OCTREE), backend="pulp", **words)
    assert found.proven == 2


def test_tables_and_limits_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="max_units is 0, must be at least 1"):
        Limits(max_units=0)
    with pytest.raises(InvalidInputError, match="units is 'cpu', must be a list of names"):
        gapless.table_problem({"a": [1, 2, 3]}, "cpu")
    with pytest.raises(InvalidInputError, match="row 'a', column 0: inf ms"):
        gapless.table_problem({"a": [10**400]}, ["cpu"])


def test_a_name_is_asked_about_as_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "problem.json"
    path.write_text(dump_problem(hopping()))
    asked = asked_problem(path, {})
    assert isinstance(asked.problem.data, Passage)
    assert asked_problem(hopping(), {}).problem.data is None, "a problem says it itself"
    assert gapless.plan(path).objective < gapless.plan(hopping()).objective  # type: ignore[operator]
    assert gapless.plan(path, passage="once").objective == gapless.plan(hopping()).objective
    assert for_backends(asked, ["native"]) is asked
    once = for_backends(asked, [SHARES])
    assert once.problem.data is None
    assert "shares can plan no others" in once.notes[-1]
    assert str(gapless.plan(path, backend=SHARES).plan) == str(
        gapless.plan(path, passage="once", backend=SHARES).plan
    )
    compared = gapless.compare(path, backends=["native", SHARES])
    assert compared.problem.data is None
    assert not compared.failures


def test_a_workload_on_a_problem_is_asked_about_as_by_name() -> None:
    name = "pixel7a/alexnet-sparse"
    by_name = asked_problem(name, Words(workload="alexnet-sparsex2"))
    assert (
        asked_problem(gapless.load_problem(name), Words(workload="alexnet-sparsex2")).problem
        == by_name.problem
    )
    assert by_name.question.passage == "any"


def test_options_that_are_handed_on_are_those_of_the_function() -> None:
    for words, function in ((PipelineOptions, gapless.open_pipeline), (CoordinatorOptions, open_coordinator)):
        own = inspect.signature(function).parameters.values()
        assert list(words.__annotations__) == [each.name for each in own if each.kind is each.KEYWORD_ONLY]


def test_only_a_name_that_the_caller_gives_has_code_run(tmp_path: Path) -> None:
    """A question may come from a file of data: the model that it names is not run."""
    path = tmp_path / "model.py"
    path.write_text("raise ZeroDivisionError('it ran')")
    question = Question.of_texts({"problem": f"{path}:NET", "platform": "raspberry-pis"})
    with pytest.raises(InvalidInputError, match="--trust"):
        asked_problem(question, {})
    with pytest.raises(GaplessError, match="it ran"):
        asked_problem(f"{path}:NET", Words(platform="raspberry-pis"))

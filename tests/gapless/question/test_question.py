from __future__ import annotations

import re
from dataclasses import replace

import pytest

import gapless
from gapless.api.asked import problem_of, settled, with_usual_passage
from gapless.formulations.deployment import Mode
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.limits import LIMITS, Limits
from gapless.formulations.workload import Execution, RequestOrder
from gapless.question.question import About, Question, asked_fields, renamed

EVERYTHING = Question(
    problem="measured.json",
    workload="a,bx2",
    platform="kirin990",
    devices={"pi5": 2},
    batch=4,
    shape={"x": (1, 3)},
    order=RequestOrder.FIXED,
    execution=Execution.COLUMNS,
    mode=Mode.STREAM,
    task_slots=3,
    contention="slow.json",
    costs="isolated",
    state={"h": "h_out", "c": "c_out"},
    pipelines="many",
    passage="ordered:gpu,npu",
    groups="all",
    over_graph=True,
    layer_order="0-2,5,3-4",
    segments="branches",
    objective="period,gapness",
    limits=Limits(**dict.fromkeys(LIMITS, 7)),
    window={"a": (20_000, None)},
)


def test_every_field_survives_its_text() -> None:
    texts = EVERYTHING.texts()
    assert set(texts) == {each.key for each in asked_fields()}, "one is not said"
    assert Question.of_texts(texts) == EVERYTHING
    assert texts["max_latency_us"] == "7", "the key has the unit: files mean what they meant"
    assert (texts["min_balance"], texts["mode"], texts["over_graph"]) == ("0.7%", "stream", "True")
    assert not Question().texts()
    assert not Question()
    assert EVERYTHING


def test_other_values_survive_their_text_too() -> None:
    for question in (
        Question(mode=Mode.BATCH, over_graph=False),
        Question(shape={"": (1, 3)}, window={"a": (0, 7)}),
    ):
        again = Question.of_texts(question.texts())
        assert again.texts() == question.texts()
    assert Question(mode=Mode.BATCH).texts() == {"mode": "batch"}
    assert not Question(over_graph=False).texts(), "that is what nothing said means"


def test_values_of_python_are_checked_and_may_be_texts_as_in_files() -> None:
    asked = Question(pipelines=2, window="bert=20ms..", shape={"x": [1, 3]}, order="fixed")  # type: ignore[arg-type, dict-item]
    assert (asked.pipelines, asked.window, asked.shape) == ("2", {"bert": (20_000, None)}, {"x": (1, 3)})
    assert asked.order is RequestOrder.FIXED
    for name, value in (("order", "bad"), ("batch", 2.5), ("devices", 3), ("objective", 2.5), ("limits", 3)):
        with pytest.raises(InvalidInputError, match=f"^{name} is "):
            Question(**{name: value})  # type: ignore[arg-type]


def test_names_of_options_have_no_units_and_old_ones_are_known() -> None:
    options = {each.name: each.option for each in asked_fields()}
    assert len(set(options.values())) == len(options)
    assert (options["max_latency_us"], options["min_balance_permille"]) == ("--max-latency", "--min-balance")
    assert (options["max_unit_memory_bytes"], options["mode"]) == ("--max-unit-memory", "--stream")
    found = renamed("--max-latency-us")
    assert found is not None
    assert found.option == "--max-latency"
    assert renamed("--max-hops") is None


def test_every_field_has_a_help_of_whole_sentences() -> None:
    for each in asked_fields():
        assert each.name == "problem" or re.fullmatch(r"[A-Z].*\.", each.help), each.name


def test_one_question_over_another_keeps_what_it_does_not_say() -> None:
    plan = Question(problem="a", objective="latency", limits=Limits(max_units=3, max_hops=1))
    given = Question(objective="period", limits=Limits(max_units=2))
    assert given.over(plan) == Question(
        problem="a", objective="period", limits=Limits(max_units=2, max_hops=1)
    )


def test_words_of_later_versions_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="named by 'colour', which this gapless does not know"):
        Question.of_texts({"problem": "a", "colour": "red"})


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Question(), "no problem is named"),
        (Question(problem="pixel7a/octree", order=RequestOrder.FIXED), "--order is about a workload"),
        (Question(problem="pixel7a/octree", mode=Mode.STREAM), "--stream is about a workload"),
        (
            Question(problem="pixel7a/octree", batch=2),
            "--batch is about a network over devices: give --platform",
        ),
        (Question(problem="pixel7a/octree", over_graph=True), "--over-graph is about a network over devices"),
        (
            Question(problem="squeezenet", platform="raspberry-pis", over_graph=True),
            "about groups of devices",
        ),
        (Question(problem="squeezenet", platform="raspberry-pis", costs="heavy"), "between measured tables"),
        (Question(workload="bert", platform="kirin990", devices={"a": 1}), "omit --workload"),
        (Question(problem="pixel7a/octree", segments="layers"), "about layers side by side"),
        (Question(problem="pixel7a/octree", layer_order="free", pipelines="2"), "chunks of one order"),
    ],
)
def test_what_has_no_meaning_for_a_problem_is_refused_by_its_option(question: Question, words: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(words)):
        problem_of(question)


def test_a_question_names_the_problem_that_python_makes() -> None:
    asked = Question(problem="octree", platform="pixel7a", objective="latency", limits=Limits(max_units=2))
    made = gapless.load_problem("pixel7a/octree").with_objective("latency").with_limits(max_units=2)
    assert problem_of(asked) == made
    assert {each.about for each in asked_fields()} == set(About)


def test_what_was_chosen_is_said_where_nothing_was_asked() -> None:
    usual = with_usual_passage(Question(workload="yolov4,bert", platform="kirin990"))
    problem = problem_of(usual)
    asked, _ = settled(usual, problem)
    assert asked == replace(usual, passage="any")
    assert problem_of(asked) == problem
    fixed = replace(usual, execution=Execution.COLUMNS)
    assert settled(fixed, problem_of(fixed))[0].passage == "ordered"
    one = with_usual_passage(Question(problem="pixel7a/octree"))
    assert settled(one, problem_of(one))[0] == Question(problem="pixel7a/octree")

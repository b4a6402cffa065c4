"""Tests of what is said besides a question."""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

from gapless.cli.base.declared import called, declared, expanded
from gapless.cli.commands.planning import Compared
from gapless.cli.options.cluster import ClusterChoice
from gapless.executor.graph.choices import Granularity
from gapless.executor.tuning.racing import TuningMode, TuningOptions
from gapless.formulations.coordination.sessions import SessionChoice
from gapless.formulations.coordination.simulation import Conditions, Late
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import Precision
from gapless.question.fields import Only, Said, given
from gapless.question.service import Hosting, Play, Service
from gapless.question.subjects import (
    Folder,
    Inputs,
    Machine,
    Measuring,
    Opening,
    Race,
    Running,
    Search,
)
from gapless.question.values import YES
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.sources import StartMode

SAID: tuple[Said, ...] = (
    Opening(shape={"x": (1, 3)}, granularity=Granularity.PIECE, materialize=True),
    Inputs(feed=Path("a b.npz"), input_range=("a=0:1", "b c=1:2")),
    Machine(engine="mnn", units=("a", "b"), emulate={"core 1": 505, "b": 1000}),
    Machine(device=Path("board.json")),
    Machine(precision=Precision.LOW),
    Search(pareto="period,energy", top=3, distance=2, time_limit_s=0.25, memory_limit_bytes=2**31, seed=1),
    Search(strict_rules=True, threads=2, start="both"),
    Race(groups="all", backends=("native", "m.py:B"), costs="heavy", rounds=2, mode=TuningMode.FIXED),
    Race(budget_s=90.0, sustain_s=1200.0, truth="heavy", noise_permille=55, store=Path("s")),
    Measuring(
        side_by_side=True, batch=(1, 2), steady=True, item_seconds=0.1, most_workers=2, accept_noise=True
    ),
    Running(at=("old=/a b/new",), seconds=0.5, requests=2, warm_up=0, task_slots=2, restart=True),
    Running(check=False, feed=Path("x"), output=Path("y"), trace=Path("z")),
    Folder(out=Path("o"), resume=True, overwrite=True),
    Hosting(host="::1", port=0, socket=Path("s"), allow_host=("a", "b"), grpc_port=1),
    Hosting(max_body_bytes=2**21),
    Hosting(token_file=Path("t"), admin_token_file=Path("a"), metrics_token_file=Path("m")),
    Service(policy="sel", deadline_us={"a:2": 50_000}, late=Late.DROP, queue=1, problem="p", split=2),
    Service(
        seconds=1.5, restarts=0, give_up_s=math.inf, cannot=("a=B,C",), hot=("a=z:1",), control=Path("c")
    ),
    Play(policy=("lst", "my.py:P"), platform="pixel4", problem="p", behaviour=Path("b"), split=2),
    Play(late=Late.DROP, seconds=0.5, pace=0.1, seed=3, smoothing=0.2, noise_estimates_permille=5),
    Play(
        noise_times_permille=1000, rest_kelvin=2.5, power=8.5, multipliers="1,2", here=True, cannot=("a=B",)
    ),
    Play(bound_s=2.0, bound_frames=3, sessions=SessionChoice.ALL, session_memory_bytes=2**20),
    Play(workers=("npu=2",), crowd=Path("faces.csv")),
    Service(sessions=SessionChoice.USEFUL, session_memory_bytes=200_000_000, state=("h=h_out",)),
    Service(max_batch=8, max_delay_s=0.002),
    Service(smoothing=0.5, workers=("core0=2", "core1=3")),
    Service(rest_kelvin=5.0, power=7.5, behaviour=Path("b")),
    ClusterChoice(local="2"),
    ClusterChoice(address="h:1", allow_no_token=True),
    Compared(backends="a,b", backend="c", kinds="all", layer_orders="all", instances="f", jobs=2),
)


def through_the_command_line(said: Said) -> Said:
    """Return what a command gets that is told what is said."""
    parameter = inspect.Parameter("it", inspect.Parameter.KEYWORD_ONLY, annotation=type(said))
    (group,) = declared({"it": parameter}).values()
    values: dict[str, Any] = {each.name: each.default for each in group.parameters()}
    for field, value in group.given(said):
        words = field.words(value)
        texts = [word.partition("=")[2] for word in words]
        assert all(word.partition("=")[0] == field.option for word in words)
        if field.flag is not None:
            values[called(field)] = field.flag is not False
        else:
            values[called(field)] = texts if field.form.repeated else texts[0]
    found: Said = group.take(values)
    assert not values, "an option is not taken"
    return found


@pytest.mark.parametrize("said", SAID, ids=lambda said: type(said).__name__)
def test_what_is_said_survives_the_command_line_and_files(said: Said) -> None:
    assert through_the_command_line(said) == said
    assert type(said).of_texts(said.texts()) == said
    assert said.texts()


def test_every_field_is_said_above() -> None:
    named = {(type(one), name) for one in SAID for name, _ in one.said()}
    known = {(type(one), each.name) for one in SAID for each in one.own_fields()}
    assert known - named == {(Opening, "simplify")}, "its other value is in a test of its own"
    assert Opening.of_texts({"simplify": "off"}).texts() == {"simplify": "off"}


def test_fields_have_a_heading_and_whole_sentences() -> None:
    for one in SAID:
        for each in one.own_fields():
            assert each.heading, each.name
            assert (each.form is YES) == (each.flag is not None), "yes and no are flags"
            assert re.fullmatch(r"[A-Z].*[.]|race: .*[.]", each.help), each.name


@pytest.mark.parametrize(
    ("kind", "name", "value", "words"),
    [
        (Search, "top", 0, "top is 0, must be at least 1"),
        (Search, "top", 2.5, "top is '2.5', must be a whole number"),
        (Search, "threads", 2000, "threads is 2000, must be at most 1024"),
        (Search, "time_limit_s", "soon", "time_limit_s is 'soon', must be a time with its unit"),
        (Search, "time_limit_s", -1, "time_limit_s is"),
        (Search, "time_limit_s", math.nan, "time_limit_s is nan, must be TIME"),
        (Search, "memory_limit_bytes", 1, "memory_limit_bytes is '1B', must be at least 1KiB"),
        (Race, "mode", "sprint", "mode is 'sprint'; choose one of race, fixed"),
        (Race, "sustain_s", "2h5", "sustain_s is '2h5'"),
        (Race, "sustain_s", "25h", "sustain_s is '25h', must be at most 24h"),
        (Machine, "emulate", "core0=half", "emulate is 'core0=half', must be a unit and a percentage"),
        (Machine, "emulate", "a=50% a=40%", "once per unit"),
        (Machine, "emulate", "a=0%", "must be a unit and a percentage"),
        (Machine, "units", 3, "units is 3, must be NAME,NAME"),
        (Opening, "shape", 3, "shape is 3, must be INPUT=N,C,H,W"),
        (Play, "noise_times_permille", "101%", "noise_times_permille is 101%, must be at most 100"),
        (Play, "pace", "nan", "pace is 'nan', must be a number"),
        (Play, "pace", 2000.0, "pace is 2000.0, must be at most 1000"),
        (Service, "deadline_us", "a=1ms a=2ms", "once per model"),
    ],
)
def test_values_are_checked_with_the_words_of_the_command_line(
    kind: type[Said], name: str, value: object, words: str
) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(words)):
        kind(**{name: value})
    if isinstance(value, str):
        with pytest.raises(InvalidInputError) as said:
            kind.field_named(name).read(value, in_file=False)
        assert str(said.value).removeprefix(kind.field_named(name).option) in words or words in str(
            said.value
        ).replace(kind.field_named(name).option, name)


def test_numbers_of_python_are_in_the_unit_of_their_name_and_texts_have_their_own() -> None:
    assert Search(time_limit_s=2).time_limit_s == Search(time_limit_s="2s").time_limit_s == 2.0  # type: ignore[arg-type]
    assert Search(time_limit_s="1500ms").time_limit_s == 1.5  # type: ignore[arg-type]
    assert Search(memory_limit_bytes="2GiB").memory_limit_bytes == 2**31  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"^--time-limit: '2' has no unit \(us, ms, s, min, h\), "):
        Search.field_named("time_limit_s").read("2", in_file=False)


def test_a_command_has_options_of_some_fields_with_defaults_of_its_own() -> None:
    def command(*, search: Annotated[Search, Only.of("top", "time_limit_s")] = Search(top=10)) -> Search:
        return search

    arguments, parameters = expanded(command)
    assert [(each.name, each.default) for each in parameters] == [("top", "10"), ("time_limit", None)]
    assert arguments({"top": "10", "time_limit": None}) == {"search": Search(top=10)}
    assert arguments({"top": "1", "time_limit": "1min"}) == {"search": Search(top=1, time_limit_s=60.0)}


def test_a_default_of_a_command_is_told_a_board_only_where_another_one_is_said() -> None:
    parameter = inspect.Parameter(
        "search", inspect.Parameter.KEYWORD_ONLY, default=Search(top=10), annotation=Search
    )
    group = declared({"search": parameter})["search"]
    assert not list(group.given(Search(top=10)))
    assert [(field.option, value) for field, value in group.given(Search(top=1))] == [("--top", 1)]


def test_what_is_said_makes_the_options_of_what_does_it() -> None:
    search = Search(
        top=3, distance=2, time_limit_s=0.5, memory_limit_bytes=2**30, seed=4, threads=2, start="none"
    )
    assert search.solver_options == SolveOptions(
        top=3,
        distance=2,
        time_limit_s=0.5,
        memory_limit_bytes=2**30,
        seed=4,
        threads=2,
        start=StartMode.NONE,
    )
    race = Race(mode=TuningMode.FIXED, budget_s=3.0)
    assert race.made(TuningOptions, seed=7) == TuningOptions(mode=TuningMode.FIXED, budget_s=3.0, seed=7)
    play = Play(late=Late.DROP, smoothing=0.5, rest_kelvin=2.0, seed=9)
    assert play.made(Conditions, seed=1) == Conditions(late=Late.DROP, smoothing=0.5, rest_kelvin=2.0, seed=1)


def test_what_python_says_of_fields_is_checked_or_refused() -> None:
    assert given(Search.own_fields(), {"top": None}) == []
    assert [(field.name, value) for field, value in given(Search.own_fields(), {"top": "3"})] == [("top", 3)]
    with pytest.raises(InvalidInputError, match="'tops' cannot be said here; did you mean top"):
        given(Search.own_fields(), {"tops": 3})


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (Race, {"budget_s": True}),
        (Race, {"costs": True}),
        (Search, {"top": True}),
        (Service, {"smoothing": True}),
        (Service, {"deadline_us": {"net": 0}}),
        (Machine, {"units": []}),
        (Race, {"backends": ()}),
        (Opening, {"shape": {"x": "abc"}}),
        (Opening, {"shape": {"x": "13"}}),
        (Opening, {"shape": {"x": (-1, 3)}}),
        (Opening, {"shape": {"x": (1.5, 3)}}),
    ],
)
def test_a_value_of_another_kind_is_refused(subject: type[Said], words: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(f"{next(iter(words))} is ")):
        subject(**words)


def test_numbers_of_numpy_are_numbers() -> None:
    assert Service(smoothing=np.float64(0.5)).smoothing == 0.5
    assert Race(budget_s=np.float64(2)).budget_s == 2.0
    shape: dict[str, tuple[Any, ...]] = {"x": (np.int64(1), 3)}
    assert Opening(shape=shape).shape == {"x": (1, 3)}


def test_a_share_that_is_no_whole_number_is_named_as_python_gave_it() -> None:
    half: dict[str, Any] = {"core1": 505.0}
    with pytest.raises(InvalidInputError, match=r"emulate is \{'core1': 505.0\}, must be UNIT=PERCENT"):
        Machine(emulate=half)
    assert Machine(emulate={"core1": np.int64(505)}).emulate == {"core1": 505}  # type: ignore[dict-item]

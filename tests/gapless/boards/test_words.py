"""What Python says to a board goes there as the options of a command."""

from __future__ import annotations

from typing import Any

import pytest

import gapless
from gapless.boards import board as boards
from gapless.formulations.errors import InvalidInputError


class _Asked(Exception):
    """Ends a call where the board would be asked."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options that a board would be given."""
    found: list[str] = []

    def noted(_address: object, _command: str, said: Any, *_more: object, **_how: object) -> None:
        found.extend(word for field, value in said for word in field.words(value))
        raise _Asked

    monkeypatch.setattr(boards, "run_there", noted)
    return found


def test_limits_and_terms_are_said_as_gapless_takes_them(told: list[str]) -> None:
    board = gapless.on("pi@board")
    with pytest.raises(_Asked):
        board.tune("squeezenet", pareto=["period", "energy"], limits=gapless.Limits(max_units=2))
    assert sorted(told) == ["--max-units=2", "--pareto=period,energy"]


def test_engines_and_batches_are_said_as_elsewhere_in_python(told: list[str]) -> None:
    board = gapless.on("pi@board")
    with pytest.raises(_Asked):
        board.tune("squeezenet", engine=["mnn", "onnxruntime"])
    with pytest.raises(_Asked):
        board.profile("squeezenet", batch=4)
    with pytest.raises(_Asked):
        board.profile("squeezenet", batch=[1, 2])
    assert told == ["--engine=mnn,onnxruntime", "--batch=4", "--batch=1,2"]


@pytest.mark.parametrize("words", [{"engine": [object()]}, {"engine": []}, {"engine": ["mnn", ""]}])
def test_engines_of_a_board_are_names(words: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="engine is "):
        gapless.on("pi@board").tune("squeezenet", **words)


@pytest.mark.parametrize("batch", [0, [], [1, 10_000], True, 1.5])
def test_what_is_no_batch_is_refused(batch: Any) -> None:
    with pytest.raises(InvalidInputError, match="batch is "):
        gapless.on("pi@board").profile("squeezenet", batch=batch)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"limits": {"max_units": 2}}, r"limits is \{'max_units': 2\}, must be gapless.Limits"),
        ({"limits": "max_units=2"}, "must be gapless.Limits"),
        ({"pareto": []}, "pareto is '', must be one name"),
    ],
)
def test_what_is_no_limit_and_no_term_is_refused(words: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        gapless.on("pi@board").tune("squeezenet", **words)


def test_only_tuning_has_limits() -> None:
    words: dict[str, Any] = {"limits": gapless.Limits()}
    with pytest.raises(InvalidInputError, match="'limits' cannot be said here"):
        gapless.on("pi@board").profile("squeezenet", **words)

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

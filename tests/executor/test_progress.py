"""Who is told how far a job is, where nobody says whom to tell."""

from __future__ import annotations

import io
import sys

import pytest

from gapless.executor.progress import Step, TerminalLine, shown_on_terminal, silent


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with shown_on_terminal(None) as report:
        report(Step(text="measuring \x1b[31m a\n  layer", done=1, total=4))
        report(Step(text="half a second has not passed"))
    first, line, last = terminal.getvalue().split("\r\x1b[2K")
    assert (first, last) == ("", "")
    assert line == r"25 %, 0 min 00 s: measuring \x1b[31m a layer"


def test_a_line_is_not_longer_than_the_terminal() -> None:
    TerminalLine(terminal := Terminal()).report(Step(text="x" * 500))
    assert len(terminal.getvalue().removeprefix("\r\x1b[2K")) == 79


def test_a_pipe_and_who_is_named_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    with shown_on_terminal(None) as report:
        assert report is silent
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    told: list[Step] = []
    with shown_on_terminal(told.append) as report:
        report(Step(text="one"))
    assert len(told) == 1
    assert not pipe.getvalue()
    assert not terminal.getvalue()

"""What people see: charts, words, safe text, progress."""

from __future__ import annotations

import os
import re
import sys
import time
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.table import Table
from rich.text import Text

from gapless.answers.words import millis, objective_words, percent, seconds, size, term_value
from gapless.api.problems import load_problem, table_problem
from gapless.cli.base import progress as progress_module
from gapless.cli.base.console import console, stdout_kept_clean
from gapless.cli.base.progress import Progress
from gapless.formulations.errors import ExecutionError, InvalidInputError
from gapless.formulations.printing import printable
from gapless.formulations.simulate import simulate
from gapless.formulations.terms import Objective

from ...solvers.fakes import feasible, plan
from .terminal.test_gantt import shown

PLAN = plan((0, 1, "gpu"), (1, 2, "cpu"))
SMALL = table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net")
TERMS = SMALL.formulation.terms


def test_a_chart_is_to_scale() -> None:
    problem = table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net")
    assert shown(simulate(problem, PLAN, requests=2), 56) == [
        " gpu 0===================1===================..........",
        " cpu ....................0=========..........1=========",
        "     0 ms                 2.500 ms             5.000 ms",
    ]


@pytest.mark.parametrize("width", [1, 30, 31, 79, 200])
@pytest.mark.parametrize("requests", [1, 7, 300])
def test_a_chart_fits_whatever_is_played(width: int, requests: int) -> None:
    problem = load_problem("pixel7a/alexnet-sparse")
    parts = plan((0, 1, "GPU"), (1, 8, "Big"), (8, 9, "Medium"), network="alexnet-sparse")
    lines = shown(simulate(problem, parts, requests=requests), width, wrapped=False)[:4]
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= max(width, 16)
    assert all(any(c.isdigit() for c in line) for line in lines[:3])  # the shortest chunk shows, too


def test_long_unit_names_are_cut_in_a_chart() -> None:
    problem = table_problem([[1]], ["u" * 60])
    lines = shown(simulate(problem, plan((0, 1, "u" * 60), network="network"), requests=1), 60)
    assert lines[0].startswith(f" {'u' * 15}~ 0=")


def test_numbers_in_words() -> None:
    assert [millis(None), millis(5), millis(1_234_567)] == ["-", "0.005 ms", "1,234.567 ms"]
    assert [size(None), size(0), size(1023), size(1536), size(2**40)] == [
        "-",
        "0 B",
        "1023 B",
        "1.5 KiB",
        "1.0 TiB",
    ]
    assert [percent(None), percent(5), percent(1000)] == ["-", "0.5 %", "100.0 %"]
    assert [seconds(0.0123), seconds(12.345)] == ["12.3 ms", "12.35 s"]
    assert term_value(TERMS, "idle", 103) == "10.3 %"
    assert term_value(TERMS, "peak_memory", 2**20) == "1.0 MiB"


def test_objectives_in_words() -> None:
    assert objective_words(TERMS, Objective()) == "least period, then gapness"
    assert objective_words(TERMS, Objective.slack(50)) == (
        "least idle share, among plans within 5.0 % of the least period"
    )
    assert objective_words(TERMS, Objective.paper()) == ("least paper gapness, then period, shown by period")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold]text[/]", "plain [bold]text[/]"),
        ("two\nlines", "two\nlines"),
        ("\x1b[31mred\r\x07", "\\x1b[31mred\\r\\x07"),
        ("\u202eright to left", "\\u202eright to left"),
        ("\u2028line", "\\u2028line"),
        ("\udcff", "\\udcff"),
        ("größe שלום", "größe שלום"),
    ],
)
def test_text_that_could_harm_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_messages_are_printable_whatever_they_quote() -> None:
    hostile = "\x1b]0;title\x07\u202egnp"
    error = InvalidInputError(f"no {hostile}", [hostile])
    assert str(error) == "no \\x1b]0;title\\x07\\u202egnp\n  - \\x1b]0;title\\x07\\u202egnp"
    assert str(ExecutionError(hostile)) == printable(hostile)


@pytest.mark.parametrize("name", ["\x1b[31mred", "\u202egnp.exe", "a\x00\u2066b", "\x9b31m"])
def test_names_in_tables_cannot_steer_the_terminal(name: str) -> None:
    written = StringIO()
    table = Table("unit", "time")
    table.add_row(name, "1.0 ms")
    table.add_row(Text(name), "1.0 ms")
    console(written).print(table)
    lines = written.getvalue().splitlines()
    assert printable(name) in written.getvalue()
    assert all(line.isprintable() for line in lines)
    assert len({len(line) for line in lines}) == 1  # what is written out is counted in the widths


def test_what_is_printed_meanwhile_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with stdout_kept_clean():
        sys.stdout.write("by Python\n")
        os.write(1, b"by a library\n")
    os.write(1, b"the answer\n")
    printed = capfd.readouterr()
    assert printed.out == "the answer\n"
    assert "by a library" in printed.err
    assert "by Python" in printed.err


class Terminal:
    """Standard error that says it is a terminal, and keeps what is written."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._write

    def text(self) -> str:
        os.close(self._write)
        with os.fdopen(self._read, newline="") as file:
            return file.read()


def test_progress_appears_renews_itself_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress_module, "FIRST_S", 0.01)
    with Progress(SMALL) as progress:
        progress.start("native")
        progress.publish(feasible(PLAN))
        deadline = time.monotonic() + 60
        while not progress._shown and time.monotonic() < deadline:
            time.sleep(0.01)
    monkeypatch.undo()
    shown = terminal.text()
    assert re.search(r"\r\x1b\[2Knative: \d+ s \(Ctrl-C stops\)", shown)
    assert shown.endswith("\r\x1b[2K")


def test_progress_is_silent_unless_it_takes_long_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    for stream in (terminal, sys.stderr):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            with Progress(SMALL) as progress:
                progress.start("native")
    assert terminal.text() == ""
    assert capsys.readouterr().err == ""


def test_the_progress_line_tells_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "time", SimpleNamespace(monotonic=lambda: 0.0))
    progress = Progress(SMALL)
    progress.start("cpsat")
    progress.publish(feasible(PLAN))
    assert progress.words() == "cpsat: 0 s (Ctrl-C stops)"
    claim = replace(feasible(PLAN), values=(7648, 2423))
    progress.publish(claim)
    assert progress.words() == "cpsat: 0 s, period 7.648 ms so far (Ctrl-C stops)"
    staged = Progress(SMALL.with_objective("slack:50"))
    staged.publish(claim)
    assert "so far" not in staged.words()

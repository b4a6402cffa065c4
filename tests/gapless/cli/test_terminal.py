"""What a terminal shows: progress with what is left, colours or none, and silence when that is asked for."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from gapless.api.problems import table_problem
from gapless.cli.base.console import OutputStyle, console, output_style, using_style
from gapless.cli.base.general_options import split_general
from gapless.cli.base.progress import BAR_WIDTH, Line, Progress, StepLine, bar, span
from gapless.executor.progress import Step
from gapless.solvers.protocol import Claim, SolveStatus, StopReason

SMALL = table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net")


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "[--------------------]   0 %"),
        (0.5, "[##########----------]  50 %"),
        (1.0, f"[{'#' * 20}] 100 %"),
    ],
)
def test_a_bar(share: float, shown: str) -> None:
    assert bar(share) == shown


def test_a_bar_never_leaves_its_frame() -> None:
    assert bar(7.0) == bar(1.0)
    assert bar(-1.0) == bar(0.0)
    assert bar(0.999).startswith(f"[{'#' * (BAR_WIDTH - 1)}-]  99 %")


def test_spans() -> None:
    shown = [span(seconds) for seconds in (0, 0.6, 59.4, 59.6, 187, 3599.4, 7500)]
    assert shown == ["0 s", "1 s", "59 s", "1 min 00 s", "3 min 07 s", "59 min 59 s", "2 h 05 min"]


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("gapless.cli.base.progress.time.monotonic", lambda: self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_step_line_tells_what_is_left(clock: Clock) -> None:
    line = StepLine()
    assert line.words() == ""
    line.report(Step(text="opening\nthe model"))
    assert line.words() == "0 s: opening the model"
    line.report(Step(text="layer 0", done=0, total=8))
    assert line.words() == "[--------------------]   0 %  0 s: layer 0"
    clock.wait(10)
    line.report(Step(text="layer 2", done=2, total=8))
    assert line.words() == "[#####---------------]  25 %  10 s, about 30 s left: layer 2"


def test_what_is_left_is_of_the_part_at_hand(clock: Clock) -> None:
    line = StepLine()
    line.report(Step(text="profiling", done=0, total=2))
    clock.wait(100)
    line.report(Step(text="profiling", done=2, total=2))
    line.report(Step(text="rung 1", done=0, total=50))
    clock.wait(10)
    line.report(Step(text="rung 1", done=10, total=40))
    assert line.words() == "[#####---------------]  25 %  1 min 50 s, about 30 s left: rung 1"


def test_a_resumed_job_is_not_thought_to_be_fast(clock: Clock) -> None:
    line = StepLine()
    line.report(Step(text="from the store", done=50, total=100))
    assert "left" not in line.words()
    clock.wait(10)
    line.report(Step(text="measured", done=60, total=100))
    assert "about 40 s left" in line.words()


def test_a_hostile_step_cannot_harm_the_terminal() -> None:
    line = StepLine()
    line.report(Step(text="\x1b[31mred\r"))
    assert "\x1b" not in line.words()
    assert "\r" not in line.words()


def claim(value: int, bound: int | None) -> Claim:
    return Claim(status=SolveStatus.FEASIBLE, stop=StopReason.TIME_LIMIT, values=(value,), bound=bound)


def test_a_solve_shows_its_limit_and_its_gap(clock: Clock) -> None:
    progress = Progress(SMALL, time_limit_s=40, backends=("native", "cpsat"))
    progress.start("cpsat")
    clock.wait(10)
    assert progress.words() == ("cpsat (2 of 2): [#####---------------]  25 %, 10 s of 40 s (Ctrl-C stops)")
    progress.publish(claim(8000, 6000))
    assert progress.words().endswith("period 8.000 ms so far, gap 25.0 % (Ctrl-C stops)")
    progress.publish(claim(8000, None))
    assert "gap" not in progress.words()
    progress.publish(claim(0, 0))
    assert "gap" not in progress.words()


@pytest.mark.parametrize(
    ("words", "rest", "way"),
    [
        (["plan", "--quiet"], ["plan"], OutputStyle(quiet=True)),
        (["--no-color", "plan", "x"], ["plan", "x"], OutputStyle(color=False)),
        (["plan", "--no-color", "--color"], ["plan"], OutputStyle(color=True)),
        (["plan", "--", "--quiet"], ["plan", "--", "--quiet"], OutputStyle()),
    ],
)
def test_general_options(words: list[str], rest: list[str], way: OutputStyle) -> None:
    general, found = split_general(words)
    assert (found, general.style, general.as_json, general.debug) == (rest, way, False, False)


def test_a_style_lasts_as_long_as_it_is_meant_to() -> None:
    with using_style(OutputStyle(quiet=True)), using_style(OutputStyle(color=True)):
        assert output_style() == OutputStyle(color=True)
    assert output_style() == OutputStyle()


def test_colours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def shown(color: bool | None) -> bool:
        path = tmp_path / "out.txt"
        with path.open("w") as file, using_style(OutputStyle(color=color)):
            console(file).print("red", style="bold red")
        return "\x1b[" in path.read_text()

    assert [shown(None), shown(True), shown(False)] == [False, True, False]
    monkeypatch.setenv("NO_COLOR", "1")
    assert shown(None) is False


def on_terminal(*words: str, seconds: float = 120, interrupt: bytes = b"") -> tuple[str, int]:
    """Run gapless on a terminal of its own; return all that it shows, and its exit code."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 120))
    environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": ""}
    command = [sys.executable, "-m", "gapless", *words]
    with subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    ) as process:
        os.close(slave)
        shown, deadline = b"", time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
            if interrupt and interrupt in shown:
                process.send_signal(signal.SIGINT)
                interrupt = b""
        code = process.wait(timeout=seconds)
    os.close(master)
    return shown.decode(), code


SLOW = (
    "import time\nfrom gapless import OpaqueRule\n"
    "def slow(plan):\n    time.sleep(0.05)\n    return len(plan.chunks) > 3\n"
    "rule = OpaqueRule(name='slow', predicate=slow)\n"
)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    path = tmp_path / "slow.py"
    path.write_text(SLOW)
    return path


@pytest.mark.slow
def test_a_long_solve_shows_a_bar_that_goes_away(slow: Path) -> None:
    words = ("plan", "pixel7a/octree", "--rules", str(slow), "--time-limit", "3s", "--backend", "exhaustive")
    shown, code = on_terminal(*words)
    assert code in (0, 4)
    assert "of 3 s" in shown
    assert shown.rindex("\x1b[2K") > shown.rindex("(Ctrl-C stops)")
    quiet, code = on_terminal(*words, "--quiet")
    assert code in (0, 4)
    assert "Ctrl-C" not in quiet


@pytest.mark.slow
def test_ctrl_c_while_a_bar_is_shown(slow: Path) -> None:
    words = ("plan", "pixel7a/octree", "--rules", str(slow), "--backend", "exhaustive")
    shown, code = on_terminal(*words, interrupt=b"(Ctrl-C stops)")
    assert code == 130
    assert "interrupted" in shown
    assert "Traceback" not in shown


@pytest.mark.slow
def test_colours_on_a_real_terminal() -> None:
    colored, _ = on_terminal("plan", "nowhere")
    plain, _ = on_terminal("plan", "nowhere", "--no-color")
    assert "\x1b[1;31merror: " in colored
    assert plain.startswith("error: 'nowhere'")
    assert "\x1b" not in plain


def test_nested_lines_give_the_timer_back(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        before = signal.getsignal(signal.SIGALRM)
        with StepLine() as outer:
            with Progress(SMALL):
                assert signal.getsignal(signal.SIGALRM) != outer._tick
            assert signal.getsignal(signal.SIGALRM) == outer._tick
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
        assert signal.getsignal(signal.SIGALRM) == before
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        monkeypatch.undo()
    os.close(master)


def test_a_line_says_nothing_by_itself() -> None:
    with pytest.raises(NotImplementedError):
        Line().words()


def test_a_log_has_a_line_now_and_then_and_none_when_quiet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("gapless.cli.base.progress.LOG_FIRST_S", 0.01)
    monkeypatch.setattr("gapless.cli.base.progress.LOG_EVERY_S", 0.01)

    def logged(*, quiet: bool) -> str:
        path = tmp_path / f"{quiet}.txt"
        with path.open("w") as file, using_style(OutputStyle(quiet=quiet)):
            monkeypatch.setattr(sys, "stderr", file)
            with StepLine() as line:
                line.report(Step(text="layer 2", done=2, total=8))
                until = time.monotonic() + 5
                while time.monotonic() < until and not path.stat().st_size and not quiet:
                    time.sleep(0.01)
            monkeypatch.undo()
            monkeypatch.setattr("gapless.cli.base.progress.LOG_FIRST_S", 0.01)
        return path.read_text()

    lines = logged(quiet=False).splitlines()
    assert lines
    assert set(lines) == {"25 %  0 s: layer 2"}
    assert logged(quiet=True) == ""


def test_progress_that_nobody_reads_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.cli.base.progress.LOG_FIRST_S", 0.01)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        with StepLine() as line:
            line.report(Step(text="layer 2", done=2, total=8))
            line._tick(signal.SIGALRM, None)
        monkeypatch.undo()

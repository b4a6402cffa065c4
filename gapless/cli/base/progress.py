"""Progress on standard error while something takes long: a line that renews itself, or one now and then."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

from ...answers.words import term_name, term_value
from ...executor.progress import ERASE, Step, columns_of
from ...formulations.printing import printable
from ...formulations.problem import Problem
from ...solvers.course import Recorder
from ...solvers.protocol import Claim, Clock
from .console import output_style, shows_progress

FIRST_S = 2.0
"""Seconds before the line appears."""

BAR_WIDTH = 20

_EVERY_S = 0.5

LOG_FIRST_S, LOG_EVERY_S = 10.0, 30.0
"""Seconds before the first line, and between two, where standard error is no terminal but a pipe or file."""

_LEAST_SHARE = 0.02
"""How much has to be done before it tells how long the rest will take."""


def bar(share: float) -> str:
    """Return a bar and a percentage for a share from 0 to 1."""
    share = min(1.0, max(0.0, share))
    filled = int(share * BAR_WIDTH)
    return f"[{'#' * filled}{'-' * (BAR_WIDTH - filled)}] {int(100 * share):3d} %"


def span(seconds: float) -> str:
    """Return a time that passes, to the second: "7 s", "3 min 07 s", "2 h 05 min"."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Line:
    """A line on a terminal that renews itself, elsewhere one now and then; a context manager.

    Subclasses say what stands in it.

    A timer signal renews the line, not a thread: solvers run in forked children, and a fork that
    happens while another thread holds a lock leaves the child with a lock that is never released. Nothing is
    written where `--quiet` was said. Lines may be nested: the inner one is seen while it lasts.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._shown = False
        self._before: Any = None
        self._timer = (0.0, 0.0)
        main = threading.current_thread() is threading.main_thread()
        self._active = main and shows_progress() and hasattr(signal, "setitimer")
        self._logs = False
        self._relayed = output_style().relayed

    def words(self) -> str:
        """Return what the line says just now; empty: nothing yet. Each kind of line has words of its own."""
        raise NotImplementedError

    def step(self) -> Step:
        """Return the same for a program that shows it elsewhere."""
        return Step(text=self.words())

    def bar(self, share: float) -> str:
        """Return a share from 0 to 1: as a bar where the line renews itself, in a log as a percentage."""
        return f"{int(100 * min(1.0, max(0.0, share)))} %" if self._logs else bar(share)

    @property
    def elapsed_s(self) -> float:
        """Seconds since it started."""
        return time.monotonic() - self._started

    def __enter__(self) -> Self:
        if self._active:
            self._before = signal.signal(signal.SIGALRM, self._tick)
            self._logs = not sys.stderr.isatty()
            often = (LOG_FIRST_S, LOG_EVERY_S) if self._logs else (FIRST_S, _EVERY_S)
            often = (_EVERY_S, _EVERY_S) if self._relayed else often
            self._timer = signal.setitimer(signal.ITIMER_REAL, *often)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._active:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            if self._shown:
                self._write(ERASE)
            signal.setitimer(signal.ITIMER_REAL, *self._timer)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        words = self.words()
        if words and self._relayed:
            step = self.step()
            self._write(json.dumps({"text": step.text, "done": step.done, "total": step.total}) + "\n")
        elif words and self._logs:
            self._write(f"{words}\n")
        elif words:
            self._write(ERASE + words[: columns_of(sys.stderr) - 1])
            self._shown = True

    def _write(self, text: str) -> None:
        """Write past Python's buffers: a signal may have come in the middle of another write.

        Nothing is written where nobody listens any more: progress never stops what it is about.
        """
        with suppress(OSError, ValueError):
            os.write(sys.stderr.fileno(), text.encode(errors="backslashreplace"))


class Progress(Line):
    """Shows which backend works, for how long, and its best plan so far."""

    def __init__(
        self, problem: Problem, *, time_limit_s: float | None = None, backends: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._terms, self._term = problem.formulation.terms, problem.objective.terms[0]
        self._staged = problem.objective.period_slack_permille is not None
        self._time_limit_s = time_limit_s
        self._backends = tuple(backends)
        self._backend = ""
        self._claim: Claim | None = None
        self.clock = Clock()
        """Of the searches (`SolveOptions.clock`)."""
        self._began_s = self.clock.now()
        self._problem, self._recorder = problem, Recorder(problem, clock=self.clock)

    @property
    def backend(self) -> str:
        """The backend that works, or "" before the first."""
        return self._backend

    @property
    def claim(self) -> Claim | None:
        """What it has published last."""
        return self._claim

    @property
    def recorder(self) -> Recorder:
        """All that it has published, with the times."""
        return self._recorder

    @property
    def elapsed_s(self) -> float:
        """Seconds of the search that is at work."""
        return self.clock.now() - self._began_s

    def start(self, backend: str) -> None:
        """Note that a backend starts."""
        self._backend, self._claim, self._began_s = backend, None, self.clock.now()
        self._recorder = Recorder(self._problem, clock=self.clock)

    def publish(self, claim: Claim) -> None:
        """Note an intermediate claim."""
        self._claim = claim
        self._recorder.publish(claim)

    def words(self) -> str:
        """Return the line to show: who works, the share of the time limit, and what is known by now."""
        return f"{self._who()}: {', '.join([self._time(), *self._known()])} (Ctrl-C stops)"

    def _who(self) -> str:
        if len(self._backends) < 2 or self._backend not in self._backends:
            return self._backend
        return f"{self._backend} ({self._backends.index(self._backend) + 1} of {len(self._backends)})"

    def _time(self) -> str:
        elapsed, limit = self.elapsed_s, self._time_limit_s
        if not limit:
            return span(elapsed)
        return f"{self.bar(elapsed / limit)}, {span(elapsed)} of {span(limit)}"

    def _known(self) -> list[str]:
        """Return the best value and its gap. In slack mode the first value may be one of the period."""
        if self._claim is None or not self._claim.values or self._staged:
            return []
        value, bound = self._claim.values[0], self._claim.bound
        known = [f"{term_name(self._terms, self._term)} {term_value(self._terms, self._term, value)} so far"]
        if bound is not None and value:
            known.append(f"gap {100 * (value - bound) / value:.1f} %")
        return known


class StepLine(Line):
    """Shows how far a long job is: what it does, a bar, the time that passed, and what is left of it.

    The bar is about one part of the job: what counts to the same end. The parts follow one another, and
    how long those will take that have not begun is not known.
    """

    def __init__(self) -> None:
        super().__init__()
        self._step: Step | None = None
        self._part = (self._started, 0)
        """When the part at hand began, and how much was done by then: a resumed job finds much at once."""

    def report(self, step: Step) -> None:
        """Note a step; the timer shows it."""
        before, self._step = self._step, step
        if before is None or before.total is None or step.total is None or step.done < before.done:
            self._part = (time.monotonic(), step.done)

    def step(self) -> Step:
        """Return the step at hand."""
        return self._step or Step(text="")

    def words(self) -> str:
        """Return the line to show."""
        step = self._step
        if step is None:
            return ""
        passed = span(self.elapsed_s)
        text = " ".join(printable(step.text).split())
        if not step.total:
            return f"{passed}: {text}"
        left = self._left_s(step)
        rest = "" if left is None else f", about {span(left)} left"
        return f"{self.bar(step.done / step.total)}  {passed}{rest}: {text}"

    def _left_s(self, step: Step) -> float | None:
        """Return how long the rest of the part will take at the pace until now; None: too early to tell."""
        began, at_first = self._part
        done, total = step.done - at_first, (step.total or 0) - at_first
        if done <= 0 or done < _LEAST_SHARE * total:
            return None
        return (time.monotonic() - began) / done * max(0, total - done)

"""Progress on standard error: one line that renews itself while something takes long."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

from ..executor.progress import Step
from ..formulations.objective import Objective
from ..solvers.protocol import Claim
from .terminal import clean
from .words import term_name, term_value

FIRST_S = 2.0
"""Seconds before the line appears."""

_EVERY_S = 0.5
_ERASE = "\r\x1b[2K"


class Progress:
    """Shows which backend works, for how long, and its best plan so far.

    A timer signal renews the line, not a thread: solvers run in forked children, and a fork that
    happens while another thread holds a lock leaves the child with a lock that nobody opens.

    Parameters
    ----------
    objective
        What is minimised.
    """

    def __init__(self, objective: Objective) -> None:
        self._term = objective.terms[0]
        self._staged = objective.period_slack_permille is not None
        self._backend = ""
        self._claim: Claim | None = None
        self._started = time.monotonic()
        self._shown = False
        self._before: Any = None
        main = threading.current_thread() is threading.main_thread()
        self._active = main and sys.stderr.isatty() and hasattr(signal, "setitimer")

    @property
    def backend(self) -> str:
        """The backend that works, or "" before the first."""
        return self._backend

    @property
    def claim(self) -> Claim | None:
        """What it has published last."""
        return self._claim

    @property
    def elapsed_s(self) -> float:
        """Seconds since it started."""
        return time.monotonic() - self._started

    def start(self, backend: str) -> None:
        """Note that a backend starts."""
        self._backend, self._claim, self._started = backend, None, time.monotonic()

    def publish(self, claim: Claim) -> None:
        """Note an intermediate claim."""
        self._claim = claim

    def line(self) -> str:
        """Return the line to show."""
        words = f"{self._backend}: {self.elapsed_s:.0f} s"
        if self._claim is not None and self._claim.values and not self._staged:
            value = term_value(self._term, self._claim.values[0])
            words += f", {term_name(self._term)} {value} so far"
        return f"{words} (Ctrl-C stops)"

    def __enter__(self) -> Self:
        if self._active:
            self._before = signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, FIRST_S, _EVERY_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._active:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            if self._shown:
                self._write(_ERASE)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        self._write(_ERASE + self.line())
        self._shown = True

    def _write(self, text: str) -> None:
        """Write past Python's buffers: a signal may have come in the middle of another write."""
        os.write(sys.stderr.fileno(), text.encode(errors="backslashreplace"))


class StepLine:
    """Shows how far a long job is, on a terminal; a context manager.

    The line appears after `FIRST_S` seconds. Nothing is written where standard error is no terminal.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._written = 0.0
        self._active = sys.stderr.isatty()

    def report(self, step: Step) -> None:
        """Show a step."""
        now = time.monotonic()
        if not self._active or now - self._started < FIRST_S or now - self._written < _EVERY_S / 2:
            return
        self._written = now
        os.write(sys.stderr.fileno(), (_ERASE + self.line(step)).encode(errors="backslashreplace"))

    def line(self, step: Step) -> str:
        """Return the line to show."""
        words = clean(step.text).replace("\n", " ")[:80]
        elapsed = time.monotonic() - self._started
        if step.total and step.done:
            left = elapsed / step.done * max(0, step.total - step.done)
            words += f" ({step.done}/{step.total}, about {left:.0f} s left)"
        return f"{elapsed:.0f} s: {words}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._written:
            os.write(sys.stderr.fileno(), _ERASE.encode())

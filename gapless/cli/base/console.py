"""The terminal: consoles, text that cannot harm it, and a standard output that stays clean."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ...formulations.errors import ExecutionError
from ...formulations.printing import printable

PIPE_WIDTH = 110
"""Columns when the output is no terminal and COLUMNS is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputStyle:
    """How to write on the terminal."""

    quiet: bool = False  # neither progress nor notes
    color: bool | None = None
    """Whether colours and bold words are used; None: on a terminal, unless NO_COLOR is set."""
    relayed: bool = False
    """Whether another program reads it: steps are lines of JSON, and errors stand in the document alone."""
    said: tuple[str, ...] = field(default=(), compare=False)
    """The general options as words: for who hands a command on."""


_USUAL = OutputStyle()
_STYLE: ContextVar[OutputStyle] = ContextVar("output_style", default=_USUAL)


def output_style() -> OutputStyle:
    """Return how to write on the terminal just now."""
    return _STYLE.get()


@contextmanager
def using_style(style: OutputStyle) -> Iterator[None]:
    """Write in a certain style meanwhile."""
    before = _STYLE.set(style)
    try:
        yield
    finally:
        _STYLE.reset(before)


def shows_progress() -> bool:
    """Return whether to show progress: `--quiet` was not given."""
    return not output_style().quiet


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let `main` decide, instead of leaving with exit code 1."""
        raise BrokenPipeError

    def render_str(self, text: str, **how: Any) -> Text:
        """Return a text as it is to be written, so that its width is known."""
        return super().render_str(printable(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is to be written; names in it cannot steer the terminal."""
        for segment in super().render(renderable, options):
            harmless = segment.control or segment.text.isprintable()
            yield segment if harmless else segment._replace(text=printable(segment.text))


def console(stream: TextIO) -> Console:
    """Return a console that takes every text as it is: no markup, no guesses at colours."""
    if isinstance(stream, TextIOWrapper):
        with suppress(ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    color = output_style().color
    if color is None and os.environ.get("NO_COLOR"):
        color = False
    return _Console(
        file=stream,
        width=width,
        markup=False,
        highlight=False,
        emoji=False,
        force_terminal=True if color else None,
        color_system=None if color is False else "auto",
    )


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Send whatever is printed meanwhile to standard error: rules files and solvers print, too."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def tell(text: str) -> None:
    """Write a line to standard error; where that cannot be written to, what it is about goes on."""
    with suppress(OSError):
        console(sys.stderr).print(printable(text), soft_wrap=True)


@contextmanager
def writing_output() -> Iterator[None]:
    """Write an answer to standard output, all of it.

    Raises ExecutionError: it cannot be written to, e.g. because a disk is full.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard(sys.stdout)
        raise ExecutionError(
            f"cannot write to standard output: {error.strerror or error}; the answer is not complete: "
            "write it somewhere else"
        ) from None


def discard(stream: TextIO) -> None:
    """Let what is still to be written go nowhere: nothing can be written there any more."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

"""Options that every command takes, before its name or after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from ...question.subjects import OPEN_SECONDS
from .console import OutputStyle


def heading(title: str | None) -> Callable[..., Any]:
    """Return what declares the options under a heading of the help; their defaults are not shown."""
    return partial(_option, rich_help_panel=title, show_default=False)


def _option(*names: str, **how: Any) -> Any:
    """Declare an option; of numbers the help shows no range, which would leave no room for words."""
    if how.keys() & {"min", "max"}:
        how.setdefault("metavar", "NUMBER")
    return typer.Option(*names, **how)


def argument(metavar: str, help: str) -> Any:
    """Declare an argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


output_option = heading("Output")

JsonOption = Annotated[bool, output_option("--json", help="Print one JSON document and nothing else.")]
QuietOption = Annotated[
    bool, output_option("--quiet", help="No progress and no notes; answers and errors stay.")
]
ColorOption = Annotated[
    bool | None,
    output_option(
        "--color/--no-color",
        help="Colours and bold words; otherwise on a terminal only, unless NO_COLOR is set.",
    ),
]
TrustOption = Annotated[
    list[str] | None,
    output_option(
        "--trust",
        metavar="CODE",
        help="Python code (file.py:NAME or module:NAME) that a file of data names and that may run; can be "
        "repeated.",
    ),
]
OpenSecondsOption = Annotated[
    str | None,
    heading(OPEN_SECONDS.heading)(
        OPEN_SECONDS.option, metavar=OPEN_SECONDS.form.metavar, help=OPEN_SECONDS.help
    ),
    OPEN_SECONDS,
]
DebugOption = Annotated[bool, output_option("--debug", help="Show the traceback of an error.")]

WORDS = ("--json", "--quiet", "--color", "--no-color", "--debug", "--progress-json")
"""The last is for programs that run a command for somebody else, and is in no help."""

TRUST = "--trust"
_END = "--"
"""What follows it is no option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """What was said of every command."""

    as_json: bool  # print documents, errors as well
    debug: bool  # show tracebacks
    style: OutputStyle  # how to write on the terminal
    trusted: tuple[str, ...] = ()  # Python code that files of data may name
    open_seconds: tuple[str, ...] = ()
    """Texts of how long it may take to open a model file; the last one counts."""


def split_general(words: Sequence[str]) -> tuple[General, list[str]]:
    """Return what was said of every command, and the other words.

    `cli.main` looks for these words itself, because they may stand anywhere, and because errors in the
    other options are to be JSON, or quiet, too.
    """
    end = words.index(_END) if _END in words else len(words)
    trusted, before = _values(words[:end], TRUST)
    open_seconds, before = _values(before, OPEN_SECONDS.option)
    said = [word for word in before if word in WORDS]
    colors = [word == "--color" for word in said if word.endswith("color")]
    general = General(
        as_json="--json" in said,
        debug="--debug" in said,
        style=OutputStyle(
            quiet="--quiet" in said,
            color=colors[-1] if colors else None,
            relayed="--progress-json" in said,
            said=tuple(dict.fromkeys(said)),
        ),
        trusted=trusted,
        open_seconds=open_seconds,
    )
    return general, [word for word in before if word not in WORDS] + list(words[end:])


def _values(words: Sequence[str], option: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the values of an option, and the other words; one without a value stays, as an error."""
    found, others, left = [], list[str](), iter(words)
    for word in left:
        if word.startswith(f"{option}="):
            found.append(word.partition("=")[2])
        elif word == option and (value := next(left, None)) is not None:
            found.append(value)
        else:
            others.append(word)
    return tuple(found), others

"""Options that every command takes, before its name or after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from .console import Manner

_OUTPUT = "Output"

JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=_OUTPUT),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", help="No progress and no notes; answers and errors stay.", rich_help_panel=_OUTPUT
    ),
]
ColorOption = Annotated[
    bool | None,
    typer.Option(
        "--color/--no-color",
        help="Colours and bold words; otherwise on a terminal only, unless NO_COLOR is set.",
        rich_help_panel=_OUTPUT,
        show_default=False,
    ),
]
DebugOption = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=_OUTPUT),
]

WORDS = ("--json", "--quiet", "--color", "--no-color", "--debug")
_END = "--"
"""What follows it is no option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class General:
    """What was said of every command.

    Attributes
    ----------
    as_json
        Print documents, errors as well.
    debug
        Show tracebacks.
    manner
        How to write on the terminal.
    """

    as_json: bool
    debug: bool
    manner: Manner


def split_general(words: Sequence[str]) -> tuple[General, list[str]]:
    """Return what was said of every command, and the other words.

    `cli.main` looks for these words itself, because they may stand anywhere, and because errors in the
    other options are to be JSON, or quiet, too.
    """
    end = words.index(_END) if _END in words else len(words)
    said = [word for word in words[:end] if word in WORDS]
    colors = [word == "--color" for word in said if word.endswith("color")]
    general = General(
        as_json="--json" in said,
        debug="--debug" in said,
        manner=Manner(quiet="--quiet" in said, color=colors[-1] if colors else None),
    )
    return general, [word for word in words[:end] if word not in WORDS] + list(words[end:])

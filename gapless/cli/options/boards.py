"""The option --on: a command that takes place on a board, and whose answer is shown here."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

from ...executor.progress import ERASE
from ...question.fields import Given
from ...question.subjects import Folder
from ..base.answer import Answer, View, command_line, takes
from ..base.catalog import command_name
from ..base.console import output_style
from ..base.declared import annotated, declared
from ..base.general_options import heading

if TYPE_CHECKING:
    from ...boards.running import Ran

Viewing = Callable[["Ran", Mapping[str, Any]], View]
"""Shows what a command has found on a board as what it finds here; takes the values of its parameters."""

_HANDED_ON = ("--quiet", "--debug")
"""General options that are said there, too."""

OnOption = Annotated[
    str | None,
    heading("The device")(
        "--on",
        metavar="BOARD",
        help="Do it on a board that ssh reaches without a password: an alias of ~/.ssh/config, `user@host` "
        "or `ssh://user@host:port`. Files are taken there, results brought back. GAPLESS_SSH adds options of "
        "ssh, GAPLESS_REMOTE_PYTHON names the Python there.",
    ),
]


def on_boards(view: Viewing) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Give a command the option --on."""

    def with_on(function: Callable[..., Answer]) -> Callable[..., Answer]:
        own = annotated(function)
        groups = declared(own)

        @wraps(function)
        def called(**given: Any) -> Answer:
            on = given.pop("on")
            if on is None:
                return function(**given)
            said, subjects = list[Given](), list[str]()
            for name, value in given.items():
                if name in groups and name != "folder":
                    said += groups[name].given(value)
                elif isinstance(value, str | list):
                    subjects += [value] if isinstance(value, str) else value
            ran = _ran(command_name(function.__name__), said, subjects, given.get("folder"), on=on)
            return Answer(
                document=ran.document, view=lambda: view(ran, given), code=ran.code, notes=ran.notes
            )

        kind = inspect.Parameter.KEYWORD_ONLY
        takes(called, [*own.values(), inspect.Parameter("on", kind, default=None, annotation=OnOption)])
        return called

    return with_on


def _ran(
    command: str, said: Sequence[Given], subjects: Sequence[str], folder: Folder | None, *, on: str
) -> Ran:
    """Run a command on a board; raises what it has raised there."""
    from ...boards.running import run_there
    from ...boards.ssh import Address
    from ..base.progress import StepLine

    with StepLine() as step:
        ran = run_there(
            Address.of(on),
            command,
            said,
            subjects,
            folder,
            general=[word for word in output_style().said if word in _HANDED_ON],
            line=command_line(),
            report=step.report,
            show=_show,
        )
    ran.raise_error()
    return ran


def _show(text: str) -> None:
    """Write at once what a board says, in the place of the line that tells how far it is."""
    with suppress(OSError, ValueError, RuntimeError):  # the last: Ctrl-C came in the middle of a write
        sys.stderr.write(f"{ERASE}{text}" if sys.stderr.isatty() else text)
        sys.stderr.flush()

"""The option --on: a command that takes place on a board."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import wraps
from typing import Annotated, Any

from ...question.fields import Given
from ...question.subjects import Folder
from ...question.values import Names
from ..base.answer import Answer, takes
from ..base.catalog import command_name
from ..base.console import output_style
from ..base.declared import annotated, declared
from ..base.general_options import heading
from .problem import check_writable

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


def on_boards(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Give a command the option --on."""
    own = annotated(function)
    groups = declared(own)

    @wraps(function)
    def called(**given: Any) -> Answer:
        on = given.pop("on")
        if on is None:
            return function(**given)
        folder, said, subjects = given.pop("folder", None), list[Given](), list[str]()
        for name, value in given.items():
            if name in groups:
                said += groups[name].given(value)
            elif isinstance(value, str | list):
                subjects += [value] if isinstance(value, str) else value
        return forwarded(command_name(function.__name__), said, subjects, folder, on=on)

    kind = inspect.Parameter.KEYWORD_ONLY
    takes(called, [*own.values(), inspect.Parameter("on", kind, default=None, annotation=OnOption)])
    return called


def forwarded(
    command: str, said: Sequence[Given], subjects: Sequence[str], folder: Folder | None, *, on: str
) -> Answer:
    """Run a command on a board, and return its answer."""
    from ...boards.running import run_there
    from ...boards.session import terminals, write_error
    from ...boards.ssh import Address
    from ..base.progress import StepLine

    address, style = Address.of(on), output_style()
    for field, value in said:
        if field.form.names is Names.RESULT:
            check_writable(value)
    with ExitStack() as line:
        step = line.enter_context(StepLine())

        def show(text: str) -> None:
            if text:
                line.close()  # from now on the board says how far it is
                write_error(text)

        ran = run_there(
            address,
            command,
            said,
            subjects,
            folder,
            general=style.said,
            line=shlex.join(["gapless", *sys.argv[1:]]),
            terminals=terminals(out=sys.stdout, err=sys.stderr),
            report=step.report,
            show=show,
        )
    return Answer(document=ran.document, view=lambda: ran.text, code=ran.code, notes=ran.notes)

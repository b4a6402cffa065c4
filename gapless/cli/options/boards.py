"""The option --on: a command that takes place on a board."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import wraps
from typing import Annotated, Any, get_type_hints

from ..base.answer import Answer, takes
from ..base.catalog import command_name
from ..base.console import output_style
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


def on_boards(**always: Any) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Return what gives a command the option --on.

    `always`: options that the command has on a board, whatever is said here.
    """

    def wrapped(function: Callable[..., Answer]) -> Callable[..., Answer]:
        signature = inspect.signature(function)
        hints = get_type_hints(function, include_extras=True)
        own = [each.replace(annotation=hints[name]) for name, each in signature.parameters.items()]
        defaults = {name: each.default for name, each in signature.parameters.items()}

        @wraps(function)
        def called(**given: Any) -> Answer:
            on = given.pop("on")
            if on is None:
                return function(**given)
            said = {name: value for name, value in given.items() if name == "out" or value != defaults[name]}
            return forwarded(command_name(function.__name__), said | always, on=on)

        kind = inspect.Parameter.KEYWORD_ONLY
        takes(called, [*own, inspect.Parameter("on", kind, default=None, annotation=OnOption)])
        return called

    return wrapped


def forwarded(command: str, options: Mapping[str, Any], *, on: str) -> Answer:
    """Run a command on a board, and return its answer."""
    from ...boards.packing import IN_FOLDERS
    from ...boards.running import run_there
    from ...boards.session import terminals, write_error
    from ...boards.ssh import Address
    from ..base.progress import StepLine

    address, style = Address.of(on), output_style()
    for name in ("trace", "output") if command in IN_FOLDERS else ("trace", "output", "out"):
        check_writable(options.get(name))
    with ExitStack() as line:
        step = line.enter_context(StepLine())

        def show(text: str) -> None:
            if text:
                line.close()  # from now on the board says how far it is
                write_error(text)

        ran = run_there(
            address,
            command,
            options,
            general=style.said,
            line=shlex.join(["gapless", *sys.argv[1:]]),
            terminals=terminals(out=sys.stdout, err=sys.stderr),
            report=step.report,
            show=show,
        )
    return Answer(document=ran.document, view=lambda: ran.text, code=ran.code, notes=ran.notes)

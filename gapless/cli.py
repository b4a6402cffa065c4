"""The command line: every command computes an answer, and `main` prints it as text or as JSON."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from . import __version__, documents
from .commands import (
    about,
    contention,
    exporting,
    formats,
    interference,
    models,
    planning,
    prediction,
    reporting,
    running,
    showing,
    tuning,
)
from .commands.answer import Answer, app
from .exits import ExitCode, code_of_error
from .formulations.errors import GaplessError
from .report.terminal import clean, console, discard_output

ROOMS = (
    planning,
    tuning,
    running,
    reporting,
    showing,
    exporting,
    models,
    contention,
    interference,
    prediction,
    about,
    formats,
)
"""Modules that register commands when they are loaded, in the order of `gapless --help`."""

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Root of all usage errors; it lives in another module in each generation of typer."""


@app.callback(invoke_without_command=True)
def top_level(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error (also after the command).")
    ] = False,
) -> None:
    """Handle what is said before the command; `main` looks for --debug itself, wherever it stands."""
    if version:
        typer.echo(f"gapless {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        Words after the program's name; None: those of this process.

    Returns
    -------
    int
        The exit code (`ExitCode`). Errors are one message on standard error, never a traceback.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json, debug = "--json" in words, "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        answer = typer.main.get_command(app).main(words, prog_name="gapless", standalone_mode=False)
        if answer == ExitCode.INTERRUPTED:  # how newer typers hand on Ctrl-C; older ones raise Abort
            raise KeyboardInterrupt
        return _print(answer, as_json=as_json) if isinstance(answer, Answer) else int(answer or 0)
    except BrokenPipeError:
        discard_output()
        return ExitCode.BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        return _fail(error, as_json=as_json)


def _print(answer: Answer, *, as_json: bool) -> int:
    if as_json:
        sys.stdout.write(documents.json_text(answer.document()))
    else:
        console(sys.stdout).print(answer.view())
    sys.stdout.flush()
    for note in answer.notes:
        console(sys.stderr).print(clean(note), soft_wrap=True)
    return answer.code


def _fail(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong, once, where it is looked for."""
    if isinstance(error, _UsageError):
        path = getattr(getattr(error, "ctx", None), "command_path", "gapless")
        code, text = ExitCode.USAGE, f"{error.format_message()} See `{path} --help`."  # type: ignore[attr-defined]
    else:
        code, text = code_of_error(error), _message(error)
    if as_json:
        sys.stdout.write(documents.json_text(documents.error_document(error, code, text)))
        sys.stdout.flush()
    words = Text("error: ", style="bold red").append(clean(text), style="not bold default")
    console(sys.stderr).print(words, soft_wrap=True)
    return code


def _message(error: BaseException) -> str:
    match error:
        case GaplessError():
            return str(error)
        case KeyboardInterrupt() | typer.Abort():
            return "interrupted"
        case OSError():
            return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    return (
        f"gapless has a bug: {type(error).__name__}: {error}. "
        "Please report it with the output of the same command with --debug"
    )

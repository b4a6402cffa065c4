"""What every command returns, and how commands are registered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import typer
from rich.console import RenderableType

from ..exits import ExitCode
from ..formulations.files import save
from ..report.terminal import stdout_kept_clean

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Plan and run pipelines of neural networks over the unequal processors of one device.",
    epilog="Exit codes: 0 ok, 2 bad input or usage, 3 proved infeasible, 4 no answer within the limit, "
    "5 backend or device failure, 6 verification failure, 130 interrupted.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command found out.

    Attributes
    ----------
    document
        For machines.
    view
        For people.
    code
        For the caller.
    notes
        What people should know besides; printed to standard error.
    """

    document: Callable[[], dict[str, Any]]
    view: Callable[[], RenderableType]
    code: ExitCode = ExitCode.OK
    notes: Sequence[str] = ()


def command(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Register a command; whatever is printed while it works goes to standard error."""

    @app.command(name=function.__name__.rstrip("_").replace("_", "-"))
    @wraps(function)
    def registered(**given: Any) -> Answer:
        with stdout_kept_clean():
            return function(**given)

    return registered


def write_out(out: Path | None, text: Callable[[], str]) -> list[str]:
    """Write an answer to the file that `--out` names, if any; return the note that says so."""
    if out is None:
        return []
    save(text(), out)
    return [f"wrote {out}"]

"""The errors and the exit codes, made from the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from gapless.cli.base.exits import ExitCode, code_of_error
from gapless.formulations.errors import GaplessError

from .commands import prose


def tree() -> str:
    """Return all errors as a nested list, with what each means and the exit code it leads to."""
    return "\n".join(_branch(GaplessError, 0))


def _branch(kind: type[GaplessError], depth: int) -> Iterator[str]:
    text = (inspect.getdoc(kind) or "").partition("\n")[0]
    also = " and ".join(f"`{base.__name__}`" for base in kind.__bases__[1:])
    name = f"`{kind.__name__}`" + (f" (also a {also})" if also else "")
    yield f"{'  ' * depth}* {name}: {prose(text)} Exit code {int(code_of_error(kind.__new__(kind)))}."
    for child in kind.__subclasses__():
        if child.__bases__[0] is kind and child.__module__.startswith("gapless."):
            yield from _branch(child, depth + 1)


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = re.findall(r"^([A-Z_]+)\n    (.+?)(?=\n[A-Z_]|\Z)", inspect.getdoc(ExitCode) or "", re.M | re.S)
    lines = [
        f"| {ExitCode[name].value} | `{name}` | {prose(' '.join(text.split()))} |" for name, text in rows
    ]
    return "\n".join(["| code | name | meaning |", "|---|---|---|", *lines])

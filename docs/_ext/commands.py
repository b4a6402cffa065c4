"""The command reference, made from the command line itself."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import typer

from gapless.cli.base.catalog import GROUPS
from gapless.cli.base.general_options import WORDS
from gapless.cli.main import commands, every_command

_FURTHER = "Options"
"""Panel of options that name none."""

_ARGUMENTS = "Arguments"

_BAR = r"\|"
"""A bar that ends no cell of a table."""


def general() -> str:
    """Return the table of the options that every command takes."""
    group: Any = commands()
    context = typer.Context(group, info_name="gapless")
    records = [parameter.get_help_record(context) for parameter in group.params if _is_general(parameter)]
    return "\n".join(["| option | |\n|---|---|", *_rows(records)])


def reference() -> str:
    """Return one section for each command: what it does, usage, arguments, options, examples."""
    shown = [item for item in every_command().items() if not item[1].hidden]
    parts = []
    for panel, members in groupby(shown, key=_heading):
        parts.append(f"## {panel}\n")
        if panel in GROUPS:
            parts.append(f"{GROUPS[panel]}\n")
        parts += ["\n".join(_command(name, command)) for name, command in members]
    return "\n\n".join(parts)


def _heading(item: tuple[str, Any]) -> str:
    """Return the heading of a command: its group, or the panel of the help."""
    name, command = item
    group, space, _ = name.partition(" ")
    return group if space else command.rich_help_panel or "Commands"


def _command(name: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=f"gapless {name}")
    yield f"### gapless {name}\n"
    yield prose(command.help or "") + "\n"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n"
    yield from _examples(command.epilog or "")
    for panel, rows in _panels(command, context).items():
        yield f"| {panel} | |\n|---|---|"
        yield from _rows(rows)
        yield ""


def _rows(rows: list[tuple[str, str]]) -> Iterator[str]:
    yield from (f"| {code(declared)} | {prose(text)} |" for declared, text in rows)


def _examples(epilog: str) -> Iterator[str]:
    """Yield the examples of an epilog as a block, and what else it says as it is."""
    lines = [line.strip() for line in epilog.splitlines() if line.strip()]
    examples = [line for line in lines if line.startswith("$ ")]
    yield from (prose(line) + "\n" for line in lines if line not in examples)
    if examples:
        yield "\n".join(["```console", *examples, "```", ""])


def _is_general(parameter: Any) -> bool:
    return parameter.opts[0] in WORDS


def _panels(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Return (how it is written, what it means) of the parameters, by panel: arguments first."""
    found: dict[str, list[tuple[str, str]]] = {_ARGUMENTS: []}
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or parameter.hidden or _is_general(parameter):
            continue
        is_argument = parameter.param_type_name == "argument"
        panel = _ARGUMENTS if is_argument else parameter.rich_help_panel or _FURTHER
        found.setdefault(panel, []).append(record)
    return {panel: rows for panel, rows in found.items() if rows}


def code(text: str) -> str:
    """Return text as code that may stand in a table."""
    return f"`{' '.join(text.split()).replace('|', _BAR)}`"


def prose(text: str) -> str:
    """Return text of a help page as Markdown: code stays code, nothing else is mark-up."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part.replace("|", _BAR)
        if part.startswith("`")
        else re.sub(r"([*_\[\]|$])", r"\\\1", html.escape(part, quote=False))
        for part in parts
    )

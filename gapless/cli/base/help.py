"""The help of a command: its examples, and a line for each option; all of it with `--help-all`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from rich.text import Text
from typer.core import TyperCommand

from ...question.question import ASKED
from .console import console
from .declared import field_of

ALL = "--help-all"
"""What shows all that is said of each option."""

whole: ContextVar[bool] = ContextVar("whole", default=False)
"""Whether all is to be shown."""

_NAMES, _GAP, _MARGIN = 27, 2, 2
"""Columns of the terminal for the names of options, behind them, and before them."""

_EVERYWHERE = ("--json", "--quiet", "--color")
"""Options of all commands: they stand in one line."""

_LIMITS, _MANY = re.compile(r"--(max|min)-"), 5
"""What limits are called, and how many of them at most have a line each; of more only the names are shown."""

_CROWDED = 35
"""With more options than this a command has many."""

_LEAST = 18
"""Columns that the beginning of a sentence has to have to stand for it."""

_BREAKS = re.compile(r"[:;]| \(")
_PAUSES = re.compile(r",| or | and | unless | so that ")
"""Where a sentence can end early: after what it says, and if need be between two things that it says."""


class CommandWithHelp(TyperCommand):
    """A command whose help fits a screen."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        if whole.get():
            super().format_help(ctx, formatter)
            return
        out = console(sys.stdout)
        for line in _lines(self, ctx, min(100, get_terminal_size().columns)):
            out.print(line, soft_wrap=True)


def _lines(command: Any, context: Any, width: int) -> Iterator[Text]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield Text(f"Usage: {usage}")
    yield Text()
    for line in wrap((command.help or "").split("\n\n")[0].replace("\n", " "), width):
        yield Text(line)
    examples = [line[2:] for line in (command.epilog or "").split("\n\n") if line.startswith("$ ")]
    if examples:
        yield from _heading("Examples")
        for example in examples:
            yield Text(f"  $ {example}")
    crowded = len(command.params) > _CROWDED
    seldom = {_names(p) for p in command.params if (field := field_of(command, p.name)) and field.rare}
    of_plans = any(param.name == "files" for param in command.params)
    for title, params in _panels(command, context).items():
        if of_plans and title == ASKED:
            yield from _heading(f"{ASKED}, as for `gapless plan`: a file of plans knows it itself")
            yield from _only_names([name for name, _ in params], width)
            continue
        yield from _heading(title)
        limits = [name for name, _ in params if _LIMITS.match(name)]
        rare = [name for name, _ in params if crowded and name.split()[0] in seldom]
        for name, text in params:
            if name not in rare and (len(limits) <= _MANY or name not in limits):
                yield from _row(name, text, width)
        if rare:
            yield from _only_names(["Also:", *rare], width)
        if len(limits) > _MANY:
            yield from _heading("Limits (values have a unit: 30ms, 5mJ, 2GiB, 80%)")
            yield from _only_names(limits, width)
    yield Text()
    everywhere = ", ".join(_names(p) for p in command.get_params(context) if p.opts[0] in _EVERYWHERE)
    yield Text(f"Everywhere: {everywhere}.")
    yield Text(f"`{context.command_path} {ALL}` says all of each option.")


def _only_names(names: Iterable[str], width: int) -> Iterator[Text]:
    text = "  ".join(name.split()[0] for name in names)
    lines = wrap(text, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    yield from map(Text, lines)


def _heading(title: str) -> Iterator[Text]:
    yield Text()
    yield Text(title, style="bold")


def _panels(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """Return the names and the help of all parameters that are shown, by the heading they stand under."""
    found: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(context):
        text = getattr(param, "help", None) or ""
        if getattr(param, "hidden", False) or {"--help", *_EVERYWHERE} & set(param.opts):
            continue
        option = param.param_type_name == "option"
        title = getattr(param, "rich_help_panel", None) or ("Options" if option else "Arguments")
        found.setdefault(title, []).append((_called(param) if option else _metavar(param), text))
    return found


def _names(param: Any) -> str:
    return "/".join([*param.opts, *param.secondary_opts])


def _metavar(param: Any) -> str:
    return str(param.metavar or param.human_readable_name)


def _called(param: Any) -> str:
    """Return the names of an option, and what it takes where there is room for it."""
    names = _names(param)
    kind = "" if param.is_flag else str(param.metavar or "VALUE")
    return f"{names} {kind}" if kind and len(names) + len(kind) < _NAMES else names


def _row(name: str, text: str, width: int) -> Iterator[Text]:
    """Yield a line, or two where the names are long."""
    room = width - _MARGIN - _NAMES - _GAP
    if len(name) > _NAMES:
        yield Text(" " * _MARGIN + name)
        name = ""
    yield Text(f"{'':{_MARGIN}}{name:{_NAMES}}{'':{_GAP}}{brief(text, room)}".rstrip())


def brief(text: str, room: int) -> str:
    """Return the beginning of a help text that fits: the first sentence, or as much of it as makes sense."""
    sentence = re.split(r"(?<=[a-z`)\"])(?<!e.g)[.] ", " ".join(text.split()), maxsplit=1)[0].rstrip(".")
    sentence = re.sub("^With [^:]*: (.)", lambda begin: begin[1].upper(), sentence)
    if len(sentence) <= room:
        return sentence
    breaks = [place.start() for place in _BREAKS.finditer(sentence) if _LEAST <= place.start() <= room]
    if breaks:
        return sentence[: breaks[0]]
    pauses = [place.start() for place in _PAUSES.finditer(sentence) if room * 0.6 <= place.start() <= room]
    fitting = [end for end in pauses if sentence[:end].count("(") == sentence[:end].count(")")]
    return (
        sentence[: fitting[-1]].rstrip(",") if fitting else sentence[: room - 4].rpartition(" ")[0] + " ..."
    )

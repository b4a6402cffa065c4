"""Wrong usage in words: what is wrong, which value, what was meant, and an example that works."""

from __future__ import annotations

import re
from typing import Any

import typer

from ...formulations.errors import InvalidInputError
from ...formulations.nearness import meant, near, shown
from .catalog import COMMANDS, SYNONYMS

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Root of all usage errors; it lives in another module in each generation of typer."""

_REPLACED = (
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be a valid integer, unable to parse.*"), "it is no whole number"),
    (re.compile(r"Input should be a valid number, unable to parse.*"), "it is no number"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"it must be at least \1"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"it must be at most \1"),
)
"""What the libraries below say of values, in plain words."""

_ONE_PROBLEM = (
    "It takes one problem: `gapless profile MODEL MODEL` measures several models, which share the units, and "
    "writes one problem; `gapless tune MODEL MODEL` does all of it."
)


def unknown_command(name: str) -> InvalidInputError:
    """Return the error for a command that is not there."""
    listed = "`gapless --help` lists the commands"
    hint = SYNONYMS.get(name.lower())
    words = f"did you mean {hint}?" if hint else meant(name, COMMANDS, listed_by=listed)
    return InvalidInputError(f"no command {shown(name)}; {words}")


def usage_message(error: Any) -> str:
    """Return what a usage error says."""
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "gapless")
    name, param = path.partition(" ")[2], getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    if option and type(error).__name__ == "NoSuchOption":
        words = f"no option {option}; {_meant_option(option, context)}"
    elif param is not None and type(error).__name__ == "MissingParameter":
        words = f"{_called(param)} is missing: {_first_sentence(getattr(param, 'help', None))}"
        words += "".join(f" Example: `{example}`." for example in _examples(name)[:1])
    else:
        words = _plain(error.format_message())
        if words.startswith("Got unexpected extra argument") and name in ("compare", "plan"):
            words += f" {_ONE_PROBLEM}"
    return f"{words} See `{path} --help`."


def _meant_option(option: str, context: Any) -> str:
    command = getattr(context, "command", None)
    options = [name for param in getattr(command, "params", ()) for name in _option_names(param)]
    return meant(option, options) if near(option, options) else "it is none of this command."


def _option_names(param: Any) -> list[str]:
    if param.param_type_name != "option":
        return []
    return [name for name in (*param.opts, *param.secondary_opts) if name.startswith("--")]


def _called(param: Any) -> str:
    if param.param_type_name == "option":
        return str(param.opts[0])
    return str(param.metavar or param.name).removesuffix("...")


def _first_sentence(text: str | None) -> str:
    sentence = re.split(r"(?<=[a-z`)])[.;] ", text or "it is needed.", maxsplit=1)[0]
    return re.sub(r"^An? ", lambda article: article[0].lower(), sentence).rstrip(".") + "."


def _examples(name: str) -> tuple[str, ...]:
    return COMMANDS[name].examples if name in COMMANDS else ()


def _plain(text: str) -> str:
    for pattern, words in _REPLACED:
        text = pattern.sub(words, text)
    return text if text.endswith((".", "?", "!")) else f"{text}."

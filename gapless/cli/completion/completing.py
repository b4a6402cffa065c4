"""Shell completion: what an unfinished command line can become.

A script of `gapless tools completion` calls the program with the environment variable `VARIABLE`; then
nothing but completions is printed, one a line: the value, a tab, and what it means. zsh and fish quote what
they insert; bash inserts it as it is, and gets text that is quoted already: a file may be called
`a;reboot.onnx`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, get_args

from ..base import catalog

VARIABLE = "_GAPLESS_COMPLETE"
"""Environment variable that names the shell for which words are to be completed."""

TEXT = "COMP_TEXT"
"""Environment variable with what bash will replace: the word at the cursor as typed, or its last part."""

BASH = "bash"
HELP = "help"
_BLANKS = " \t\n"
_ESCAPED = re.compile(r"[^\w./,:=@%+-]")
_ESCAPED_IN_QUOTES = re.compile(r'["$`\\]')

_END = re.compile(r"(?<=[a-z`)])(?<!e\.g)[.;] ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One thing that the word can become."""

    value: str
    help: str = ""


def complete(words: Sequence[str]) -> int:
    """Print what the last word can become; never fails, because its output goes to a shell.

    `words`: what was typed behind the program's name, up to the cursor; the last one may be empty. For bash
    the line is in the environment instead (COMP_LINE, COMP_POINT), since bash splits words at "=" and ":".
    """
    in_bash = os.environ[VARIABLE] == BASH
    quote = ""
    typed = list(words)
    if in_bash:
        (_, *typed), quote = _split(_line(os.environ))
    try:
        found = [choice for choice in choices(typed or [""]) if choice.value.isprintable()]
    except Exception:  # half a command line may be anything; a shell must not see a traceback for it
        found = []
    if in_bash:
        sys.stdout.write("".join(f"{text}\n" for text in _insertable(found, typed, quote)))
    else:
        sys.stdout.write("".join(f"{choice.value}\t{choice.help}\n" for choice in found))
    return 0


def choices(words: Sequence[str]) -> Iterator[Choice]:
    """Yield what the last word can become, given those before it."""
    *before, word = words
    if HELP in before[:1] and word not in catalog.COMMANDS:
        before = before[1:]
    name = catalog.called(before)
    if not name:
        yield from _options(_command(None), before, word) if word.startswith("-") else _commands(word)
    elif name in catalog.GROUPS:
        yield from _commands(word, f"{name} ")
    elif name in catalog.COMMANDS:
        yield from _in_command(name, before[before.index(name.rpartition(" ")[2]) + 1 :], word)


def _commands(word: str, group: str = "") -> Iterator[Choice]:
    """Yield the commands of a group, or those of none, and all groups."""
    groups = {} if group else catalog.GROUPS
    known = {name: catalog.summary(name) for name in catalog.COMMANDS if name.startswith(group)}
    for name, text in {**known, **groups}.items():
        last = name.removeprefix(group)
        if last.startswith(word) and " " not in last:
            yield Choice(value=last, help=_sentence(text))


def _command(name: str | None) -> Any:
    """Return a command, or what stands above all of them, without loading more than that."""
    import typer

    from ..base.answer import app

    if name is not None:
        catalog.load([name])
    found: Any = typer.main.get_command(app)
    for word in [] if name is None else name.split():
        found = found.commands[word]
    return found


def _in_command(name: str, before: Sequence[str], word: str) -> Iterator[Choice]:
    command = _command(name)
    said, waiting, place = _read(command, before)
    inline, equals, value = word.partition("=")
    option = _by_name(command).get(inline) if equals and inline.startswith("--") else None
    if waiting is None and option is not None:
        for choice in _values(name, option, value, said):
            yield Choice(value=f"{inline}={choice.value}", help=choice.help)
    elif waiting is not None:
        yield from _values(name, waiting, word, said)
    elif word.startswith("-"):
        yield from _options(command, before, word)
    elif place is not None:
        yield from _values(name, place, word, said)
    elif not word:
        yield from _options(command, before, "--")


def _by_name(command: Any) -> dict[str, Any]:
    return {
        name: param
        for param in command.params
        if param.param_type_name == "option"
        for name in (*param.opts, *param.secondary_opts)
    }


def _read(command: Any, words: Sequence[str]) -> tuple[dict[str, str], Any, Any]:
    """Return what was said by parameter, the option that waits for its value, and the next argument."""
    options = _by_name(command)
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    said: dict[str, str] = {}
    waiting = None
    for word in words:
        name, equals, value = word.partition("=")
        if waiting is not None:
            said[waiting.name], waiting = word, None
        elif word in options and not _is_flag(options[word]):
            waiting = options[word]
        elif equals and name in options:
            said[options[name].name] = value
        elif not word.startswith("-") and arguments:
            said[arguments[0].name] = word
            if arguments[0].nargs == 1:
                arguments.pop(0)
    return said, waiting, arguments[0] if arguments else None


def _is_flag(option: Any) -> bool:
    return bool(option.is_flag or option.count)


def _options(command: Any, before: Sequence[str], word: str) -> Iterator[Choice]:
    used = {each.partition("=")[0] for each in before}
    for param in command.params:
        if param.param_type_name != "option" or param.hidden:
            continue
        names = (*param.opts, *param.secondary_opts)
        if used & set(names) and not param.multiple:
            continue
        for name in names:
            if name.startswith(word) and name.startswith("--"):
                yield Choice(value=name, help=_sentence(param.help or ""))
    if "--help".startswith(word):
        yield Choice(value="--help", help="Show what can be said here.")


def _values(command: str, param: Any, word: str, said: Mapping[str, str]) -> Iterator[Choice]:
    from .values import values_of

    known = values_of(command, param.name)
    names = known.matching(word, said) if known is not None else _choices_of(command, param.name, word)
    for name in dict.fromkeys(names):
        yield Choice(value=name)


def _choices_of(command: str, parameter: str, word: str) -> list[str]:
    """Return the words of a parameter that is one of a few."""
    from ..base.answer import REGISTERED
    from ..base.declared import field_of

    callback, field = REGISTERED[command], field_of(REGISTERED[command], parameter)
    pending: list[Any] = [field.form.choices if field else callback.__annotations__.get(parameter)]
    found: list[str] = []
    while pending:
        each = pending.pop()
        pending += get_args(each)
        if isinstance(each, type) and issubclass(each, Enum):
            found += [str(member.value) for member in each]
    return [name for name in found if name.startswith(word)]


def _sentence(text: str) -> str:
    return _END.split(" ".join(text.split()), maxsplit=1)[0].rstrip(".")


def _line(environment: Mapping[str, str]) -> str:
    """Return bash's command line up to the cursor."""
    line, point = environment.get("COMP_LINE", ""), environment.get("COMP_POINT", "")
    return line[: int(point)] if point.isdecimal() else line


def _split(line: str) -> tuple[list[str], str]:
    """Return the words of a line as a shell reads them, the one at the cursor last, and the open quote."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    characters = iter(line)
    for character in characters:
        if quote == "'" and character != quote:
            word = f"{word}{character}"
        elif character == quote:
            quote = ""
        elif character == "\\":
            escaped = next(characters, "")
            kept = character if quote and escaped not in '"$`\\' else ""
            word = f"{word or ''}{kept}{escaped}"
        elif not quote and character in "'\"":
            quote, word = character, word or ""
        elif not quote and character in _BLANKS:
            words += [] if word is None else [word]
            word = None
        else:
            word = f"{word or ''}{character}"
    return [*words, word or ""], quote


def _insertable(found: Sequence[Choice], typed: Sequence[str], quote: str) -> Iterator[str]:
    """Yield what bash inserts in place of the text that it names, so that it means the values."""
    word = typed[-1] if typed else ""
    text = _split(quote + os.environ.get(TEXT, word))[0][-1]
    kept = word[: len(word) - len(text)]
    for choice in found:
        if choice.value.startswith(kept):
            yield _quoted(choice.value[len(kept) :], quote, home=not kept and text.startswith("~"))


def _quoted(value: str, quote: str, *, home: bool) -> str:
    """Return a text of which a shell makes a value, behind an open quote; `home`: a ~ at its start counts."""
    if quote == "'":
        return value.replace("'", r"'\''")
    if quote:
        return _ESCAPED_IN_QUOTES.sub(r"\\\g<0>", value).replace("!", "\"'!'\"")
    start = 1 if home else 0
    return value[:start] + _ESCAPED.sub(r"\\\g<0>", value[start:])

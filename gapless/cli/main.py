"""The command line: every command computes an answer, and `main` prints it as text or as JSON."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from typing import Annotated, Any

import typer
from rich.console import ConsoleRenderable, RenderableType, RichCast
from rich.text import Text

from ..formulations.errors import ExecutionError, GaplessError, InvalidInputError
from ..formulations.printing import printable
from ..formulations.validation import meant, near, shown
from ..question.question import renamed
from ..question.subjects import OPEN_SECONDS
from ..version import __version__
from .base import catalog
from .base.answer import EXAMPLES, REGISTERED, Answer, View, app, in_order, outline
from .base.catalog import COMMANDS, GROUPS, RENAMED, SYNONYMS
from .base.console import console, discard, output_style, tell, using_style, writing_output
from .base.exits import ExitCode, code_of_error
from .base.general_options import (
    ColorOption,
    DebugOption,
    General,
    JsonOption,
    OpenSecondsOption,
    QuietOption,
    TrustOption,
    split_general,
)
from .base.help import ALL, whole
from .completion.completing import VARIABLE, complete

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
    today, hint = RENAMED.get(name), SYNONYMS.get(name.lower())
    if today:
        new = " or ".join(f"`gapless {each}`" for each in today)
        return InvalidInputError(f"no command {shown(name)}: it is now {new}")
    if hint is None:
        hint = _meant_command(name)
    words = f"did you mean {hint}?" if hint else meant(name, (*COMMANDS, *GROUPS), listed_by=listed)
    return InvalidInputError(f"no command {shown(name)}; {words}")


def _meant_command(name: str) -> str | None:
    """Return the command that has a typed name, today or before, without its group; None: there is none."""
    known = {each.rpartition(" ")[2]: each for each in COMMANDS}
    known |= {old: new[0] for old, new in RENAMED.items()}
    last = name.rpartition(" ")[2]
    if last in COMMANDS:
        return last
    found = dict.fromkeys(known[each] for each in near(last, known, most=1)) if name not in GROUPS else {}
    own = [each for each in found if " " not in name or each.startswith(name.partition(" ")[0])]
    return own[0] if own else None


def usage_message(error: Any, called: list[str]) -> str:
    """Return what a usage error says; `called`: the words after `gapless`."""
    context = getattr(error, "ctx", None)
    # Errors of the parser itself do not know their command.
    path = getattr(context, "command_path", f"gapless {catalog.called(called)}".strip())
    name, param = path.partition(" ")[2], getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    if option and type(error).__name__ == "NoSuchOption":
        words = f"no option {option}; {_meant_option(option, context)}"
    elif param is not None and type(error).__name__ == "MissingParameter":
        words = f"{_called_by(param)} is missing: {_first_sentence(getattr(param, 'help', None))}"
        words += "".join(f" Example: `{example}`." for example in _examples(name)[:1])
    else:
        words = _plain(error.format_message())
        if words.startswith("Got unexpected extra argument") and name in ("compare", "plan"):
            words += f" {_ONE_PROBLEM}"
    return f"{words} See `{path} --help`."


def _meant_option(option: str, context: Any) -> str:
    command = getattr(context, "command", None)
    options = [name for param in getattr(command, "params", ()) for name in _option_names(param)]
    today = renamed(option)
    if today is not None and today.option in options:
        if not today.form.example:
            return f"it is now {today.option}."
        example = f"{today.option} {today.form.example}"
        return f"it is now {today.option}, and its value has a unit, e.g. {example}."
    return meant(option, options) if near(option, options) else "it is none of this command."


def _option_names(param: Any) -> list[str]:
    if param.param_type_name != "option":
        return []
    return [name for name in (*param.opts, *param.secondary_opts) if name.startswith("--")]


def _called_by(param: Any) -> str:
    if param.param_type_name == "option":
        return str(param.opts[0])
    return str(param.metavar or param.name).removesuffix("...")


def _first_sentence(text: str | None) -> str:
    sentence = re.split(r"(?<=[a-z`)])[.;] ", text or "it is needed.", maxsplit=1)[0]
    return re.sub(r"^An? ", lambda article: article[0].lower(), sentence).rstrip(".") + "."


def _examples(name: str) -> tuple[str, ...]:
    return EXAMPLES.get(name, ())


def _plain(text: str) -> str:
    for pattern, words in _REPLACED:
        text = pattern.sub(words, text)
    return text if text.endswith((".", "?", "!")) else f"{text}."


_HELP = "--help"


@app.callback(invoke_without_command=True)
def top_level(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    color: ColorOption = None,
    trust: TrustOption = None,
    open_seconds: OpenSecondsOption = None,
    debug: DebugOption = False,
) -> None:
    """Handle what is said before the command; `main` looks for the general options itself."""
    if version:
        typer.echo(f"gapless {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


def main(arguments: Sequence[str] | None = None, *, loaded: Callable[[], None] = lambda: None) -> int:
    """Run the command line.

    `arguments`: words after the program's name; None: those of this process. `loaded`: called when the
    command is loaded, before it begins; what it raises ends the command.
    Errors are one message on standard error, never a traceback; the result is the exit code (`ExitCode`).
    """
    if VARIABLE in os.environ:
        return complete(sys.argv[1:] if arguments is None else arguments)
    general, words = split_general(list(sys.argv[1:] if arguments is None else arguments))
    with using_style(general.style):
        try:
            if general.trusted:
                from ..formulations.plugins import trust

                trust(*general.trusted)
            called = _called(words)
            _refuse_swallowed(words)
            loaded()
            with _opened_within(general.open_seconds):
                answer = called.main(words, prog_name="gapless", standalone_mode=False)
            if answer == ExitCode.INTERRUPTED:  # how newer typers hand on Ctrl-C; older ones raise Abort
                raise KeyboardInterrupt
            return _print(answer, general) if isinstance(answer, Answer) else int(answer or 0)
        except BrokenPipeError:
            discard(sys.stdout)
            return ExitCode.BROKEN_PIPE
        except (Exception, KeyboardInterrupt) as error:
            if general.debug:
                traceback.print_exc()
            return _fail(error, words, as_json=general.as_json)


def _opened_within(said: Sequence[str]) -> AbstractContextManager[None]:
    if not said:
        return nullcontext()
    from ..executor.graph.opening import opened_within

    return opened_within(OPEN_SECONDS.read(said[-1], in_file=False))


def commands() -> Any:
    """Return all commands as the click group that the command line is, e.g. to write a reference."""
    catalog.load()
    in_order()
    return _loaded()


def every_command() -> dict[str, Any]:
    """Return all commands as click commands, by their names: "plan", "device bench"."""
    found: dict[str, Any] = {}
    for name, command in commands().commands.items():
        inner = getattr(command, "commands", None)
        found |= {name: command} if inner is None else {f"{name} {last}": one for last, one in inner.items()}
    return {name: found[name] for name in COMMANDS}


def _loaded() -> Any:
    """Return the commands that are loaded."""
    return _group(*REGISTERED)


@cache
def _group(*names: str | None) -> Any:
    """Return these commands, all that are registered; they are built once, which takes 50 ms and more.

    A command remembers its option for help as it is first asked for; here it is, with the names of the group.
    """
    found = typer.main.get_command(app)
    for name, command in _leaves(found):
        command.context_settings["help_option_names"] = found.context_settings["help_option_names"]
        command.make_context(name, [], resilient_parsing=True)
    return found


def _leaves(group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            yield from _leaves(command)
        else:
            yield name, command


def _called(words: list[str]) -> Any:
    """Return the commands, of which only those are loaded that the words need."""
    if words[:1] == ["help"]:  # as in other programs
        words[:] = [*words[1:3], _HELP]
    said = words[: words.index("--")] if "--" in words else words
    whole.set(ALL in said)
    words[:] = [_HELP if word == ALL and place < len(said) else word for place, word in enumerate(words)]
    name = catalog.called(words)
    if not name or name in GROUPS:
        words += [] if _HELP in words or not name else [_HELP]
        return typer.main.get_command(outline())
    if name in COMMANDS:
        catalog.load([name])
        return _loaded()
    everything = commands()
    if name not in everything.commands:
        raise unknown_command(name)
    return everything


def _print(answer: Answer, general: General) -> int:
    with writing_output():
        if general.as_json:
            from ..files import documents

            sys.stdout.write(documents.json_text(answer.document()))
        else:
            view = answer.view()
            if isinstance(view, str):  # a text that no terminal may break into lines: a script
                sys.stdout.write(view)
            else:
                console(sys.stdout).print(_drawn(view))
    for note in () if general.style.quiet else answer.notes:
        tell(note)
    return answer.code


def _drawn(view: View) -> RenderableType:
    """Return what people see as what a console prints."""
    if isinstance(view, str | ConsoleRenderable | RichCast):
        return view
    from ..view.terminal.blocks import blocks_view

    return blocks_view(view)


def _refuse_swallowed(words: list[str]) -> None:
    """Raise InvalidInputError where an option stands in the place of the value of another one."""
    names = {name: param for param in _parameters(words) for name in _option_names(param)}
    said = iter(words[: words.index("--")] if "--" in words else words)
    for word in said:
        param = names.get(word)
        if param is not None and not param.is_flag and (value := next(said, None)) in names:
            raise InvalidInputError(
                f"{word} needs a value, but {value} follows; if {value} is the value: {word}={value}"
            )


def _resumes(words: list[str]) -> bool:
    """Return whether the command that was called can go on with what it has finished."""
    return any(parameter.name == "resume" for parameter in _parameters(words))


def _parameters(words: list[str]) -> Sequence[Any]:
    """Return the options and arguments of the command that was called; none: it is not loaded."""
    found: Any = _loaded() if REGISTERED else None
    for word in catalog.called(words).split():
        found = getattr(found, "commands", {}).get(word)
    return getattr(found, "params", ())


def _fail(error: BaseException, called: list[str], *, as_json: bool) -> int:
    """Say what went wrong, once, where it is looked for."""
    if isinstance(error, UsageError):
        code, text = ExitCode.USAGE, usage_message(error, called)
    else:
        code, text = code_of_error(error), _message(error)
    if code is ExitCode.INTERRUPTED and _resumes(called):
        text += "; what was finished is kept: the same command with --resume goes on"
    if as_json:
        from ..files import documents

        with suppress(ExecutionError, BrokenPipeError), writing_output():
            sys.stdout.write(documents.json_text(documents.error_document(error, code, text)))
        if output_style().relayed:
            return code
    words = Text("error: ", style="bold red").append(printable(text), style="not bold default")
    with suppress(OSError):
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

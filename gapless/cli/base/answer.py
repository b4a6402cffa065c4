"""What every command returns, and how commands are registered."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import typer
from rich.console import RenderableType
from typer.core import TyperGroup

from .catalog import COMMANDS, GROUP, GROUPS, command_name, panel, summary
from .console import stdout_kept_clean
from .declared import expanded
from .exits import ExitCode
from .general_options import ColorOption, JsonOption, OpenSecondsOption, QuietOption
from .help import CommandWithHelp

if TYPE_CHECKING:
    from ...answers.blocks import Block


class _InOrder(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the catalog, groups last; old generations of typer sort them."""
        return sorted(self.commands, key=lambda name: name in GROUPS)


_OLD_NAMES = {"no-check": "unchecked"}
"""What options were called before: still understood, and in no help."""


def _today(name: str) -> str:
    """Return what an option is called today."""
    return _OLD_NAMES.get(name, name)


app = typer.Typer(
    cls=_InOrder,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "token_normalize_func": _today},
    help="Plan and run pipelines of neural networks over the unequal processors of one device.",
    epilog="Exit codes: 0 ok, 2 bad input or usage, 3 proved infeasible, 4 no answer within the limit, "
    "5 backend or device failure, 6 verification failure, 7 a server lost all its units, 130 interrupted.",
)


View: TypeAlias = "RenderableType | Iterable[Block]"
"""What people see of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command found out."""

    document: Callable[[], dict[str, Any]]  # for machines
    view: Callable[[], View]  # for people; a str is written as it is
    code: int = ExitCode.OK  # for the caller
    notes: Sequence[str] = ()  # what people should know besides; printed to standard error
    files: Mapping[str, Callable[[], str | None] | None] = field(default_factory=dict)
    """The texts of files, by the parameters that name these files.

    None: its document as JSON. A function returns None where there is nothing to write.
    """
    drawn: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    """The same of what writes its file itself: pictures, pages."""

    @classmethod
    def of(
        cls,
        kind: str,
        found: object,
        view: Callable[[], View],
        *,
        code: int = ExitCode.OK,
        notes: Sequence[str] = (),
        files: Mapping[str, Callable[[], str | None] | None] = {},
        drawn: Mapping[str, Callable[[Path], object]] = {},
        **more: object,
    ) -> Answer:
        """Return the answer whose document is what was found, and more by its keys."""

        def document() -> dict[str, Any]:
            from ...files import documents

            data = documents.plain_data(found), documents.plain_data(more)
            return {**documents.header(kind), **data[0], **data[1]}

        return cls(document=document, view=view, code=code, notes=notes, files=files, drawn=drawn)

    def _as_json(self) -> str:
        from ...files import documents

        return documents.json_text(self.document())

    def written(self, given: Mapping[str, Any]) -> Answer:
        """Write the files that are asked for; return the answer with notes that say so."""
        notes = list(self.notes)
        for name, text in self.files.items():
            notes += write_out(given.get(name), text or self._as_json)
        for name, draw in self.drawn.items():
            if path := given.get(name):
                draw(path)
                notes.append(f"wrote {path}")
        return replace(self, notes=notes)


_GENERAL = {"json": (JsonOption, False), "quiet": (QuietOption, False), "color": (ColorOption, None)}
"""Options that `cli.main` looks for itself: commands show them in their help, and never get them."""

_OF_MODELS = {"open_seconds": (OpenSecondsOption, None)}
"""The same, of commands that say how the model files are opened which they name."""


def command(*examples: str) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Register a command; whatever is printed while it works goes to standard error.

    The files that its answer consists of are written where its parameters name them. Its heading stands in
    `catalog`. `examples`: command lines that work, with a remark behind "#".
    """

    def register(function: Callable[..., Answer]) -> Callable[..., Answer]:
        name = command_name(function.__name__)
        arguments, parameters = expanded(function)
        names = [parameter.name for parameter in parameters]
        general = _GENERAL | (_OF_MODELS if "simplify" in names else {})

        @wraps(function)
        def registered(**given: Any) -> Answer:
            with stdout_kept_clean():
                own = arguments({key: value for key, value in given.items() if key not in general})
                return function(**own).written(own)

        kind = inspect.Parameter.KEYWORD_ONLY
        parameters += [
            inspect.Parameter(key, kind, default=default, annotation=option)
            for key, (option, default) in general.items()
        ]
        takes(registered, parameters)
        epilog = "\n\n".join([f"Example{'s' * (len(examples) > 1)}:", *(f"$ {each}" for each in examples)])
        _group_of(name).command(
            name=name.rpartition(" ")[2],
            cls=CommandWithHelp,
            rich_help_panel=panel(name),
            epilog=epilog if examples else None,
        )(registered)
        REGISTERED[name], EXAMPLES[name] = registered, examples
        return registered

    return register


REGISTERED: dict[str, Callable[..., Answer]] = {}
"""The commands that are loaded, by name."""

EXAMPLES: dict[str, tuple[str, ...]] = {}
"""The examples of the commands that are loaded, by name."""


def _new_group(name: str) -> typer.Typer:
    return typer.Typer(
        cls=_InOrder,
        no_args_is_help=True,
        help=GROUPS[name],
        rich_help_panel=GROUP,
        context_settings={"token_normalize_func": _today},
    )


_groups = {name: _new_group(name) for name in GROUPS}
for _name, _group in _groups.items():
    app.add_typer(_group, name=_name, rich_help_panel=GROUP)


def _group_of(name: str) -> typer.Typer:
    return _groups[name.partition(" ")[0]] if " " in name else app


def in_order() -> None:
    """Bring the commands that are loaded into the order of the catalog."""
    names = list(COMMANDS)

    def sort(commands: typer.Typer, group: str) -> None:
        commands.registered_commands.sort(key=lambda info: names.index(f"{group}{info.name}"))

    sort(app, "")
    for name, group in _groups.items():
        sort(group, f"{name} ")


def outline() -> typer.Typer:
    """Return what lists all commands, without loading them."""
    listed = copy(app)
    listed.registered_commands, listed.registered_groups = [], []
    groups = {name: _new_group(name) for name in GROUPS}
    for name, group in groups.items():
        listed.add_typer(group, name=name, rich_help_panel=GROUP)
    for name in COMMANDS:
        first, space, last = name.partition(" ")
        place = groups[first] if space else listed
        place.command(name=last or name, rich_help_panel=panel(name), help=summary(name))(lambda: None)
    return listed


def takes(function: Callable[..., Any], parameters: Iterable[inspect.Parameter]) -> None:
    """Give a function, which takes anything, the parameters that typer is to see in it."""
    signature = inspect.Signature(list(parameters))
    # Python looks for this attribute (PEP 362), but functions do not declare it.
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {name: each.annotation for name, each in signature.parameters.items()}


def command_line() -> str:
    """Return the command as it was called, for pages and folders that say how they were made."""
    return shlex.join(["gapless", *sys.argv[1:]])


def write_out(out: Path | None, text: Callable[[], str | None]) -> list[str]:
    """Write a text to the file that is named, if any; return the note that says so."""
    if out is None:
        return []
    from ...formulations.files import save

    if (found := text()) is None:
        return [f"{out} is not written: no plan was found"]
    save(found, out)
    return [f"wrote {out}"]

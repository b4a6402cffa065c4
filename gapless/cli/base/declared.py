"""Options that are made from fields: a parameter of a command that is a subject has one for each of them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from ...formulations.errors import InvalidInputError
from ...question.fields import Field, Only, Said
from ...question.values import Names
from .general_options import heading


@dataclass(frozen=True, slots=True)
class Declared:
    """A parameter of a command whose options come from fields.

    `subject`: what is said where no option is; None: the parameter is a field itself.
    """

    name: str
    fields: tuple[Field, ...]
    subject: Said | None

    @classmethod
    def of(cls, parameter: inspect.Parameter) -> Declared | None:
        """Return what a parameter declares; None: it is an option of its own."""
        kind, *more = get_args(parameter.annotation) or (parameter.annotation,)
        for one in more:
            if isinstance(one, Field):
                field = replace(one, name=parameter.name, default=_default(parameter))
                return cls(parameter.name, (field,), None)
        if not (isinstance(kind, type) and issubclass(kind, Said)):
            return None
        subject = _default(parameter) or kind()
        names = [name for one in more if isinstance(one, Only) for name in one.names]
        fields = [each for each in kind.known_fields() if not names or each.name in names]
        usual = [replace(each, default=subject.value(each.name)) for each in fields]
        return cls(parameter.name, tuple(usual), subject)

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield what typer is to see."""
        for field in self.fields:
            kind, default = _typed(field)
            yield inspect.Parameter(
                called(field), inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
            )

    def take(self, given: dict[str, Any]) -> Any:
        """Take what was said out of the values of options; raises InvalidInputError that names the option."""
        values = {}
        for field in self.fields:
            value = given.pop(called(field), None)
            if field.flag is not None:
                values[field.name] = field.flag if value is not _flag_of(field) else field.default
            elif value in (None, []):
                values[field.name] = field.default
            else:
                text = field.form.joint.join(value) if field.form.repeated else str(value)
                values[field.name] = field.read(text, in_file=False)
            if field.form.names is Names.RESULT:
                check_writable(values[field.name])
        if self.subject is None:
            return values[self.name]
        return self.subject.with_values(values)

    def given(self, value: Any) -> Iterator[tuple[Field, Any]]:
        """Yield the fields of a value of this parameter that are not as where no option is given."""
        for field in self.fields:
            one = value if self.subject is None else value.value(field.name)
            if one is not None and one != field.default:
                yield field, one


def called(field: Field) -> str:
    """Return the name of the parameter of an option."""
    return "check" if field.flag is False else field.option.removeprefix("--").replace("-", "_")


def _flag_of(field: Field) -> bool:
    """Return what typer says of a flag that was not given."""
    return field.flag is False


def _default(parameter: inspect.Parameter) -> Any:
    return None if parameter.default is parameter.empty else parameter.default


def _typed(field: Field) -> tuple[Any, Any]:
    """Return the type and the default of the parameter of an option."""
    if field.argument:
        argument = typer.Argument(metavar=field.form.metavar, help=field.help, show_default=False)
        return Annotated[str | None, argument], None
    option = heading(field.heading or None)
    if field.flag is not None:
        name = f"--{field.name}/{field.option}" if field.flag is False else field.option
        return Annotated[bool, option(name, help=field.help), field], _flag_of(field)
    names = ("--out", "-o") if field.option == "--out" else (field.option,)
    made = option(*names, metavar=field.form.metavar, help=field.help)
    default = None if field.default in (None, ()) else field.form.write(field.default)
    made.show_default = default is not None
    taken: Any = list[str] if field.form.repeated else str
    # Help and what completes words look for the field; typer leaves it alone.
    return Annotated[taken | None if default is None else taken, made, field], default


def field_of(command: Any, parameter: str) -> Field | None:
    """Return the field that an option of a command, or of its function, is made from; None: of none."""
    annotation = getattr(command, "callback", command).__annotations__.get(parameter)
    return next((one for one in get_args(annotation) if isinstance(one, Field)), None)


def declared(parameters: Mapping[str, inspect.Parameter]) -> dict[str, Declared]:
    """Return what parameters declare, by name."""
    found = {name: Declared.of(each) for name, each in parameters.items()}
    return {name: one for name, one in found.items() if one is not None}


def annotated(function: Callable[..., Any], names: Mapping[str, Any] = {}) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function with their types; `names`: what stands for types not loaded."""
    hints = get_type_hints(function, localns=dict(names), include_extras=True)
    own = inspect.signature(function).parameters
    return {name: each.replace(annotation=hints.get(name, each.annotation)) for name, each in own.items()}


def expanded(
    function: Callable[..., Any],
) -> tuple[Callable[[dict[str, Any]], dict[str, Any]], list[inspect.Parameter]]:
    """Return what makes the arguments of a command of the values of options, and its parameters for typer."""
    own = annotated(function)
    groups = declared(own)

    def arguments(given: dict[str, Any]) -> dict[str, Any]:
        found = {name: group.take(given) for name, group in groups.items()}
        return {**given, **found}

    parameters: list[inspect.Parameter] = []
    for name, each in own.items():
        parameters += list(groups[name].parameters()) if name in groups else [each]
    return arguments, parameters


def check_writable(path: Path | None) -> None:
    """Refuse a place for a result before the work is done, not after it."""
    if path is None:
        return
    try:
        if path.is_dir():
            raise InvalidInputError(f"cannot write {path}: it is a folder")
    except OSError as error:  # e.g. its name is too long
        raise InvalidInputError(f"cannot write {path}: {error.strerror or error}") from None
    if not os.access(path.parent, os.W_OK):
        reason = "may not be written to" if path.parent.is_dir() else "does not exist"
        raise InvalidInputError(f"cannot write {path}: the folder {path.parent} {reason}")

"""Fields: what can be said of a subject, each declared once on the class of it.

From a field come the option of the command line, the key in files, what is sent to a board, the check of a
value that Python gives, and the words of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..formulations.errors import InvalidInputError
from ..formulations.terms import Objective
from ..formulations.validation import MAX_NAME_LENGTH, meant
from .values import YES, Form, Place, text_form

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_UNITS = ("_us", "_nj", "_bytes", "_permille", "_s")
"""How the names of amounts end; their texts have the unit, so that names of options have none."""


Made = TypeVar("Made", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One thing that can be said.

    `name`: of the attribute. `key`: in files. `option`: of the command line.
    """

    help: str
    form: Form = text_form()
    name: str = ""
    heading: str = ""
    """Of the help under which its option stands."""
    about: str = ""
    """What it has a meaning for, where that is not everything."""
    flag: Any = None
    """What an option without a value means; None: the option has a value."""
    called: str = ""
    """The option, where the name does not say it."""
    argument: bool = False  # whether the command line has it as an argument
    default: Any = None
    rare: bool = False
    """Whether few people ask for it: the help of a command with many options shows its name alone."""
    bare: bool = False
    """Whether files keep a number without its unit, which the key names."""
    not_on_boards: str = ""
    """Why it has no meaning for a command on a board, where it has none."""

    @property
    def key(self) -> str:
        """What files call it."""
        return self.name.removesuffix("_permille")

    @property
    def option(self) -> str:
        """What the command line calls it: values have their units there, names have none."""
        name = self.name
        for unit in _UNITS:
            name = name.removesuffix(unit)
        return self.called or f"--{name.replace('_', '-')}"

    @property
    def old_option(self) -> str:
        """What the command line called it before values had units."""
        return f"--{self.key.replace('_', '-')}"

    def read(self, text: str, *, in_file: bool) -> Any:
        """Return the value that a text says; raises InvalidInputError, which names the option or the key."""
        return self.form.read(Place(self.key if in_file else self.option, bare=in_file), text)

    def checked(self, value: Any) -> Any:
        """Return a value that Python gives, which may be a text as in a file, as the attribute has it."""
        if isinstance(value, bool) and self.form is not YES:
            raise self._wrong(value)
        known = value if isinstance(value, str) else None
        if known is None and self.form.plain and isinstance(value, str | int | PurePath | Objective):
            known = str(value)
        if known is None and self.form.take is not None:
            try:
                return self.form.take(value)
            except (AttributeError, TypeError, ValueError):
                raise self._wrong(value) from None
        try:
            text = self.form.write(value) if known is None else known
        except (AttributeError, OverflowError, TypeError, ValueError):
            text = None
        if text is None or (known is None and self.form.plain):
            raise self._wrong(value)
        return self.form.read(Place(self.name, bare=True), text)

    def _wrong(self, value: Any) -> InvalidInputError:
        return InvalidInputError(f"{self.name} is {value!r}, must be {self.form.metavar or 'a text'}")

    def text(self, value: Any) -> str:
        """Return a value as files keep it."""
        return str(value) if self.bare else self.form.write(value)

    def words(self, value: Any) -> list[str]:
        """Return the words of a command line that say a value."""
        if self.flag is not None:
            return [self.option] if value == self.flag else []
        text = self.form.write(value)
        return [f"{self.option}={each}" for each in (text.splitlines() if self.form.repeated else [text])]


def said(help: str, form: Form = text_form(), about: str = "", **how: Any) -> Field:
    """Return a field as a parameter of a command has it; its name is that of the parameter."""
    return Field(help=help, form=form, about=about, **how)


def attribute(said: Field, default: Any = None) -> Any:
    """Return a field as an attribute of a subject is declared by it; its name is that of the attribute."""
    return field(default=default, metadata={_FIELD: said})


def attributes(heading: str) -> Callable[..., Any]:
    """Return what declares the attributes of a subject whose options stand under a heading of the help.

    What is said by yes or no is a flag, which is off where nothing is said.
    """

    def declared(
        help: str, form: Form = text_form(), about: str = "", *, default: Any = None, **how: Any
    ) -> Any:
        if form is YES and "flag" not in how:
            how["flag"], default = True, False
        return attribute(said(help, form, about, heading=heading, **how), default)

    return declared


_FIELD = "field"
"""Key of a field in what a dataclass knows of an attribute."""


@dataclass(frozen=True, slots=True)
class Only:
    """Of which fields of a subject a command has options, where not of all."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, *names: str) -> Self:
        """Return these fields."""
        return cls(names)


@dataclass(frozen=True, kw_only=True)
class Said:
    """What is said of one subject; each attribute is a field."""

    def __post_init__(self) -> None:
        for each in self.own_fields():
            value = getattr(self, each.name)
            if value is not each.default:
                object.__setattr__(self, each.name, each.checked(value))

    @classmethod
    def own_fields(cls) -> tuple[Field, ...]:
        """Return the fields that are attributes, in the order of help."""
        if cls.__name__ not in _DECLARED:
            _DECLARED[cls.__name__] = _declared(cls)
        return _DECLARED[cls.__name__]

    @classmethod
    def known_fields(cls) -> tuple[Field, ...]:
        """Return all fields, in the order of help."""
        return cls.own_fields()

    @classmethod
    def field_named(cls, name: str) -> Field:
        """Return the field of a name."""
        return next(each for each in cls.known_fields() if each.name == name)

    @classmethod
    def of_texts(cls, texts: Mapping[str, str], *, in_file: bool = True) -> Self:
        """Return what texts say, by the keys of fields.

        `in_file`: whether a file says it, or the command line: an error names the place.
        Raises InvalidInputError: a value is not valid, or a key is none.
        """
        known = {each.key: each for each in cls.known_fields()}
        unknown = sorted(set(texts) - set(known))
        if unknown:
            name = unknown[0][:MAX_NAME_LENGTH]
            raise InvalidInputError(
                f"the problem is named by {name!r}, which this gapless does not know; {meant(name, known)}"
            )
        read = {known[key].name: known[key].read(text, in_file=in_file) for key, text in texts.items()}
        return cls().with_values(read)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return the same with other values, by the names of fields."""
        return replace(self, **values)

    def said(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and the values of what is said: what is as nothing said is left out."""
        for each in self.known_fields():
            value = self.value(each.name)
            if value is not None and value != each.default and (value is not False or each.default is True):
                yield each.name, value

    def value(self, name: str) -> Any:
        """Return what is said of a field."""
        return getattr(self, name)

    def texts(self) -> dict[str, str]:
        """Return what is said as files keep it, by key; `of_texts` reads it."""
        return {(one := self.field_named(name)).key: one.text(value) for name, value in self.said()}

    def options(self, *names: str) -> list[str]:
        """Return the options of what is said; with names, of these fields only."""
        return [self.field_named(name).option for name, _ in self.said() if not names or name in names]

    def made(self, kind: type[Made], **more: Any) -> Made:
        """Return a dataclass with what is said of its fields; `more`: what something else says of others."""
        own = {each.name for each in self.known_fields()} - set(more)
        said = {each.name: self.value(each.name) for each in fields(kind) if each.name in own}
        return kind(**said, **more)

    def __bool__(self) -> bool:
        """Whether anything is said."""
        return any(True for _ in self.said())


Given = tuple[Field, Any]
"""A field, and the value that is said of it."""


def given(fields: Iterable[Field], words: Mapping[str, Any]) -> list[Given]:
    """Return what Python says by the names of fields; None: nothing is said.

    Raises InvalidInputError: a value is not valid, or a name is none of the fields.
    """
    known = {each.name: each for each in fields}
    if stray := [name for name in words if name not in known]:
        raise InvalidInputError(f"{stray[0]!r} cannot be said here; {meant(stray[0], known)}")
    return [(known[name], known[name].checked(value)) for name, value in words.items() if value is not None]


_DECLARED: dict[str, tuple[Field, ...]] = {}
"""The fields of each subject, which are looked up once."""


def _declared(subject: type[Said]) -> tuple[Field, ...]:
    return tuple(
        replace(each.metadata[_FIELD], name=each.name, default=each.default)
        for each in fields(subject)
        if _FIELD in each.metadata
    )


def fields_of(*subjects: type[Said] | Field, only: Sequence[str] = ()) -> list[Field]:
    """Return the fields of several subjects; `only`: with these names."""
    found: list[Field] = []
    for one in subjects:
        found += [one] if isinstance(one, Field) else one.known_fields()
    return [each for each in found if not only or each.name in only]

"""What can be minimised and what rules can speak about, as tables that everything else reads.

A formulation lists its objective terms (`TermInfo`) and the quantities of its plans (`QuantityInfo`). The
judge, scores, rules, expressions in files, encodings, command line, tables, plots and documentation read
these lists: a new term or quantity is written down once, and a term is a quantity as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from .expr import BoolVar, Expr, IntVar, Variable


class Dimension(StrEnum):
    """What an integer counts: how it is shown to people."""

    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    NANOJOULES = "nanojoules"
    BYTES = "bytes"
    PERMILLE = "permille"
    COUNT = "count"

    @property
    def suffix(self) -> str:
        """What names of such numbers end in."""
        return _SUFFIXES.get(self, "")


_SUFFIXES = {
    Dimension.MICROSECONDS: "_us",
    Dimension.NANOSECONDS: "_ns",
    Dimension.NANOJOULES: "_nj",
    Dimension.BYTES: "_bytes",
    Dimension.PERMILLE: "_permille",
}


@dataclass(frozen=True, slots=True)
class TermInfo:
    """A quantity that can be minimised."""

    name: str  # its name in objectives
    text: str  # what it is, in one sentence
    dimension: Dimension = Dimension.COUNT  # what it counts
    _: KW_ONLY
    field: str = ""
    """The same with its unit, as scores and files call it: the attribute of `PlanNumbers` that holds it.
    Nothing: the name and what its dimension ends in, "period_us"."""
    label: str = ""  # what tables call it; nothing: the name, in words
    most: Callable[..., int] | None = None
    """From the tables to its largest possible value (the least is 0): rules can speak about it as the
    quantity `field`. None: they cannot, or there is a quantity with more to say."""
    excess: Callable[[Any, int], Expr] | None = None
    """Of a ratio: from the tables and a value to an expression that is at most 0 exactly if the term is at
    most that value. None: the term is the quantity `field`, an integer expression."""
    costly: bool = False
    """Whether computing it takes long: scores have it when it is asked for (`Score.later`)."""

    def __post_init__(self) -> None:
        """Fill in what follows from the name."""
        object.__setattr__(self, "field", self.field or f"{self.name}{self.dimension.suffix}")
        object.__setattr__(self, "label", self.label or self.name.replace("_", " "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """One index of a quantity."""

    name: str  # what it counts: "unit", "layer", "request"
    allowed: Callable[..., Sequence[int]]
    """From the tables and the indices before it to the values that it can take."""


UNIT = Index(name="unit", allowed=lambda tables, *_: range(tables.unit_count))
"""The units of tables that count them."""


@dataclass(frozen=True, slots=True)
class QuantityInfo:
    """A number of a plan that rules can speak about; as an expression it is a variable."""

    name: str  # its name in expressions and files, with the unit as last word
    text: str  # what it is, in words
    indices: tuple[Index, ...] = ()  # what it is about; none for a quantity of the whole plan
    _: KW_ONLY
    most: Callable[..., int] | None = None
    """From the tables and the indices to its largest possible value (the least is 0). None: it is true or
    false."""
    read: Callable[..., int] | None = None
    """From the numbers of a plan and the indices to its value. None: the attribute of that name, which is a
    number, a method of the indices, or numbers by index (of a mapping 0 where there is none)."""


InfoT = TypeVar("InfoT", TermInfo, QuantityInfo)


def table(infos: Iterable[InfoT]) -> Mapping[str, InfoT]:
    """Return a table by name, in the order of the list."""
    return MappingProxyType({str(info.name): info for info in infos})


def quantity_table(
    infos: Iterable[QuantityInfo], terms: Mapping[str, TermInfo]
) -> Mapping[str, QuantityInfo]:
    """Return the table of what rules can speak about: some quantities, and the terms that have a `most`."""
    whole = (QuantityInfo(t.field, t.text, most=t.most) for t in terms.values() if t.most is not None)
    return table((*infos, *whole))


class PlanNumbers:
    """Every quantity and term of one well-formed plan, in exact integers: what the judge reads.

    A formulation derives from this class; its attributes are computed from its tables and a plan by index.
    """

    terms: ClassVar[Mapping[str, TermInfo]]
    quantities: ClassVar[Mapping[str, QuantityInfo]]

    def term(self, name: str) -> int:
        """Return the value of an objective term."""
        value: int = getattr(self, self.terms[name].field)
        return value

    def values(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the values of several terms."""
        return tuple(map(self.term, names))

    def __call__(self, variable: Variable) -> int:
        """Return the value of a quantity."""
        info = self.quantities[variable.name]
        if info.read is not None:
            return info.read(self, *variable.args)
        value: Any = getattr(self, info.name)
        found: int = value(*variable.args) if callable(value) else _at(value, *variable.args)
        return found


def _at(value: Any, *indices: int) -> Any:
    for index in indices:
        value = value.get(index, 0) if isinstance(value, Mapping) else value[index]
    return value


class Quantities:
    """The quantities of a problem as variables of expressions, with bounds that hold for every plan.

    `infos`: the quantities of the formulation; `tables`: the integer tables of the problem.
    """

    def __init__(self, infos: Mapping[str, QuantityInfo], tables: Any) -> None:
        self._infos, self._tables = infos, tables

    def truth(self, name: str, *args: int) -> BoolVar:
        """Return a quantity that is true or false; its indices are not checked."""
        return BoolVar(str(name), args)

    def number(self, name: str, *args: int) -> IntVar:
        """Return a quantity that is a number; its indices are not checked."""
        most = self._infos[name].most
        assert most is not None
        return IntVar(str(name), args, 0, most(self._tables, *args))

    def find(self, name: str, args: Sequence[Any]) -> Variable:
        """Return a quantity by a name and indices that come from outside.

        Raises KeyError: there is no such quantity; its only argument says what there is.
        """
        info = self._infos.get(name)
        if info is None:
            raise KeyError(f"quantities are {', '.join(self._infos)}")
        if len(args) != len(info.indices):
            names = ", ".join(index.name for index in info.indices) or "none"
            raise KeyError(f"{name} has {len(info.indices)} indices ({names}), not {len(args)}")
        for position, (index, value) in enumerate(zip(info.indices, args, strict=True)):
            allowed = index.allowed(self._tables, *args[:position])
            if type(value) is not int or value not in allowed:
                raise KeyError(f"{index.name} {value!r} of {name} is not {_shown(allowed)}")
        return self.truth(name, *args) if info.most is None else self.number(name, *args)


def _shown(allowed: Sequence[int]) -> str:
    if isinstance(allowed, range) and len(allowed) > 1:
        return f"in {allowed[0]} to {allowed[-1]}"
    return f"one of {', '.join(map(str, allowed))}" if allowed else "possible here"

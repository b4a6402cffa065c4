"""What can be minimised, what rules can speak about, and what is minimised: terms by name.

A formulation lists its objective terms (`TermInfo`) and the quantities of its plans (`QuantityInfo`). The
judge, scores, rules, expressions in files, encodings, command line, tables, plots and documentation read
these lists: a new term or quantity is written down once, and a term is a quantity as well.

What is minimised: terms by name, most important first. Which terms there are, and what they mean, a
formulation says; a problem refuses those that its formulation does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from .errors import InvalidProblemError
from .expr import BoolVar, Expr, IntVar, Variable
from .validation import Defects, FileContent


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


class Term(StrEnum):
    """What terms are called in all formulations, and what they count; `TERMS` of each says what they are."""

    dimension: Dimension
    field: str  # as in `TermInfo`; empty: it follows from the name

    def __new__(cls, name: str, dimension: Dimension = Dimension.COUNT, field: str = "") -> Term:
        """Return a member that is equal to its name."""
        found = str.__new__(cls, name)
        found._value_, found.dimension, found.field = name, dimension, field
        return found

    THROUGHPUT = "throughput", Dimension.NANOSECONDS, "interval_ns"
    PERIOD = "period", Dimension.MICROSECONDS
    GAPNESS = "gapness", Dimension.MICROSECONDS
    PAPER_GAPNESS = "paper_gapness", Dimension.MICROSECONDS
    LATENCY = "latency", Dimension.MICROSECONDS
    STREAM_LATENCY = "stream_latency", Dimension.MICROSECONDS
    BUBBLES = "bubbles", Dimension.MICROSECONDS
    BOTTLENECK = "bottleneck", Dimension.MICROSECONDS
    MAKESPAN = "makespan", Dimension.MICROSECONDS
    LATENESS = "lateness", Dimension.MICROSECONDS
    WORK = "work", Dimension.MICROSECONDS
    TRANSFERS = "transfers", Dimension.MICROSECONDS
    PEAK_MEMORY = "peak_memory", Dimension.BYTES, "peak_bytes"
    TRAFFIC = "traffic", Dimension.BYTES
    ENERGY = "energy", Dimension.NANOJOULES
    IDLE = "idle", Dimension.PERMILLE
    REDUNDANCY = "redundancy", Dimension.COUNT, "extra_flops"
    UNITS = "units"
    DEVICES = "devices"
    HOPS = "hops"
    IN_FLIGHT = "in_flight"
    LATE = "late"
    CONTENTION = "contention"
    DISPLACEMENT = "displacement"


class Quantity(StrEnum):
    """What variables that describe plans are called in all formulations, with what they are usually about.

    The indices of each formulation stand in its `QUANTITIES`: of networks that come as requests the request
    comes first, and chunks are those of the plan, of a unit, or of a request.
    """

    ON = "on"  # (layer, unit): the unit, or device, runs the layer
    USES = "uses"  # (unit): it runs at least one layer
    CUT = "cut"  # (boundary): a chunk ends and the next one starts here, 0 < boundary < n
    BUSY = "busy_us"  # (unit): how long it computes, 0 when not used
    STAGE = "stage_us"  # (device): time that one item takes of it, with messages, 0 when not used
    TRANSFER = "transfer_us"  # (unit): what it sends and receives, 0 when not used
    MEMORY = "memory_bytes"  # (unit): bytes that it needs, 0 when not used
    EXTRA = "extra_permille"  # (device): part of its operations that others do, too, 0 when not used
    CHUNKS = "chunks"
    # Of two devices, or of a layer:
    SENDS = "sends"  # (device, device): the first sends its results to the second
    WITH = "with"  # (device, device): both are in one pipeline, first < second
    LEADS = "leads"  # (device): the device leads its group
    TOGETHER = "together"  # (device, device): both are in one group, first < second
    SIZE = "group_size"  # (layer): number of devices that serve the layer
    # Of requests:
    START = "start_us"  # (request): when its first chunk starts
    FINISH = "finish_us"  # (request): when its last chunk ends
    IS_LATE = "is_late"  # (request): it ends after its deadline
    POSITION = "position"  # (request): place in the order, 0 is first
    BEFORE = "before"  # (request, request): the first is served before the second
    CHUNK_US = "chunk_us"  # (request, unit): time without slowdown, 0 when not used
    BESIDE = "beside"  # (request, request), lower first: chunks of both run at the same time
    MEMORY_WHILE = "memory_while_bytes"  # (request): most bytes in use while a chunk of it runs
    # Of a whole plan:
    RATE = "rate"
    PERIOD = "period_us"
    GAPNESS = "gapness_us"
    PAPER_GAPNESS = "paper_gapness_us"
    LATENCY = "latency_us"
    STREAM_LATENCY = "stream_latency_us"
    BUBBLES = "bubbles_us"
    BOTTLENECK = "bottleneck_us"
    MAKESPAN = "makespan_us"
    LATENESS = "lateness_us"
    WORK = "work_us"
    TRANSFERS = "transfers_us"
    PEAK = "peak_bytes"
    TRAFFIC = "traffic_bytes"
    ENERGY = "energy_nj"
    REDUNDANCY = "extra_flops"
    UNITS = "units"
    DEVICES = "devices"
    PIPELINES = "pipelines"
    HOPS = "hops"
    IN_FLIGHT = "in_flight"
    LATE = "late"
    CONTENTION = "contention"
    DISPLACEMENT = "displacement"


@dataclass(frozen=True, slots=True)
class TermInfo:
    """A quantity that can be minimised."""

    name: str  # its name in objectives
    text: str  # what it is, in one sentence
    dimension: Dimension = Dimension.COUNT  # what it counts, unless the name says so: a `Term`
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
        if isinstance(self.name, Term):
            object.__setattr__(self, "dimension", self.name.dimension)
            object.__setattr__(self, "field", self.field or self.name.field)
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


MOST_TERMS = 20
"""Most terms of one objective."""

PERIOD = "period"
"""The term that the slack mode is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(FileContent):
    """A lexicographic objective: the first term first, later terms among its optima.

    Attributes
    ----------
    terms
        What to minimise, most important first.
    period_slack_permille
        `slack` mode: optimise `terms` among all plans whose period is at most
        (1000 + slack) / 1000 times the least possible one. None: off.
    present_by
        Order in which the best plans are shown, when it is not the order of `terms`
        (the paper mode ranks by gapness and shows by period).
    """

    terms: tuple[str, ...] = ("period", "gapness")
    period_slack_permille: int | None = None
    present_by: str | None = None

    def __post_init__(self) -> None:
        defects = Defects("objective")
        defects.check_size("terms", len(self.terms), most=MOST_TERMS)
        defects.check_unique("terms", self.terms)
        if self.period_slack_permille is not None:
            defects.check_count("period_slack_permille", self.period_slack_permille)
        defects.raise_as(InvalidProblemError)

    @property
    def first(self) -> str:
        """What counts first: the first term, but the period where all others need a near-optimal one."""
        return self.terms[0] if self.period_slack_permille is None else PERIOD

    @classmethod
    def slack(cls, permille: int, term: str = "idle") -> Objective:
        """Return the `slack` mode: among near-optimal periods the least idle time (or another term)."""
        return cls(terms=(term,), period_slack_permille=permille)

    @classmethod
    def paper(cls) -> Objective:
        """Return BetterTogether's mode: rank by (gapness, period), one-unit plans 0, show by period."""
        return cls(terms=("paper_gapness", PERIOD), present_by=PERIOD)

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Return the objective that a text such as "period,gapness", "paper" or "slack:50" names.

        "slack:50" is the least idle time within 50 permille of the least period;
        "slack:50:gapness,latency" the least of these terms instead.

        Raises
        ------
        InvalidProblemError
            The text has another form. Whether there are such terms the problem says.
        """
        name, _, rest = text.strip().partition(":")
        if name == "paper" and not rest:
            return cls.paper()
        if name != "slack":
            return cls(terms=_parse_terms(text))
        permille, _, terms = rest.partition(":")
        if not permille.isdecimal() or len(permille) > 9:
            raise InvalidProblemError(
                f"objective {text!r}: slack needs a whole number of permille, e.g. slack:50"
            )
        return cls(terms=_parse_terms(terms or "idle"), period_slack_permille=int(permille))

    def __str__(self) -> str:
        words = ",".join(self.terms)
        if self == Objective.paper():
            return "paper"
        if self.period_slack_permille is not None:
            return f"slack:{self.period_slack_permille}:{words}"
        return words


def special_names(terms: Container[str]) -> tuple[str, ...]:
    """Return what a text can name besides these terms: the modes whose own terms are among them."""
    modes = {"paper": Objective.paper(), "slack:PERMILLE": Objective.slack(0)}
    return tuple(name for name, mode in modes.items() if all(term in terms for term in mode.terms))


def _parse_terms(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))

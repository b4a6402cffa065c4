"""What a sweep asks: models x platforms x objectives x limits x backends, as users write it down."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..formulations.errors import InvalidInputError
from ..formulations.hardware import MAX_UNITS
from ..formulations.job_requests import passage_defects
from ..formulations.json_files import Schema
from ..formulations.limits import Limits
from ..formulations.nearness import shown
from ..formulations.validation import STRICT, Defects
from ..solvers.sources import StartMode

MOST_TASKS = 100_000
"""Most plans of one sweep."""

BOARD = "board"
"""Key of a problem that is given by its options: what its platform is called in tables."""

_RANGE = re.compile(r"(\d{1,4})\.\.(\d{1,4})", re.ASCII)


def parse_range(text: str, *, least: int) -> tuple[int, ...]:
    """Return the whole numbers that a text such as "0..4", "3" or "1,2,4" names."""
    found: list[int] = []
    for part in text.split(","):
        ends = _RANGE.fullmatch(part.strip())
        if ends:
            found += range(int(ends[1]), min(int(ends[2]), MAX_UNITS + 1) + 1)
        elif part.strip().isdecimal() and len(part) <= 4:
            found.append(int(part))
        else:
            found.append(-1)
    if not found or not least <= min(found) <= max(found) <= MAX_UNITS:
        raise InvalidInputError(
            f"{shown(text)} are no numbers from {least} to {MAX_UNITS}: write e.g. 0..4, or 1,2,4"
        )
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepModel:
    """A model of a sweep that needs more than its name.

    Attributes
    ----------
    name
        As for `gapless plan`: a built-in network, an ONNX file, or a network of a shipped platform.
    shape
        Fixed shapes of inputs with dynamic dimensions, "x=1,3,480,640"; several with spaces between.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    name: str
    shape: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlatform:
    """A platform of a sweep that is more than its name.

    Attributes
    ----------
    name
        A shipped platform or cluster, or the path of a cluster file.
    devices
        Of a cluster: how many devices of a type there may be, e.g. {"pi5": "1..2", "pi4": "0..4"}; every
        combination is planned. Types that are not named stay as they are.
    units
        Of a board: how many of its units a plan may use, e.g. "1..4"; each number is planned.
    batch
        Of a cluster: inferences that pass the devices together.
    costs
        Of a shipped board: the co-run cost model.
    pipelines
        How many pipelines may run side by side: "many", "one" or a number.
    passage
        Of a board: "any" if a unit may have several chunks of one network; of a phone with several networks
        also "once" and "ordered" (`with_passage`).
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    name: str
    devices: Mapping[str, str] | None = None
    units: str = ""
    batch: int | None = None
    costs: str = ""
    pipelines: str = ""
    passage: str = ""

    def __post_init__(self) -> None:
        defects = Defects(f"platform {self.name!r}")
        defects.check_name("name", self.name)
        ranges = [(f"devices of type {kind!r}", text, 0) for kind, text in (self.devices or {}).items()]
        for what, text, least in [*ranges, *([("units", self.units, 1)] if self.units else [])]:
            try:
                parse_range(text, least=least)
            except InvalidInputError as error:
                defects.add(f"{what}: {error}")
        if self.batch is not None:
            defects.check_count("batch", self.batch, least=1)
        for defect in passage_defects(self.passage) if self.passage else ():
            defects.add(defect)
        defects.raise_as(InvalidInputError)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSet(Limits):
    """What plans have to keep: limits, as in a problem file, and rules.

    Attributes
    ----------
    label
        What it is called in tables; empty: made from its limits.
    rules
        A Python file of rules, which is run: use only files that you trust.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    label: str = ""
    rules: str = ""

    @property
    def words(self) -> str:
        """What it is called."""
        said = [f"{name}={value}" for name, value in self.in_use().items()]
        return self.label or ", ".join([*said, *filter(None, [self.rules])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A sweep: every model on every platform, and every problem, by every objective, limits and backend.

    Attributes
    ----------
    title
        What it is called on its page.
    models, platforms
        Each model is planned on each platform.
    problems
        Whole problems besides: a problem file, a shipped name such as "pixel7a/octree", or what
        `gapless plan` is asked for, by the fields of a question, e.g. {"workload": "yolov4,bert", "platform":
        "kirin990"}; "board" among them is what the platform is called in tables.
    objectives
        As for `gapless plan --objective`; none, or an empty one: that of each problem.
    limits
        What plans have to keep; none: nothing.
    backends
        As for `gapless plan --backend`; none, or an empty one: the usual one of each problem.
    time_limit_s
        Seconds for each plan. Workloads have 10 s if nothing is said.
    memory_limit_mib
        MiB that a backend may take.
    seed, threads, start
        As for `gapless plan`.
    prices
        What a platform costs, or a device of a type of a cluster, by its name, in `currency`. The price of a
        cluster is that of its devices together.
    currency
        What prices are in.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    title: str = ""
    models: tuple[str | SweepModel, ...] = ()
    platforms: tuple[str | SweepPlatform, ...] = ()
    problems: tuple[str | Mapping[str, str], ...] = ()
    objectives: tuple[str, ...] = ()
    limits: tuple[LimitSet, ...] = ()
    backends: tuple[str, ...] = ()
    time_limit_s: float | None = None
    memory_limit_mib: int | None = None
    seed: int = 0
    threads: int = 1
    start: str = StartMode.NATIVE
    prices: Mapping[str, float] | None = None
    currency: str = ""

    def __post_init__(self) -> None:
        defects = Defects("sweep")
        for field in ("models", "platforms", "problems", "objectives", "limits", "backends"):
            given = getattr(self, field)
            if not isinstance(given, list | tuple):  # a text would be a sequence of letters
                raise InvalidInputError(f"sweep: {field} must be a list, got {given!r}")
            object.__setattr__(self, field, tuple(given))
        for text in self._contradictions():
            defects.add(text)
        for field in ("objectives", "backends"):
            defects.check_unique(field, getattr(self, field))
        defects.check_unique("limits", [one.words for one in self.limits])
        for field, least in (("memory_limit_mib", 1), ("seed", 0), ("threads", 1)):
            if getattr(self, field) is not None:
                defects.check_count(field, getattr(self, field), least=least)
        defects.raise_as(InvalidInputError)

    def _contradictions(self) -> Iterator[str]:
        if bool(self.models) != bool(self.platforms):
            there, absent = ("models", "platforms") if self.models else ("platforms", "models")
            yield f"there are {there} and no {absent}: each model is planned on each platform"
        if self.start not in (StartMode.NATIVE, StartMode.NONE):
            yield f"start is {self.start!r}, must be native or none"
        limit = self.time_limit_s
        if limit is not None and not 0 < limit <= 10**6:
            yield f"time_limit_s is {limit}, must be greater than 0 and at most {10**6}"
        for name, price in (self.prices or {}).items():
            if not (math.isfinite(price) and price > 0):
                yield f"the price of {shown(name)} is {price}, must be greater than 0"


SWEEP = Schema(format="gapless.sweep", version=1, content=Sweep)

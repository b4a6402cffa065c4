"""What a sweep asks: models x platforms x objectives x limits x backends, as users write it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

from ..api.asked import with_usual_passage
from ..api.problems import load_problem
from ..files.rules_file import run_python
from ..formulations.cluster_platform import ClusterPlatform
from ..formulations.errors import GaplessError, InvalidInputError
from ..formulations.hardware import MAX_UNITS
from ..formulations.json_files import Schema, load
from ..formulations.limits import Limits
from ..formulations.plugins import line_in, trust
from ..formulations.problem import Problem
from ..formulations.schedules import passage_defects
from ..formulations.validation import STRICT, Defects, meant, python_hint, shown
from ..profiler.clusters.catalog import cluster_names, load_cluster
from ..profiler.platforms.catalog import is_shipped_name, network_names, platform_names
from ..profiler.platforms.workloads import phone_names
from ..question.question import Question
from ..question.values import SHAPES, Place
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


_Prices = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """One problem before objectives and limits."""

    asked: Question = Question()
    """What `gapless plan` would be given; empty where Python made the problem."""
    model: str = ""  # what its model is called in tables; empty: as its networks
    board: str = ""  # what its platform is called in tables; empty: as the platform itself
    devices: str = ""  # numbers of devices by type, "pi5=2,pi4=0", or of units; empty: as the platform says
    price: float | None = None  # of the devices together; None: not known, or that of the platform
    made: Problem | None = None  # the problem, where Python made it


def bases_of(sweep: Sweep, defects: list[str]) -> Iterator[Base]:
    """Yield the problems that a sweep names; what is wrong with some of them is added to the defects."""
    prices = sweep.prices or {}
    for place, given in enumerate(sweep.platforms):
        platform = SweepPlatform(name=given) if isinstance(given, str) else given
        for model in sweep.models:
            named = SweepModel(name=model) if isinstance(model, str) else model
            try:
                yield from _on_platform(named, platform, prices)
            except InvalidInputError as error:
                text = f"platforms[{place}]: {error}"
                if text not in defects:  # of each model the same
                    defects.append(text)
    for place, problem in enumerate(sweep.problems):
        try:
            yield listed(problem)
        except InvalidInputError as error:
            defects.append(f"problems[{place}]: {error}")


def _on_platform(model: SweepModel, platform: SweepPlatform, prices: _Prices) -> Iterator[Base]:
    """Yield a model on a platform, with each number of devices or units."""
    name, is_file = platform.name, os.path.exists(platform.name)
    if not is_file and name in platform_names():
        _refuse(platform, "devices", "batch")
        if not is_shipped_name(f"{name}/{model.name}"):
            raise InvalidInputError(
                f"{shown(model.name)} was not measured on {name}, which has {', '.join(network_names(name))}"
            )
        asked = Question(
            problem=f"{name}/{model.name}",
            costs=platform.costs or None,
            pipelines=platform.pipelines or None,
            passage=platform.passage or None,
        )
        yield from _with_units(asked, model, platform)
    elif not is_file and name in phone_names():
        _refuse(platform, "devices", "batch", "costs", "pipelines")
        asked = Question(workload=model.name, platform=name, passage=platform.passage or None)
        yield from _with_units(with_usual_passage(asked), model, platform)
    else:
        _refuse(platform, "units", "costs", "passage")
        yield from _on_cluster(model, platform, prices)


def _refuse(platform: SweepPlatform, *fields: str) -> None:
    given = [field for field in fields if getattr(platform, field)]
    if given:
        raise InvalidInputError(
            f"{platform.name}: {' and '.join(given)} mean nothing for this kind of platform"
        )


def _with_units(asked: Question, model: SweepModel, platform: SweepPlatform) -> Iterator[Base]:
    numbers = parse_range(platform.units, least=1) if platform.units else (None,)
    for number in numbers:
        said = [] if number is None else [f"{number} unit{'s' * (number > 1)} at most"]
        if platform.passage:
            said.append(f"passage {platform.passage}")
        most = replace(asked, limits=Limits(max_units=number))
        yield Base(asked=most, model=model.name, board=platform.name, devices=", ".join(said))


def _on_cluster(model: SweepModel, platform: SweepPlatform, prices: _Prices) -> Iterator[Base]:
    cluster = _cluster(platform.name)
    asked = Question(
        problem=model.name,
        platform=platform.name,
        shape=SHAPES.read(Place("shape"), model.shape) if model.shape else None,
        batch=platform.batch,
        pipelines=platform.pipelines or None,
    )
    ranges = {kind: parse_range(text, least=0) for kind, text in (platform.devices or {}).items()}
    for numbers in product(*ranges.values()):
        counts = dict(zip(ranges, numbers, strict=True))
        if ranges and not any(counts.get(one.name, one.count) for one in cluster.types):
            continue  # no device at all
        changed = cluster.with_counts(counts) if counts else cluster
        said = ",".join(f"{kind}={number}" for kind, number in counts.items())
        yield Base(
            asked=replace(asked, devices=counts or None),
            model=Path(model.name).stem if model.name.endswith(".onnx") else model.name,
            board=cluster.name,
            devices=said,
            price=_price(changed, prices),
        )


def _price(cluster: ClusterPlatform, prices: _Prices) -> float | None:
    """Return what the devices cost together; None: the price of one of them is not known."""
    each = [(one.count, prices.get(one.name)) for one in cluster.types]
    known = [count * price for count, price in each if price is not None]
    return sum(known) if len(known) == len(each) else None


@cache
def _cluster(name: str) -> ClusterPlatform:
    if not os.path.exists(name) and name not in cluster_names():
        known = (*platform_names(), *phone_names(), *cluster_names())
        hint = meant(name, known, listed_by="`gapless list problems` lists them")
        raise InvalidInputError(f"{shown(name)} is neither a cluster file nor a shipped platform; {hint}")
    return load_cluster(name)


def unknown_prices(sweep: Sweep, bases: Sequence[Base]) -> Iterator[str]:
    """Yield the names of prices that are of nothing; none where only problems know their platforms."""
    if all(base.board for base in bases):
        named = [one if isinstance(one, str) else one.name for one in sweep.platforms]
        clusters = (_cluster(name) for name in named if name not in (*platform_names(), *phone_names()))
        known = {base.board for base in bases} | {one.name for cluster in clusters for one in cluster.types}
        for name in sweep.prices or {}:
            if name not in known:
                yield f"prices: {shown(name)} is no platform of the sweep and no type of devices of one"


def listed(given: str | Mapping[str, str]) -> Base:
    """Return a problem that a sweep lists: its name, its file, or what is asked for."""
    if isinstance(given, str):
        load_problem(given)
        trust(given)
        return Base(asked=Question(problem=given))
    asked = Question.of_texts({name: text for name, text in given.items() if name != BOARD})
    if asked.problem is None and asked.workload is None:
        raise InvalidInputError('it names no problem: say {"problem": ...} or {"workload": ...}')
    usual = asked if asked.workload is None else with_usual_passage(asked)
    return Base(asked=usual, board=given.get(BOARD, ""))


GivenProblem = Problem | tuple[str, Problem]
"""A problem that Python made; with a name, which its platform gets in tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFile:
    """A sweep, and the problems that Python made for it: (name of the platform or "", problem)."""

    sweep: Sweep
    problems: tuple[tuple[str, Problem], ...] = ()


def load_sweep(path: str | Path) -> SweepFile:
    """Read a sweep file; names of files in it are looked for in its folder first.

    A Python file is code, and reading it runs it: use only files that you trust. Its name `sweep` is a
    `Sweep`; a function `problems` without parameters returns or yields problems, or pairs of a name and a
    problem. One of both is enough.
    """
    path = Path(path)
    if path.suffix != ".py":
        return SweepFile(sweep=_beside(load(path, SWEEP), path.parent))
    module = vars(run_python(path, "sweep file"))
    found, make = module.get("sweep"), module.get("problems")
    if found is None and make is None:
        raise InvalidInputError(
            f"{path} defines neither `sweep`, a gapless.studies.Sweep, nor a function `problems` that yields "
            "problems"
        )
    if found is not None and not isinstance(found, Sweep):
        raise InvalidInputError(f"{path}: sweep is a {type(found).__name__}, must be a gapless.studies.Sweep")
    if make is not None and not callable(make):
        raise InvalidInputError(f"{path}: problems is a {type(make).__name__}, must be a function")
    sweep = _beside(found or Sweep(), path.parent)
    return SweepFile(sweep=sweep, problems=() if make is None else _made(make, path))


def given_problems(problems: Iterable[GivenProblem]) -> tuple[tuple[str, Problem], ...]:
    """Return problems with their names."""
    found = []
    for number, each in enumerate(problems):
        match each:
            case Problem():
                found.append(("", each))
            case (str(name), Problem() as problem):
                found.append((name, problem))
            case _:
                raise InvalidInputError(
                    f"problems[{number}] is {each!r:.80}, must be a problem, or a pair of a name and one"
                )
    return tuple(found)


def _made(make: Any, path: Path) -> tuple[tuple[str, Problem], ...]:
    try:
        return given_problems(make())
    except GaplessError:
        raise
    except Exception as error:
        where = f"{path}, line {line_in(error, str(path)) or 1}"
        hint = python_hint(error, make.__globals__ if hasattr(make, "__globals__") else {})
        raise InvalidInputError(f"{where}: {type(error).__name__}: {error}{hint}") from error


def _beside(sweep: Sweep, folder: Path) -> Sweep:
    """Return a sweep with the names of files that lie in a folder as paths."""

    def at(name: str) -> str:
        try:
            return str(folder / name) if (folder / name).is_file() else name
        except (OSError, ValueError):  # a name that no file can have
            return name

    def model(given: str | SweepModel) -> str | SweepModel:
        return at(given) if isinstance(given, str) else replace(given, name=at(given.name))

    def platform(given: str | SweepPlatform) -> str | SweepPlatform:
        return at(given) if isinstance(given, str) else replace(given, name=at(given.name))

    def backend(given: str) -> str:
        file, sign, name = given.rpartition(":")
        return f"{at(file)}:{name}" if sign and file.endswith(".py") else given

    files = ("problem", "platform", "contention")
    return replace(
        sweep,
        models=tuple(map(model, sweep.models)),
        platforms=tuple(map(platform, sweep.platforms)),
        problems=tuple(
            at(given)
            if isinstance(given, str)
            else {key: at(text) if key in files else text for key, text in given.items()}
            for given in sweep.problems
        ),
        limits=tuple(
            replace(one, label=one.words, rules=at(one.rules) if one.rules else "") for one in sweep.limits
        ),
        backends=tuple(map(backend, sweep.backends)),
    )

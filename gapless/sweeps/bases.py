"""The problems that a sweep names, before objectives and limits: models on platforms, and whole problems."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

from ..api.asked import with_usual_passage
from ..api.problems import load_problem
from ..formulations.cluster_platform import ClusterPlatform
from ..formulations.errors import InvalidInputError
from ..formulations.limits import Limits
from ..formulations.nearness import meant, shown
from ..formulations.plugins import trust
from ..formulations.problem import Problem
from ..profiler.clusters.catalog import cluster_names, load_cluster
from ..profiler.platforms.catalog import is_shipped_name, network_names, platform_names
from ..profiler.platforms.workloads import phone_names
from ..question.question import Question
from ..question.values import SHAPES, Place
from .spec import BOARD, Sweep, SweepModel, SweepPlatform, parse_range

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
        said = [] if number is None else [f"{number} units at most"]
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

"""Instances that backends are tested on: golden ones, whose answers were worked out by hand, and samples."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from ..formulations.cluster import Link
from ..formulations.expr import BoolExpr, Variable
from ..formulations.files import parse_problem
from ..formulations.judge import examined
from ..formulations.plan import Chunk, Plan
from ..formulations.problem import Problem
from ..formulations.rules import AnyRule, Rule, RuleFunction
from ..formulations.terms import QuantityInfo
from ..formulations.views import DeviceView


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Small instances of one formulation, on which backends are compared with the oracle.

    Attributes
    ----------
    plain
        One that asks for no special feature and has few plans, two at least.
    problems
        Those with restrictions, by name.
    rules
        Rules for all of them, by name; at least one set of them is contradictory.
    limits
        Filters for all of them.
    objectives
        Objectives beyond each term by itself.
    """

    plain: Problem
    problems: Mapping[str, Problem] = field(default_factory=dict)
    rules: Mapping[str, tuple[RuleFunction | AnyRule, ...]] = field(default_factory=dict)
    limits: tuple[Mapping[str, int], ...] = ()
    objectives: tuple[str, ...] = ()


def with_memory(problem: Problem, first_bytes: int) -> Problem:
    """Return a problem whose first unit holds so many bytes."""
    first, *rest = problem.platform.units
    units = (replace(first, memory_bytes=first_bytes), *rest)
    return replace(problem, platform=replace(problem.platform, units=units))


def with_shared_core(problem: Problem) -> Problem:
    """Return a problem whose units share a core."""
    units = tuple(replace(unit, cores=(0,)) for unit in problem.platform.units)
    return replace(problem, platform=replace(problem.platform, units=units))


def with_outputs(problem: Problem, names: str) -> Problem:
    """Return a problem in which some tensors, whose names are letters, leave the network as well."""
    count = len(problem.network.layers)
    tensors = tuple(
        replace(tensor, targets=(*tensor.targets, count)) if tensor.name in names else tensor
        for tensor in problem.network.tensors
    )
    return replace(problem, networks=(replace(problem.network, tensors=tensors),))


def over_devices(
    layer_us: Sequence[Sequence[int | None]], tensors: Sequence[tuple[str, int]], weight_bytes: Sequence[int]
) -> Problem:
    """Return a chain of layers on the devices a, b and c, as far as there are times for them.

    `tensors`: name and bytes of what goes into each layer, and of the result.
    """
    devices = list("abc")[: len(layer_us[0])]
    document = {
        "format": "gapless.problem",
        "version": 1,
        "platform": {"name": "cluster", "units": [{"name": name} for name in devices]},
        "networks": [
            {
                "name": "net",
                "layers": [{"name": f"l{i}", "weight_bytes": size} for i, size in enumerate(weight_bytes)],
                "tensors": [
                    {"name": name, "bytes": size, "source": i - 1, "targets": [i]}
                    for i, (name, size) in enumerate(tensors)
                ],
            }
        ],
        "costs": {"units": devices, "networks": [{"network": "net", "layer_us": layer_us}]},
    }
    return parse_problem(json.dumps(document).encode(), name="cluster")


def link(source: str, target: str, bytes_per_second: int, latency_us: int = 0) -> Link:
    """Return a link from one device, or type of devices, to another."""
    return Link(source=source, target=target, bytes_per_second=bytes_per_second, latency_us=latency_us)


def with_little_memory(problem: Problem, device_bytes: int, all_bytes: int) -> Problem:
    """Return a problem with capacities, a cut that is forbidden, and devices that share cores."""
    units = [replace(unit, memory_bytes=device_bytes) for unit in problem.platform.units]
    units[1:] = [replace(unit, cores=(0,)) for unit in units[1:]]
    (network,) = problem.networks
    return replace(
        problem,
        platform=replace(problem.platform, memory_bytes=all_bytes, units=tuple(units)),
        networks=(replace(network, forbidden_cuts=(2,)),),
    )


def with_a(view: DeviceView) -> BoolExpr:
    """Demand that the first device is used."""
    return view.uses("a")


def without_a(view: DeviceView) -> BoolExpr:
    """Demand that it is not."""
    return ~view.uses("a")


_MOST_BRANCHES, _MOST_LENGTH = 4, 4


def branching_edges(names: Sequence[str], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield the edges (maker, reader) of a random graph: branches part at a layer and meet later."""
    left = iter(names)
    node = next(left)
    while True:
        branches = []
        for _ in range(rng.randint(1, _MOST_BRANCHES)):
            branch = [node]
            for _ in range(rng.randint(1, _MOST_LENGTH)):
                following = next(left, None)
                if following is not None:
                    yield branch[-1], following
                    branch.append(following)
            branches.append(branch)
        meeting = next(left, None)
        if meeting is None:
            return
        for branch in branches:
            yield branch[-1], meeting
        node = meeting


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """A problem whose answer is known.

    `name`, `why`: what it is about, and how the optimum follows. `optimum`, `best`: values of the objective
    terms and the first plan in canonical order (the only best one where the formulation has no tie-break, so
    that any may be found); None: infeasible.
    """

    name: str
    why: str
    problem: Problem  # the instance
    optimum: tuple[int, ...] | None
    best: Plan | None
    invalid: tuple[tuple[str, Plan], ...]  # plans with the rule they break
    conflict: tuple[str, ...]  # names of the demands that contradict each other, when infeasible
    easy: bool  # whether any heuristic that deserves the name finds a plan


def golden_instances() -> Iterator[Golden]:
    """Yield the golden instances, in order of their names."""
    for file in sorted(files(f"{__package__}.golden").iterdir(), key=lambda path: path.name):
        if file.name.endswith(".json"):
            data = json.loads(file.read_bytes())
            problem = parse_problem(json.dumps(data["problem"]).encode(), name=file.name)
            yield Golden(
                name=file.name.removesuffix(".json"),
                why=data["why"],
                problem=problem,
                optimum=None if data["optimum"] is None else tuple(data["optimum"]),
                best=None if data["best"] is None else _plan(data["best"]),
                invalid=tuple((entry["breaks"], _plan(entry)) for entry in data["invalid"]),
                conflict=tuple(data.get("conflict", ())),
                easy=bool(data.get("easy")),
            )


def _plan(written: Any) -> Plan:
    """Return a plan: a list of its chunks, or "chunks" and "order"."""
    if isinstance(written, list):
        written = {"chunks": written}
    chunks = tuple(Chunk(**chunk) for chunk in written["chunks"])
    return Plan(chunks=chunks, order=tuple(written.get("order", ())))


def quantity_rules(
    problem: Problem, plan: Plan, say: Callable[[Variable, int], BoolExpr], most: int
) -> Iterator[Rule]:
    """Yield rules about each quantity, with at most this number of its indices."""
    numbers, _ = examined(problem, problem.formulation.code(problem, plan))
    find = problem.formulation.variables(problem).find
    unknown = {problem.formulation.fields[term] for term in problem.formulation.unknown(problem)}
    for name, info in problem.formulation.quantities.items():
        if name in unknown:
            continue
        for indices in _few_indices(problem, info, most):
            variable = find(name, indices)
            yield Rule(name=f"{name}({', '.join(map(str, indices))})", expr=say(variable, numbers(variable)))


def _few_indices(problem: Problem, info: QuantityInfo, most: int) -> list[tuple[int, ...]]:
    """Return a few of the indices that a quantity can have."""
    found: list[tuple[int, ...]] = [()]
    for index in info.indices:
        found = [
            (*before, value)
            for before in found
            for allowed in [index.allowed(problem.tables, *before)]
            for value in sorted({allowed[0], allowed[len(allowed) // 2], allowed[-1]} if len(allowed) else ())
        ]
    step = max(1, len(found) // most)
    return found[::step][:most]

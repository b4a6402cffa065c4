"""PICO's Algorithms 2 and 3: plan for devices like the mean of them all, then give out the real ones.

`pico` is the repaired text: Algorithm 2 is the best line of groups of mean devices, within the limit on the
latency if a rule sets one, with at most all devices; Algorithm 3 gives each device, fast ones first, to the
chunk that still requires most for each of its places. `pico-literal` keeps what the paper prints and can be
run (cooperation, section 5): the memo knows no limit, the limit shrinks from one trial to the next, all
devices are used, each state has one plan, and devices go to the smallest requirement first. In both, rows of
a group are split by the rule of the formulation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from ...formulations.cluster import Link, Pipelines
from ...formulations.cooperation.formulation import FORMULATION
from ...formulations.cooperation.plans import Parts
from ...formulations.cooperation.tables import Groups, groups_of
from ...formulations.costs import CostTable
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.limits import Limits
from ...formulations.problem import Problem
from ...formulations.terms import Objective
from ...formulations.terms import Term as T
from ..pipelines.arrays import NEVER, Ints
from ..protocol import Capabilities, Deadline, SolveOptions
from ..rounds import Proposing, proposing
from .arrays import build_arrays
from .kinds import Kinds
from .optimum import Optimum, caps_of
from .program import Program

Stage = tuple[int, int, int]
"""A chunk by places, and how many devices serve it."""


def mean_problem(problem: Problem) -> Problem:
    """Return a problem with as many devices that are all alike, as fast as the mean of them (Eq. 14).

    Limits and rules are left out but that on the latency; so are capacities and the host.
    """
    data, (own,) = problem.data, problem.costs.networks
    names = problem.platform.unit_names
    links = [link for row in groups_of(problem).links for link in row if link is not None]
    count = max(1, len(links))
    link = Link(
        source="mean",
        target="mean",
        bytes_per_second=max(1, sum(link.bytes_per_second for link in links) // count),
        latency_us=sum(link.latency_us for link in links) // count,
    )
    layer_us = tuple((_harmonic(row),) * len(names) for row in own.layer_us)
    most_us = caps_of(problem).get(T.LATENCY)
    return replace(
        problem,
        platform=Platform(
            name=problem.platform.name, units=tuple(ProcessingUnit(name=name) for name in names)
        ),
        costs=CostTable(
            units=names,
            networks=(replace(own, layer_us=layer_us, transfer_in_us=(), transfer_out_us=()),),
        ),
        limits=Limits(max_latency_us=most_us),
        objective=Objective(terms=(T.PERIOD, T.LATENCY)),
        rules=(),
        data=replace(
            data,
            devices=Pipelines(
                types=("mean",) * len(names), links=(link,) if links else (), overlap=data.devices.overlap
            ),
            idle_mw=(),
            fixed_us=tuple((sum(row) // len(row),) * len(names) for row in data.fixed_us),
        ),
    )


def _harmonic(times: tuple[int | None, ...]) -> int:
    """Return the time of a device with the mean speed of those that can run a layer."""
    known = [max(1, time) for time in times if time is not None]
    return round(len(known) / sum(1 / time for time in known))


class _Mean(NamedTuple):
    """A problem of mean devices."""

    problem: Problem
    program: Program  # its tables; a set of devices is how many there are
    stage_us: Ints
    """How long a request takes of a chunk with a group, its message included, by [start][stop][devices]."""
    most_us: int | None  # the limit on the latency, or None


def _mean(problem: Problem, deadline: Deadline) -> _Mean:
    mean = mean_problem(problem)
    groups = groups_of(mean)
    program = Program(build_arrays(groups, Kinds((0,) * groups.device_count), set(), deadline), deadline)
    number = program.arrays.number
    send = np.minimum(program.sends_us[0, 0], NEVER)
    stage = program.with_message(program.stage_us[number], send[None, :, None])
    stage_us = np.where((number >= 0)[:, :, None], stage, NEVER)
    return _Mean(mean, program, stage_us, caps_of(problem).get(T.LATENCY))


def repaired(mean: _Mean) -> list[Stage]:
    """Return the best chunks and numbers of mean devices; none if no plan keeps to the limit."""
    found = Optimum(mean.problem, mean.program).find()
    return [] if found is None else list(found.line)


def literal(mean: _Mean) -> list[Stage]:
    """Return what Algorithm 2 as printed makes of mean devices; indices are repaired where it cannot run."""
    stage_us, last = mean.stage_us, mean.program.arrays.last
    known: dict[tuple[int, int], tuple[int, int, tuple[int, int] | None, Stage]] = {}

    def solved(stop: int, devices: int, limit_us: float) -> tuple[int, int]:
        if (stop, devices) in known:
            return known[stop, devices][:2]
        whole = int(stage_us[0, stop, devices])
        best, before, stage = (whole, whole), None, (0, stop, devices)
        if stop > 1 and devices > 1:
            for cut in range(1, stop):
                for own in range(1, devices):
                    time = int(stage_us[cut, stop, own])
                    limit_us -= time
                    if limit_us < 0:
                        continue
                    period, latency = solved(cut, devices - own, limit_us)
                    if limit_us < latency:
                        continue
                    if max(period, time) < best[0]:
                        best = max(period, time), latency + time
                        before, stage = (cut, devices - own), (cut, stop, own)
        known[stop, devices] = (*best, before, stage)
        return best

    devices = mean.program.arrays.groups.device_count
    solved(last, devices, float("inf") if mean.most_us is None else mean.most_us)
    found: list[Stage] = []
    at: tuple[int, int] | None = (last, devices)
    while at is not None:
        *_, at, stage = known[at]
        found.insert(0, stage)
    return found


def given_out(groups: Groups, stages: list[Stage], *, printed: bool = False) -> Parts:
    """Return the chunks with real devices: fast ones first (Algorithm 3).

    Each device goes to the chunk that still requires most for each of its places. `printed`: to the one that
    requires least, and what it requires in all is divided by the places that are left.
    """
    cuts, last = groups.chain.cuts, groups.chain.layer_count
    devices = range(groups.device_count)
    slowness = [max(1, sum(groups.chain.layer_us[i][d] or 0 for i in range(last))) for d in devices]
    mean = sum(1 / each for each in slowness) / len(slowness)
    free = [count for *_, count in stages]
    each = [_each(groups, stage) for stage in stages]
    needed: list[float] = [one * count for one, count in zip(each, free, strict=True)]
    members: list[list[int]] = [[] for _ in stages]
    for device in sorted(devices, key=lambda device: (slowness[device], device)):
        left = {place: needed[place] / count for place, count in enumerate(free) if count}
        if not left:
            break
        chosen = (min if printed else max)(left, key=left.__getitem__)
        members[chosen].append(device)
        free[chosen] -= 1
        if not printed:  # what it does while a mean device does the largest part that there is
            needed[chosen] -= max(each) / slowness[device] / mean
    return tuple(
        (cuts[start], cuts[stop], tuple(sorted(own)))
        for (start, stop, _), own in zip(stages, members, strict=True)
    )


def _each(groups: Groups, stage: Stage) -> int:
    """Return the operations of each of the devices that share a chunk evenly."""
    start, stop, count = stage
    segment = groups.segments.of(groups.chain.cuts[start], groups.chain.cuts[stop])
    return sum(work.by_rows(count)[-(-segment.rows // count)] for work in segment.work)


class PicoBackend(Proposing[Parts]):
    """PICO's Algorithms 2 and 3, repaired."""

    name: ClassVar[str] = "pico"
    capabilities: ClassVar[Capabilities] = proposing(
        "PICO: the best groups of mean devices, then fast devices to the largest need", FORMULATION.name
    )
    _stages: ClassVar[Callable[[_Mean], list[Stage]]] = staticmethod(repaired)
    _printed: ClassVar[bool] = False

    def propose(self, problem: Problem, options: SolveOptions, deadline: Deadline) -> Iterator[Parts]:
        """Yield one plan; none if mean devices have none, or real ones cannot be given out to it."""
        groups, stages = groups_of(problem), type(self)._stages(_mean(problem, deadline))
        parts = given_out(groups, stages, printed=self._printed)
        if parts and all(groups.service(part) is not None for part in parts):
            yield parts

    def whole(self, problem: Problem) -> Iterator[Parts]:
        """Yield the network whole on each device."""
        groups = groups_of(problem)
        last = groups.chain.layer_count
        for device in range(groups.device_count):
            if groups.chain.runs(0, last, device):
                yield ((0, last, (device,)),)


class LiteralPicoBackend(PicoBackend):
    """PICO's Algorithms 2 and 3 as printed, where that can be run."""

    name: ClassVar[str] = "pico-literal"
    capabilities: ClassVar[Capabilities] = proposing(
        "PICO as printed: errors in the limit on the latency and in who gets which device kept",
        FORMULATION.name,
    )
    _stages: ClassVar[Callable[[_Mean], list[Stage]]] = staticmethod(literal)
    _printed: ClassVar[bool] = True

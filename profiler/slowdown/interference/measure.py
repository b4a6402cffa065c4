"""Measuring interference on this machine: groups of layers, or chunks of a plan, beside chosen units.

As in BetterTogether (IISWC 2025, III-C), the units that make load run in a loop what is measured on the
unit in question; or, for a plan, each the chunk that the plan has there. Everything is measured in rounds,
and each time beside load lies between two times alone: what drifts slowly cancels in the ratio, and a
disturbance of some seconds hits one round of a few.

Simplification: load runs all the time. In a pipeline, chunks that are shorter than the longest one pause,
so what is measured beside the rest of a plan tells the dear end of what can happen.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import combinations

from ....executor.engine import Engine, PlacementReceipt
from ....executor.model import Model
from ....executor.progress import Forgetful, Ledger, Report, silent
from ....formulations.costs import Provenance
from ....formulations.errors import InvalidInputError
from ....formulations.hardware import Platform
from ....formulations.plan import Chunk, Plan
from ...isolated import RawTimes, seams, slowest_us
from ...probes import Probe, Span, choose_groups
from ...records import ALONE
from ...summary import MAX_SPREAD
from ...survey import Survey, survey
from ..corun import companions
from .ratios import ALL_OTHERS, CoRunRatio, InterferenceOptions, InterferenceRatios, PlanInterference

UnitSet = tuple[str, ...]
"""Units that make load together."""


def default_loads(platform: Platform, unit: str, *, able: Sequence[str]) -> dict[str, UnitSet]:
    """Return each other unit that can run beside a unit, and all of them that can run at once."""
    found: dict[str, UnitSet] = {other: (other,) for other in able if _apart(platform, (unit, other))}
    together = companions(platform, unit, able=able)
    return {**found, ALL_OTHERS: together} if len(together) > 1 else found


def chosen_loads(
    platform: Platform, unit: str, wanted: Sequence[UnitSet], *, able: Sequence[str]
) -> dict[str, UnitSet]:
    """Return those of the wanted sets of units that can make load beside a unit; as `default_loads`."""
    return {
        ", ".join(names): names
        for names in wanted
        if set(names) <= set(able) and _apart(platform, (unit, *names))
    }


def check_loads(platform: Platform, wanted: Sequence[UnitSet]) -> None:
    """Require that there is some load, and that each set of units can make load beside some other unit."""
    names = platform.unit_names
    if not any(_apart(platform, pair) for pair in combinations(names, 2)):
        raise InvalidInputError(
            f"no two of the units {', '.join(names)} can run at once (they share cores), so there is no "
            "interference to measure; `gapless device detect` shows the units of this device"
        )
    problems = [
        f"beside {','.join(chosen) or '(nothing)'}: {text}"
        for chosen in wanted
        for text in [_defect(platform, chosen)]
        if text
    ]
    if problems:
        raise InvalidInputError("units that are to make load cannot do so:", problems)


def _defect(platform: Platform, chosen: UnitSet) -> str:
    """Return why units cannot make load together; empty if they can."""
    names = platform.unit_names
    unknown = [name for name in chosen if name not in names]
    if unknown or not chosen:
        return f"there is no unit {unknown[0]!r}; choose from {', '.join(names)}" if unknown else "no unit"
    if len(set(chosen)) < len(chosen):
        return "a unit is named twice"
    for pair in combinations(chosen, 2):
        if not _apart(platform, pair):
            return f"{pair[0]} and {pair[1]} share cores, so they never run at once; name one of them"
    if not any(_apart(platform, (unit, *chosen)) for unit in names):
        return "no further unit is left that shares no core with them, and could be measured"
    return ""


def _apart(platform: Platform, names: Sequence[str]) -> bool:
    """Return whether units are different ones that do not exclude each other."""
    exclusive = platform.exclusive
    pairs = combinations(map(platform.unit_names.index, names), 2)
    return all(u != v and v not in exclusive[u] for u, v in pairs)


REST = "the rest of the plan"
"""What the load of a chunk is called that is measured beside the other chunks of its plan."""


def measure_loads(
    model: Model,
    platform: Platform,
    engine: Engine,
    *,
    beside: Sequence[UnitSet] = (),
    options: InterferenceOptions = InterferenceOptions(),
    ledger: Ledger = Forgetful(),
    report: Report = silent,
) -> InterferenceRatios:
    """Measure groups of layers on each unit while other units run the same layers in a loop.

    `beside`: sets of units that make load; empty: each other unit, and all other units that can run at once.
    Units are measured beside those sets with which they share no core. `ledger`: where each finished
    measurement is kept: what it holds already is not measured again.
    Raises InvalidInputError: no two units can run at once, or a set of units cannot make load.
    """
    check_loads(platform, beside)
    with survey(
        model, platform, engine, options=options.profiling, ledger=ledger, report=report
    ) as profiling:
        return InterferenceSurvey(profiling=profiling, options=options).loads(beside)


def measure_plans(
    plans: Sequence[Plan],
    model: Model,
    platform: Platform,
    engine: Engine,
    *,
    options: InterferenceOptions = InterferenceOptions(),
    ledger: Ledger = Forgetful(),
    report: Report = silent,
) -> InterferenceRatios:
    """Measure each chunk of plans alone, and while the other chunks of its plan run in a loop.

    Raises PlacementError, ExecutionError, UnitLostError: a unit cannot run its chunk, or is lost.
    """
    with survey(
        model, platform, engine, options=options.profiling, ledger=ledger, report=report
    ) as profiling:
        return InterferenceSurvey(profiling=profiling, options=options).plans(plans)


@dataclass(slots=True, kw_only=True)
class _Job:
    """A chunk on its unit, all that it is to be measured beside, and the times so far."""

    chunk: Chunk
    probes: tuple[Probe, ...]
    loads: dict[str, dict[str, Probe]]
    occasion: str
    alone_us: dict[str, list[float]] = field(default_factory=dict)
    beside_us: dict[str, list[float]] = field(default_factory=dict)

    @property
    def ratios(self) -> tuple[CoRunRatio, ...]:
        return tuple(
            CoRunRatio(
                chunk=self.chunk,
                load=name,
                beside=tuple(load),
                alone_us=tuple(self.alone_us[name]),
                beside_us=tuple(self.beside_us[name]),
            )
            for name, load in self.loads.items()
        )


@dataclass(slots=True, kw_only=True)
class InterferenceSurvey:
    """Interference in the making."""

    profiling: Survey  # who makes pieces of the model, and times them
    options: InterferenceOptions  # how often
    receipts: dict[str, PlacementReceipt] = field(default_factory=dict)
    """What was granted to each unit; grows."""

    def loads(self, beside: Sequence[UnitSet]) -> InterferenceRatios:
        """Measure groups of layers; see `measure_loads`."""
        begin = time.monotonic()
        profiling = self.profiling
        models, raws = profiling.time_layers()
        groups = choose_groups(profiling.network, slowest_us(raws), seams(models, raws))
        for preparer in profiling.preparers.each:
            preparer.attempt(groups)  # all in one go
        jobs = [job for span in groups for job in self._group_jobs(span, raws, beside)]
        self._measure(jobs)
        return self._found(tuple(ratio for job in jobs for ratio in job.ratios), begin=begin)

    def plans(self, plans: Sequence[Plan]) -> InterferenceRatios:
        """Measure chunks of plans; see `measure_plans`."""
        begin = time.monotonic()
        preparers = self.profiling.preparers
        self.profiling.bench.progress.say(f"preparing pieces of {self.profiling.network.name}")
        chunks = [chunk for plan in plans for chunk in plan.chunks]
        for preparer in preparers.each:
            own = {(c.start, c.stop) for c in chunks if preparers.of(c.unit) is preparer}
            preparer.prepare(own)
        by_plan = [self._plan_jobs(plan) for plan in plans]
        self._measure([job for jobs in by_plan for job in jobs])
        apart = tuple(
            PlanInterference(plan=plan, chunks=tuple(ratio for job in jobs for ratio in job.ratios))
            for plan, jobs in zip(plans, by_plan, strict=True)
        )
        return self._found((), plans=apart, begin=begin)

    def _group_jobs(self, span: Span, raws: Mapping[str, RawTimes], beside: Sequence[UnitSet]) -> list[_Job]:
        """Return what is to be measured of one group of layers: on each unit that can run it."""
        platform, able = self.profiling.platform, self.profiling.able(raws, span)
        probes = {unit: self.profiling.probes(unit, span) for unit in able}
        jobs = []
        for unit in able:
            sets = (
                chosen_loads(platform, unit, beside, able=able)
                if beside
                else default_loads(platform, unit, able=able)
            )
            if sets:
                loads = {name: {one: probes[one][0] for one in units} for name, units in sets.items()}
                chunk = self._chunk(span, unit)
                jobs.append(_Job(chunk=chunk, probes=probes[unit], loads=loads, occasion="; ".join(sets)))
        return jobs

    def _chunk(self, span: Span, unit: str) -> Chunk:
        return Chunk(network=self.profiling.network.name, start=span[0], stop=span[1], unit=unit)

    def _plan_jobs(self, plan: Plan) -> list[_Job]:
        """Return what is to be measured of a plan: each chunk beside all others."""
        profiling = self.profiling
        probes = {chunk: profiling.probes(chunk.unit, (chunk.start, chunk.stop)) for chunk in plan.chunks}
        parts: dict[str, list[Probe]] = {}
        for chunk, own in probes.items():
            parts.setdefault(chunk.unit, []).extend(own)
        longest = {unit: self._longest(unit, own) for unit, own in parts.items()}
        return [
            _Job(
                chunk=chunk,
                probes=probes[chunk],
                loads={REST: {unit: probe for unit, probe in longest.items() if unit != chunk.unit}},
                occasion=f"plan {plan.plan_id}",
            )
            for chunk in plan.chunks
        ]

    def _longest(self, unit: str, probes: Sequence[Probe]) -> Probe:
        """Return what makes the load of a chunk: the longest part where it goes on from model to model."""
        if len(probes) == 1:
            return probes[0]
        return max(probes, key=lambda probe: self._time_us(unit, (probe,), ALONE, "load"))

    def _measure(self, jobs: Sequence[_Job]) -> None:
        """Time all jobs round after round."""
        progress = self.profiling.bench.progress
        pieces = sum(len(job.probes) * (1 + 2 * len(job.loads)) for job in jobs)
        progress.total = progress.done + self.options.rounds * pieces
        for number in range(self.options.rounds):
            for job in jobs:
                self._measure_once(job, f"{job.occasion}, round {number}")

    def _measure_once(self, job: _Job, occasion: str) -> None:
        """Time a job beside each of its loads, and alone before, between and after them."""
        unit = job.chunk.unit
        before_us = self._time_us(unit, job.probes, ALONE, occasion)
        for name, load in job.loads.items():
            beside_us = self._time_us(unit, job.probes, load, f"{occasion} beside {name}")
            after_us = self._time_us(unit, job.probes, ALONE, f"{occasion} after {name}")
            job.alone_us.setdefault(name, []).append((before_us + after_us) / 2)
            job.beside_us.setdefault(name, []).append(beside_us)
            before_us = after_us

    def _time_us(self, unit: str, probes: Sequence[Probe], load: Mapping[str, Probe], occasion: str) -> float:
        """Return the busy time of pieces that run one after the other."""
        found = [self.profiling.bench.timing(unit, probe, beside=load, occasion=occasion) for probe in probes]
        self.receipts[unit] = found[0].receipt
        return sum(timing.busy.typical_us for timing in found)

    def _found(
        self, ratios: tuple[CoRunRatio, ...], *, plans: tuple[PlanInterference, ...] = (), begin: float
    ) -> InterferenceRatios:
        profiling, options = self.profiling, self.options
        setting, models = profiling.bench.setting, profiling.model.network.models
        reused = profiling.bench.reused
        notes = [
            f"medians of {options.rounds} rounds, each beside load between two alone, of at least "
            f"{options.seconds_per_item:g} s",
            f"{reused} measurements kept from earlier" if reused else "",
        ]
        every = [*ratios, *(chunk for plan in plans for chunk in plan.chunks)]
        return InterferenceRatios(
            platform=profiling.platform,
            ratios=ratios,
            plans=plans,
            options=options,
            provenance=Provenance(
                source=" + ".join(f"{model.locator} ({model.digest[:16]})" for model in models),
                method="alone, beside load, alone",
                notes="; ".join(filter(None, notes)),
                engine=setting.engine,
                device=setting.device,
                taken_at=datetime.now().astimezone().isoformat(timespec="seconds"),
            ),
            receipts=tuple(self.receipts.values()),
            warnings=(*profiling.notes, *(text for one in every for text in _unsteady(one))),
            seconds=time.monotonic() - begin,
        )


def _unsteady(one: CoRunRatio) -> tuple[str, ...]:
    if one.spread <= MAX_SPREAD:
        return ()
    chunk = one.chunk
    return (
        f"layers {chunk.start} to {chunk.stop - 1} of {chunk.network} on {chunk.unit} beside {one.load}: "
        f"the ratios of the rounds spread over {one.spread:.0%} of their median",
    )

"""Measuring interference on this machine: groups of layers, or chunks of a plan, beside chosen units.

As in BetterTogether (IISWC 2025, III-C), the units that make load run in a loop what is measured on the
unit in question; or, for a plan, each the chunk that the plan has there. How that is measured: `turns`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

from ....executor.engine import Engine
from ....executor.model import Model
from ....executor.progress import Forgetful, Ledger, Report, silent
from ....formulations.errors import InvalidInputError
from ....formulations.hardware import Platform
from ....formulations.plan import Chunk, Plan
from ...isolated import RawTimes, seams, slowest_us
from ...probes import Probe, Span, choose_groups
from ...summary import MAX_SPREAD
from ...survey import Survey, survey
from ..corun import apart, companions, require_pairs
from ..turns import CoRunOptions, CoRunRatio, Job, measure_jobs
from .ratios import ALL_OTHERS, InterferenceRatios, PlanInterference

UnitSet = tuple[str, ...]
"""Units that make load together."""


def default_loads(platform: Platform, unit: str, *, able: Sequence[str]) -> dict[str, UnitSet]:
    """Return each other unit that can run beside a unit, and all of them that can run at once."""
    found: dict[str, UnitSet] = {other: (other,) for other in able if apart(platform, (unit, other))}
    together = companions(platform, unit, able=able)
    return {**found, ALL_OTHERS: together} if len(together) > 1 else found


def chosen_loads(
    platform: Platform, unit: str, wanted: Sequence[UnitSet], *, able: Sequence[str]
) -> dict[str, UnitSet]:
    """Return those of the wanted sets of units that can make load beside a unit; as `default_loads`."""
    return {
        ", ".join(names): names
        for names in wanted
        if set(names) <= set(able) and apart(platform, (unit, *names))
    }


def check_loads(platform: Platform, wanted: Sequence[UnitSet]) -> None:
    """Require that there is some load, and that each set of units can make load beside some other unit."""
    require_pairs(platform, "interference")
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
        if not apart(platform, pair):
            return f"{pair[0]} and {pair[1]} share cores, so they never run at once; name one of them"
    if not any(apart(platform, (unit, *chosen)) for unit in names):
        return "no further unit is left that shares no core with them, and could be measured"
    return ""


REST = "the rest of the plan"
"""What the load of a chunk is called that is measured beside the other chunks of its plan."""


@contextmanager
def interference_survey(
    model: Model,
    platform: Platform,
    engine: Engine,
    *,
    options: CoRunOptions = CoRunOptions(),
    ledger: Ledger = Forgetful(),
    report: Report = silent,
) -> Iterator[InterferenceSurvey]:
    """Return a survey of interference with a worker for each unit; all of them end with it.

    `ledger`: where each finished measurement is kept: what it holds already is not measured again.
    """
    with survey(
        model, platform, engine, options=options.profiling, ledger=ledger, report=report
    ) as profiling:
        yield InterferenceSurvey(profiling=profiling, options=options)


_ChunkJob = tuple[Chunk, Job]
"""Layers on a unit, and how they are measured."""


@dataclass(slots=True, kw_only=True)
class InterferenceSurvey:
    """Interference in the making."""

    profiling: Survey  # who makes pieces of the model, and times them
    options: CoRunOptions  # how often

    def loads(self, beside: Sequence[UnitSet]) -> InterferenceRatios:
        """Measure groups of layers on each unit while other units run the same layers in a loop.

        `beside`: sets of units that make load (`check_loads`) for units with which they share no core;
        empty: each other unit, and all other units that can run at once.
        """
        begin = time.monotonic()
        profiling = self.profiling
        models, raws = profiling.time_layers()
        groups = choose_groups(profiling.network, slowest_us(raws), seams(models, raws))
        for preparer in profiling.preparers.each:
            preparer.attempt(groups)  # all in one go
        jobs = [job for span in groups for job in self._group_jobs(span, raws, beside)]
        warnings = self._measure(jobs)
        return self._found(jobs, warnings, ratios=_ratios(jobs), begin=begin)

    def plans(self, plans: Sequence[Plan]) -> InterferenceRatios:
        """Measure each chunk of plans alone, and while the other chunks of its plan run in a loop.

        Raises PlacementError, ExecutionError, UnitLostError: a unit cannot run its chunk, or is lost.
        """
        begin = time.monotonic()
        preparers = self.profiling.preparers
        self.profiling.bench.progress.say(f"preparing pieces of {self.profiling.network.name}")
        chunks = [chunk for plan in plans for chunk in plan.chunks]
        for preparer in preparers.each:
            own = {(c.start, c.stop) for c in chunks if preparers.of(c.unit) is preparer}
            preparer.prepare(own)
        by_plan = [self._plan_jobs(plan) for plan in plans]
        jobs = [job for own in by_plan for job in own]
        warnings = self._measure(jobs)
        found = tuple(
            PlanInterference(plan=plan, chunks=_ratios(own)) for plan, own in zip(plans, by_plan, strict=True)
        )
        return self._found(jobs, warnings, plans=found, begin=begin)

    def _measure(self, jobs: Sequence[_ChunkJob]) -> tuple[str, ...]:
        return measure_jobs(self.profiling.bench, [job for _, job in jobs], rounds=self.options.rounds)

    def _group_jobs(
        self, span: Span, raws: Mapping[str, RawTimes], beside: Sequence[UnitSet]
    ) -> list[_ChunkJob]:
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
                job = Job(unit=unit, probes=probes[unit], loads=loads, occasion="; ".join(sets))
                name = self.profiling.network.name
                jobs.append((Chunk(network=name, start=span[0], stop=span[1], unit=unit), job))
        return jobs

    def _plan_jobs(self, plan: Plan) -> list[_ChunkJob]:
        """Return what is to be measured of a plan: each chunk beside all others."""
        profiling = self.profiling
        probes = {chunk: profiling.probes(chunk.unit, (chunk.start, chunk.stop)) for chunk in plan.chunks}
        parts: dict[str, list[Probe]] = {}
        for chunk, own in probes.items():
            parts.setdefault(chunk.unit, []).extend(own)
        longest = {unit: self._longest(unit, own) for unit, own in parts.items()}
        return [
            (
                chunk,
                Job(
                    unit=chunk.unit,
                    probes=probes[chunk],
                    loads={REST: {unit: probe for unit, probe in longest.items() if unit != chunk.unit}},
                    occasion=f"plan {plan.plan_id}",
                ),
            )
            for chunk in plan.chunks
        ]

    def _longest(self, unit: str, probes: Sequence[Probe]) -> Probe:
        """Return what makes the load of a chunk: the longest part where it goes on from model to model."""
        if len(probes) == 1:
            return probes[0]
        bench = self.profiling.bench
        return max(probes, key=lambda probe: bench.timing(unit, probe, occasion="load").busy.typical_us)

    def _found(
        self,
        jobs: Sequence[_ChunkJob],
        warnings: Sequence[str],
        *,
        ratios: tuple[CoRunRatio, ...] = (),
        plans: tuple[PlanInterference, ...] = (),
        begin: float,
    ) -> InterferenceRatios:
        profiling, options = self.profiling, self.options
        note = (
            f"medians of {options.rounds} rounds, each beside load between two alone, of at least "
            f"{options.seconds_per_item:g} s"
        )
        return InterferenceRatios(
            platform=profiling.platform,
            ratios=ratios,
            plans=plans,
            options=options,
            provenance=profiling.provenance("alone, beside load, alone", note, profiling.bench.kept_words),
            receipts=tuple({job.unit: job.receipt for _, job in jobs if job.receipt}.values()),
            warnings=(
                *profiling.notes,
                *warnings,
                *(text for one in _ratios(jobs) for text in _unsteady(one)),
            ),
            seconds=time.monotonic() - begin,
        )


def _ratios(jobs: Sequence[_ChunkJob]) -> tuple[CoRunRatio, ...]:
    return tuple(
        CoRunRatio(
            chunk=chunk,
            load=name,
            beside=tuple(load),
            alone_us=tuple(times.alone_us),
            beside_us=tuple(times.beside_us),
            shares=tuple(times.shares),
        )
        for chunk, job in jobs
        for name, load in job.loads.items()
        for times in [job.times[name]]
    )


def _unsteady(one: CoRunRatio) -> tuple[str, ...]:
    if one.spread <= MAX_SPREAD:
        return ()
    chunk = one.chunk
    return (
        f"layers {chunk.start} to {chunk.stop - 1} of {chunk.network} on {chunk.unit} beside {one.load}: "
        f"the ratios of the rounds spread over {one.spread:.0%} of their median",
    )

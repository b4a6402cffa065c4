"""Taking a profile, from the first session to the last check."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from ..executor.engine import Engine
from ..executor.model import Model
from ..executor.progress import Ledger, Report
from ..formulations.costs import CostTable, Provenance
from ..formulations.errors import ConversionError, ExecutionError, UnitLostError
from ..formulations.hardware import Platform, ProcessingUnit
from ..formulations.operators import excluded
from ..formulations.plan import Chunk
from .feed import Feed
from .isolated import (
    ProbeTiming,
    RawTimes,
    UnitCosts,
    check_runnable,
    probe_timing,
    span_time,
    time_by_chunks,
    time_by_operators,
    unit_costs,
)
from .measuring import WorkerBench
from .probes import Preparer, Probe, Span, choose_checks, choose_groups, choose_shortest, prepare_whole
from .profile import Basis, ChunkCheck, MeasuredChunk, Method, Profile, ProfileOptions, UnitFit
from .quality import compare_references
from .records import MeasuringProgress, RecordedBench, setting_of
from .reduce import reduce
from .slowdown.corun import companions, heavy_costs

REFERENCES = 4
"""How often one thing is measured again in the course of a profile."""

SHORTEST = 3
"""How many of the shortest chunks tell the overhead of a session."""


@contextmanager
def survey(
    model: Model,
    platform: Platform,
    engine: Engine,
    *,
    options: ProfileOptions,
    ledger: Ledger,
    report: Report,
) -> Iterator[Survey]:
    """Return a survey with a worker for each unit; all of them end with it."""
    feed = Feed(model, seed=options.seed)
    bench = WorkerBench(platform, feed)
    try:
        yield Survey(
            model=model,
            platform=platform,
            preparer=Preparer(model, engine, feed),
            bench=RecordedBench(
                bench=bench,
                platform=platform,
                setting=setting_of(engine),
                ledger=ledger,
                effort=options.effort,
                retries=options.retries,
                progress=MeasuringProgress(report=report),
            ),
            options=options,
        )
    finally:
        bench.close()
        feed.close()


@dataclass(slots=True, kw_only=True)
class _Timed:
    """What was timed on one unit.

    Attributes
    ----------
    alone
        All groups of layers.
    paired, beside
        Groups with load beside them: alone (again), and with the load.
    references
        The first group, several times in the course of the profile.
    shortest
        The chunks with least to do.
    """

    alone: list[ProbeTiming] = field(default_factory=list)
    paired: list[ProbeTiming] = field(default_factory=list)
    beside: list[ProbeTiming] = field(default_factory=list)
    references: list[ProbeTiming] = field(default_factory=list)
    shortest: list[ProbeTiming] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Survey:
    """One profile in the making.

    Attributes
    ----------
    model, platform, options
        As for `profile`.
    preparer, bench
        Who makes pieces of the model, and who times them.
    notes, measured
        What has been found so far.
    """

    model: Model
    platform: Platform
    preparer: Preparer
    bench: RecordedBench
    options: ProfileOptions
    notes: list[str] = field(default_factory=list)
    measured: list[MeasuredChunk] = field(default_factory=list)

    def profile(self, methods: Sequence[Method]) -> Profile:
        """Take it; errors as for `gapless.profiler.profile.profile`."""
        begin = time.monotonic()
        network = self.model.network
        wholes, raws = self.time_layers()
        models = [whole.layers for whole in wholes]
        slowest = slowest_us(raws)
        groups = choose_groups(network, slowest, [layers.start for layers in models[1:]])
        shortest = choose_shortest(network, slowest, count=SHORTEST)
        checks = self._choose_checks(raws, {*groups, *shortest})
        self.bench.progress.say(f"preparing pieces of {network.name}")
        shortest = self._prepare([*groups, *((chunk.start, chunk.stop) for chunk in checks)], shortest)
        self._expect(len(groups), len(shortest), len(checks), methods)
        timed = self._time_groups(groups, raws, methods)
        for span in shortest:
            self._time_shortest(span, raws, timed)
        columns = self._columns(raws, timed, methods)
        rows = self._check(checks, reduce(network, columns[Method.ISOLATED], models, Provenance()))
        return Profile(
            network=network,
            platform=self.platform,
            options=self.options,
            tables=tuple(
                reduce(network, columns[method], models, self._provenance(method, columns[method]))
                for method in methods
            ),
            fits=tuple(_fit(method, costs) for method in methods for costs in columns[method]),
            measured=tuple(self.measured),
            checks=rows,
            receipts=tuple(whole.timing.receipt for raw in raws.values() for whole in raw.wholes),
            warnings=(*self.notes, *self.bench.warnings),
            seconds=time.monotonic() - begin,
        )

    def time_layers(self) -> tuple[tuple[Probe, ...], dict[str, RawTimes]]:
        """Return the uncut models, and the time of each layer on each unit, alone.

        Raises
        ------
        LayerNotRunnableError
            No unit can run some layer.
        """
        network = self.model.network
        self.bench.progress.say(f"preparing {network.name}")
        wholes = prepare_whole(self.preparer, network)
        raws = {
            unit.name: self._allowed(unit, self._layers(unit.name, wholes)) for unit in self.platform.units
        }
        check_runnable(network, [raw.layer_us for raw in raws.values()], self.notes)
        return wholes, raws

    def _layers(self, unit: str, wholes: Sequence[Probe]) -> RawTimes:
        """Return the time of each layer on a unit, alone."""
        runs: tuple[ProbeTiming, ...] = ()
        try:
            runs = tuple(self._time(unit, whole) for whole in wholes)
        except UnitLostError:
            raise
        except ExecutionError as error:
            self.bench.start(unit)  # fails where it is the unit that is wrong, not the model
            self.notes.append(f"unit {unit!r} cannot run the whole of {self.model.network.name!r}: {error}")
        if runs and self.options.basis is Basis.OPERATORS:
            times = time_by_operators(self.bench, unit, wholes, runs, self.model.layer_of)
            if times is not None:
                return RawTimes(layer_us=times, wholes=runs)
        times, notes = time_by_chunks(self.bench, unit, self.model.network, self.preparer, runs)
        self.notes += notes
        return RawTimes(layer_us=times, wholes=runs)

    def _allowed(self, unit: ProcessingUnit, raw: RawTimes) -> RawTimes:
        """Return the times without those of layers that the platform says the unit cannot run."""
        lacks = [bool(excluded(layer.op_types, unit.unsupported)) for layer in self.model.network.layers]
        if not any(lacks):
            return raw
        self.notes.append(
            f"unit {unit.name!r} cannot run {sum(lacks)} of {len(lacks)} layers of "
            f"{self.model.network.name!r}, as the platform says ({', '.join(unit.unsupported)})"
        )
        times = zip(raw.layer_us, lacks, strict=True)
        allowed = tuple(None if lacking else time_us for time_us, lacking in times)
        return replace(raw, layer_us=allowed, wholes=())

    def _choose_checks(self, raws: Mapping[str, RawTimes], measured: Set[Span]) -> list[Chunk]:
        """Return random chunks that are not measured anyway, on one unit after the other."""
        network, options = self.model.network, self.options
        spans = choose_checks(
            network,
            count=options.checks,
            seed=options.seed,
            wanted=lambda span: span not in measured and bool(able_units(raws, span)),
        )
        return [
            Chunk(network=network.name, start=span[0], stop=span[1], unit=units[turn % len(units)])
            for turn, span in enumerate(spans)
            if (units := able_units(raws, span))
        ]

    def _prepare(self, needed: Sequence[Span], shortest: Sequence[Span]) -> tuple[Span, ...]:
        """Have chunks converted; return those of the shortest that are not too short to be converted."""
        try:
            self.preparer.prepare([*needed, *shortest])
        except ConversionError:
            self.preparer.prepare(needed)
            return tuple(span for span in shortest if self._is_convertible(span))
        return tuple(shortest)

    def _is_convertible(self, span: Span) -> bool:
        try:
            self.preparer.prepare([span])
        except ConversionError:
            return False
        return True

    def _expect(self, groups: int, shortest: int, checks: int, methods: Sequence[Method]) -> None:
        """Say how many measurements are still to come; some may turn out not to be needed."""
        progress, units = self.bench.progress, self.platform.unit_names
        each = len(units)
        if Method.HEAVY in methods:
            each += sum(bool(companions(self.platform, unit, able=units)) for unit in units)
        again = min(REFERENCES, groups) + shortest
        progress.total = progress.done + each * groups + len(units) * again + checks

    def _time_groups(
        self, groups: Sequence[Span], raws: Mapping[str, RawTimes], methods: Sequence[Method]
    ) -> dict[str, _Timed]:
        """Time each group on each unit, alone and at once beside load, so that drift cannot part the two.

        The first one is the reference: it is timed again now and then. A group is better at that than the
        whole, because it is short: other programs get between hardly any of its runs.
        """
        found = {unit: _Timed() for unit in raws}
        for index, span in enumerate(groups):
            (probe,) = self.preparer.probes(span)
            able = able_units(raws, span)
            for unit in able:
                alone = self._time(unit, probe)
                found[unit].alone.append(alone)
                others = companions(self.platform, unit, able=able) if Method.HEAVY in methods else ()
                if others:
                    found[unit].paired.append(alone)
                    found[unit].beside.append(self._time(unit, probe, beside=others))
            if (index + 1) * REFERENCES // len(groups) > index * REFERENCES // len(groups):
                for unit, timed in found.items():
                    self._time_reference(unit, timed)
        for unit, timed in found.items():
            busy = [one.timing.busy for one in timed.references]
            self.notes += compare_references(unit, busy, most_far=self.options.most_far)
        return found

    def _time_reference(self, unit: str, timed: _Timed) -> None:
        """Time the first group of a unit once more."""
        if timed.alone:
            (probe,) = self.preparer.probes(timed.alone[0].span)
            timed.references = timed.references or timed.alone[:1]
            occasion = f"reference {len(timed.references)}"
            timed.references.append(self._time(unit, probe, occasion=occasion))

    def _time_shortest(self, span: Span, raws: Mapping[str, RawTimes], timed: Mapping[str, _Timed]) -> None:
        """Time one of the chunks with least to do, where the engine does not refuse to open it."""
        for unit in able_units(raws, span):
            try:
                timed[unit].shortest += [self._time(unit, probe) for probe in self.preparer.probes(span)]
            except UnitLostError:
                raise
            except ExecutionError:
                continue

    def _columns(
        self, raws: Mapping[str, RawTimes], timed: Mapping[str, _Timed], methods: Sequence[Method]
    ) -> dict[Method, list[UnitCosts]]:
        alone = [unit_costs(unit, raw, timed[unit].alone, timed[unit].shortest) for unit, raw in raws.items()]
        if Method.HEAVY not in methods:
            return {Method.ISOLATED: alone}
        heavy = []
        for costs in alone:
            column, notes = heavy_costs(costs, timed[costs.unit].paired, timed[costs.unit].beside)
            heavy.append(column)
            self.notes += notes
        return {Method.ISOLATED: alone, Method.HEAVY: heavy}

    def _check(self, chunks: Sequence[Chunk], isolated: CostTable) -> tuple[ChunkCheck, ...]:
        """Measure chunks that had no part in the table, and say what the table says of them."""
        costs = isolated.of(self.model.network.name)
        rows = []
        for chunk in chunks:
            span, column = (chunk.start, chunk.stop), isolated.units.index(chunk.unit)
            timings = [self._time(chunk.unit, probe).timing for probe in self.preparer.probes(span)]
            layers_us = span_time([row[column] for row in costs.layer_us], span)
            copies_us = costs.transfer_in_us[chunk.start][column] + costs.transfer_out_us[chunk.stop][column]
            rows.append(
                ChunkCheck(
                    chunk=chunk,
                    predicted_us=round((layers_us or 0) + copies_us),
                    measured_us=sum(timing.busy.typical_us for timing in timings),
                )
            )
        return tuple(rows)

    def _time(
        self, unit: str, probe: Probe, *, beside: Sequence[str] = (), occasion: str = ""
    ) -> ProbeTiming:
        timing = self.bench.timing(unit, probe, beside=dict.fromkeys(beside, probe), occasion=occasion)
        start, stop = probe.span
        self.measured.append(
            MeasuredChunk(
                chunk=Chunk(network=self.model.network.name, start=start, stop=stop, unit=unit),
                beside=tuple(beside),
                busy=timing.busy,
                copy_in_us=timing.copy_in.typical_us,
                run_us=timing.run.typical_us,
                copy_out_us=timing.copy_out.typical_us,
            )
        )
        return probe_timing(probe, timing)

    def _provenance(self, method: Method, columns: Sequence[UnitCosts]) -> Provenance:
        models = self.model.network.models
        effort, unsteady = self.options.effort, len(self.bench.warnings)
        notes = [
            f"medians of at least {effort.min_repetitions} runs or {effort.min_seconds:g} s",
            "layers fitted to the whole by " + ", ".join(f"{one.unit} {one.factor:.3f}" for one in columns),
            f"{self.bench.reused} measurements kept from earlier" if self.bench.reused else "",
            f"{unsteady} warnings of unsteady measurements" if unsteady else "",
            *self.notes,
        ]
        emulated = [unit.name for unit in self.platform.units if unit.emulated]
        if emulated:
            notes.append(f"emulated units ({', '.join(emulated)}): sustained speed, medians of means")
        return Provenance(
            source=" + ".join(f"{model.locator} ({model.digest[:16]})" for model in models),
            method=method.value,
            notes="; ".join(filter(None, notes)),
            engine=self.bench.setting.engine,
            device=self.bench.setting.device,
            taken_at=datetime.now().astimezone().isoformat(timespec="seconds"),
        )


def able_units(raws: Mapping[str, RawTimes], span: Span) -> list[str]:
    """Return the units that can run all of some layers."""
    return [unit for unit, raw in raws.items() if span_time(raw.layer_us, span) is not None]


def slowest_us(raws: Mapping[str, RawTimes]) -> list[float]:
    """Return the time of each layer on its slowest unit."""
    rows = zip(*(raw.layer_us for raw in raws.values()), strict=True)
    return [max(time for time in row if time is not None) for row in rows]


def _fit(method: Method, costs: UnitCosts) -> UnitFit:
    return UnitFit(
        unit=costs.unit,
        method=method,
        factor=costs.factor,
        overhead_us=costs.overhead_us,
        copy_in=costs.copy_in,
        copy_out=costs.copy_out,
    )

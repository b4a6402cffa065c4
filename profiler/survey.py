"""Taking a profile, from the first session to the last check."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from statistics import median

from ..executor.engine import Engine
from ..executor.engines.registry import engine_words, engines_on
from ..executor.machine.state import machine_load
from ..executor.model import Model, allowed_of
from ..executor.progress import Ledger, Report
from ..formulations.costs import CostTable, NetworkCosts, Provenance
from ..formulations.deployment import Deployment
from ..formulations.errors import (
    ENDING,
    ConversionError,
    ExecutionError,
    GaplessError,
    NoisyMeasurementError,
    PlacementError,
)
from ..formulations.hardware import Platform, ProcessingUnit
from ..formulations.history import History
from ..formulations.network import Network
from ..formulations.plan import Chunk
from .feed import Feed
from .hops import HopCost, Kept, Trial, hop_costs, passed, trials, with_hops
from .isolated import (
    ProbeTiming,
    RawTimes,
    Timed,
    UnitCosts,
    able_units,
    allowed,
    check_runnable,
    probe_timing,
    seams,
    slowest_us,
    span_time,
    time_by_chunks,
    time_by_operators,
    unit_costs,
)
from .measuring import Bench, WorkerBench
from .preparing import MOST_NAMED, Preparer, Preparers
from .probes import Probe, Span, blocks, choose_checks, choose_groups, choose_shortest, piece_spans
from .profile import Basis, ChunkCheck, MeasuredChunk, Method, Profile, ProfileOptions, SharedUnit, UnitFit
from .records import ALONE, MeasuringProgress, RecordedBench, setting_of
from .reduce import reduce
from .slowdown.corun import companions, heavy_costs
from .slowdown.turns import Job, measure_jobs
from .summary import compare_references


def distrust(network: Network, platform: Platform, preparers: Preparers, bench: Bench) -> list[str]:
    """Have engines refuse layers that they compute wrongly and others rightly; return notes.

    What all engines compute otherwise than the reference is refused by none: then the reference may be wrong.
    """
    checked = [
        _Checked(
            preparer, next(u for u in platform.units if preparers.of(u.name) is preparer), network, bench
        )
        for preparer in preparers.each
    ]
    notes = []
    for one in checked:
        others = [other for other in checked if other is not one]
        wrong = {s: e for s, e in one.wrong.items() if any(s in other.right for other in others)}
        if not wrong:
            continue
        names = [name for span in wrong for name in network.layer_names[slice(*span)]]
        listed = ", ".join(map(repr, names)) if len(names) <= MOST_NAMED else f"{len(names)} layers"
        reason = (
            f"wrong numbers, relative error up to {max(wrong.values()):.2g}, allowed is {one.allowed.error:g}"
        )
        notes.append(f"{one.preparer.engine} cannot run {listed}: {reason}")
        for span in [(0, len(network.layers)), *wrong]:
            one.preparer.refuse(span, ConversionError(f"layers {span[0]} to {span[1] - 1}: {reason}"))
    return notes


class _Checked:
    """Which of the shortest chunks an engine computes rightly and wrongly; the latter with their errors."""

    def __init__(self, preparer: Preparer, unit: ProcessingUnit, network: Network, bench: Bench) -> None:
        self.preparer = preparer
        self.allowed = allowed_of(network, [unit.engine.precision.value])
        self._unit, self._bench = unit.name, bench
        spans = blocks(network)
        whole = self._errors([(0, len(network.layers))])
        if whole and max(whole.values()) <= self.allowed.error:
            errors: Mapping[Span, float] = dict.fromkeys(spans, 0.0)
        else:
            errors = self._errors(spans)
        self.right = {span for span, error in errors.items() if error <= self.allowed.error}
        self.wrong = {span: error for span, error in errors.items() if span not in self.right}

    def _errors(self, spans: Sequence[Span]) -> dict[Span, float]:
        """Return the error of each range that can be converted and run."""
        refused, found = self.preparer.attempt(spans), dict[Span, float]()
        for span in spans:
            if span in refused:
                continue
            try:
                probes = self.preparer.probes(span)
                found[span] = max(
                    self._bench.error(self._unit, probe.prepared, allowed=self.allowed) for probe in probes
                )
            except ENDING:
                raise
            except ExecutionError:  # it is met again when times are measured, on every unit
                continue
        return found


REFERENCES = 4
"""How often one thing is measured again in the course of a profile."""

WORKER_ROUNDS = 3
"""How often one worker of a unit is timed against several."""

LEAST_GAIN = 0.05
"""A further worker pays that brings this share more results: it needs memory for sessions of its own."""

SHORTEST = 3
"""How many of the shortest chunks tell the overhead of a session."""


def with_spares(platform: Platform, most: int) -> Platform:
    """Return a platform with a further unit for each worker that its units may have besides the first."""
    units = tuple(unit if unit.emulated else replace(unit, workers=most) for unit in platform.units)
    workers = replace(platform, units=units).by_worker().units
    spare = (worker for worker in workers if worker.name not in platform.unit_names)
    return replace(platform, units=(*platform.units, *spare))


def with_paying_workers(platform: Platform, shared: Sequence[SharedUnit]) -> Platform:
    """Return a platform whose units have the workers that pay, and say how much they slow each other."""
    units = []
    for unit in platform.units:
        rows, workers, best = [row for row in shared if row.unit == unit.name and row.is_told], 1, 1.0
        for row in rows:
            if row.gain >= best * (1 + LEAST_GAIN):
                workers, best = row.workers, row.gain
        sharing = (1000, *(row.permille for row in rows))
        units.append(replace(unit, workers=workers, sharing_permille=sharing) if rows else unit)
    return replace(platform, units=tuple(units))


@contextmanager
def survey(
    model: Model,
    platform: Platform,
    engine: Engine,
    *,
    options: ProfileOptions,
    ledger: Ledger,
    report: Report,
    counting: bool = False,
) -> Iterator[Survey]:
    """Return a survey with a worker for each unit; all of them end with it.

    `counting`: whether performance counters are read.
    """
    places = with_spares(platform, options.most_workers)
    engines = engines_on(places.units, engine)
    feed = Feed(model, seed=options.seed)
    bench = WorkerBench(places, feed, engines={each.name for each in engines.values()}, counting=counting)
    try:
        yield Survey(
            model=model,
            platform=platform,
            preparers=Preparers(model, engines, feed),
            bench=RecordedBench(
                bench=bench,
                platform=places,
                setting=setting_of(*engines.values()),
                ledger=ledger,
                effort=options.effort,
                retries=options.retries,
                progress=MeasuringProgress(report=report),
                engines={unit: engine_words([own]) for unit, own in engines.items()},
            ),
            options=options,
            trial=partial(_trial, model, platform, engine),
            others_on=partial(_others_on, platform),
        )
    finally:
        bench.close()
        feed.close()


def _trial(
    model: Model, platform: Platform, engine: Engine, deployment: Deployment, requests: int
) -> History:
    """Run requests through a deployment in the runtime, and return what happened."""
    from ..executor.pipeline.pipeline import Pipeline

    with Pipeline(deployment, {model.network.name: model}, platform, engine) as pipeline:
        return pipeline.trace(requests=requests)


def _others_on(platform: Platform, unit: str) -> float:
    """Return which share of the cores of a unit other programs keep busy; 0 where it has none."""
    cores = platform.units[platform.index_of(unit)].cores
    return (machine_load(cores=cores) or 0.0) if cores else 0.0


def _nobody(unit: str) -> float:
    return 0.0


@dataclass(slots=True, kw_only=True)
class Survey:
    """One profile in the making.

    `model`, `platform`, `options`: as for `profile`. Variants of units that can run nothing of the model
    leave the platform. `preparers`, `bench`: who makes pieces of the model, and who times them. `trial`: who
    runs chunks one after the other; None: hops are not measured. `others_on`: which share of the cores of a
    unit other programs keep busy, asked while nothing is measured. `notes`, `measured`: what has been found
    so far.
    """

    model: Model
    platform: Platform
    preparers: Preparers
    bench: RecordedBench
    options: ProfileOptions
    trial: Trial | None = None
    others_on: Callable[[str], float] = _nobody
    notes: list[str] = field(default_factory=list)
    measured: list[MeasuredChunk] = field(default_factory=list)
    network: Network = field(init=False)  # the layers of the model; cuts are closed where engines need that

    def __post_init__(self) -> None:
        self.network = self.model.network

    def profile(self, methods: Sequence[Method]) -> Profile:
        """Take it; errors as for `gapless.profiler.profile.profile`."""
        begin = time.monotonic()
        models, raws = self.time_layers()
        groups, shortest, checks = self._choose(models, raws)
        network = self.network
        self._expect(len(groups), len(shortest), len(checks), methods)
        timed = self._time_groups(groups, raws, methods)
        for span in shortest:
            self._time_shortest(span, raws, timed)
        columns = self._columns(raws, timed, methods)
        rows = self._check(checks, reduce(network, columns[Method.ISOLATED], models, Provenance()))
        busiest = columns[Method.HEAVY if Method.HEAVY in methods else Method.ISOLATED]
        hops = self._hops(raws, reduce(network, busiest, models, Provenance()).of(network.name))
        columns = {method: with_hops(column, hops) for method, column in columns.items()}
        shared = self._share_units(raws, groups)
        return Profile(
            network=network,
            platform=with_paying_workers(self.platform, shared),
            options=self.options,
            tables=tuple(
                reduce(network, columns[method], models, self._provenance(method, columns[method], hops))
                for method in methods
            ),
            fits=tuple(_fit(method, costs) for method in methods for costs in columns[method]),
            measured=tuple(self.measured),
            checks=rows,
            hops=hops,
            shared=shared,
            receipts=tuple(whole.timing.receipt for raw in raws.values() for whole in raw.wholes),
            warnings=(*self.notes, *self.bench.warnings),
            seconds=time.monotonic() - begin,
        )

    def time_layers(self) -> tuple[tuple[range, ...], dict[str, RawTimes]]:
        """Return the layers of each model, and the time of each layer on each unit, alone.

        Raises LayerNotRunnableError: no unit can run some layer.
        """
        engines = [preparer.engine for preparer in self.preparers.each]
        each = f" for {' and '.join(engines)}: all is measured with each of them" if len(engines) > 1 else ""
        self.bench.progress.say(f"preparing {self.network.name}{each}")
        self.network, notes = self.preparers.require(self.network)
        self.notes += notes
        if len(engines) > 1:
            self.notes += distrust(self.network, self.platform, self.preparers, self.bench.bench)
        raws = {}
        for unit in self.platform.units:
            raws[unit.name], lacks = allowed(self.network, unit, self._layers(unit.name))
            self.notes += lacks
        check_runnable(self.network, [raw.layer_us for raw in raws.values()], self.notes)
        idle = [unit for unit, raw in raws.items() if all(time is None for time in raw.layer_us)]
        if idle:
            self.notes.append(f"left out, because they can run no layer: {', '.join(idle)}")
        kept = tuple(unit for unit in self.platform.units if unit.name not in idle)
        self.platform = replace(self.platform, units=kept)
        pieces = self.model.pieces(*self._whole)
        models = (range(*span) for span in piece_spans(self.network, pieces, self._whole))
        return tuple(models), {unit.name: raws[unit.name] for unit in kept}

    @property
    def _whole(self) -> Span:
        return 0, len(self.network.layers)

    def _layers(self, unit: str) -> RawTimes:
        """Return the time of each layer on a unit, alone."""
        preparer = self.preparers.of(unit)
        runs: tuple[ProbeTiming, ...] = ()
        if self.preparers.converts(unit, self._whole):
            wholes = preparer.probes(self._whole)
            runs = self._runs(unit, wholes)
            if runs and self.options.basis is Basis.OPERATORS:
                times = time_by_operators(self.bench, unit, wholes, runs, self.model.layer_of)
                if times is not None:
                    return RawTimes(layer_us=times, wholes=runs)
        try:
            times, notes = time_by_chunks(self.bench, unit, self.network, preparer, runs)
        except (PlacementError, *ENDING):
            raise
        except ExecutionError as error:
            if len(self.preparers.each) == 1:
                raise
            if not isinstance(error, ConversionError):  # which is noted once for all units
                self.notes.append(f"unit {unit!r} can run no layer: {error}")
            return RawTimes(layer_us=(None,) * len(self.network.layers), wholes=())
        self.notes += notes
        return RawTimes(layer_us=times, wholes=runs)

    def _runs(self, unit: str, wholes: Sequence[Probe]) -> tuple[ProbeTiming, ...]:
        """Return the times of the uncut models; nothing where they cannot run on a unit."""
        try:
            return tuple(self._time(unit, whole) for whole in wholes)
        except ENDING:
            raise
        except ExecutionError as error:
            self.bench.start(unit)  # fails where it is the unit that is wrong, not the model
            self.notes.append(f"unit {unit!r} cannot run the whole of {self.network.name!r}: {error}")
            return ()

    def _choose(
        self, models: Sequence[range], raws: Mapping[str, RawTimes]
    ) -> tuple[tuple[Span, ...], tuple[Span, ...], list[Chunk]]:
        """Return groups, shortest chunks and checks, all of them converted."""
        self.bench.progress.say(f"preparing pieces of {self.network.name}")
        slowest = slowest_us(raws)
        groups = choose_groups(self.network, slowest, seams(models, raws))
        shortest = choose_shortest(self.network, slowest, count=SHORTEST)
        checks = self._choose_checks(raws, {*groups, *shortest})
        for preparer in self.preparers.each:
            preparer.attempt([*groups, *shortest, *((chunk.start, chunk.stop) for chunk in checks)])
        able = [c for c in checks if self.preparers.converts(c.unit, (c.start, c.stop))]
        return groups, shortest, able

    def _choose_checks(self, raws: Mapping[str, RawTimes], measured: Set[Span]) -> list[Chunk]:
        """Return random chunks that are not measured anyway, on one unit after the other."""
        network, options = self.network, self.options
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

    def able(self, raws: Mapping[str, RawTimes], span: Span) -> list[str]:
        """Return the units that can run all of some layers, and whose engine can convert them together."""
        return [unit for unit in able_units(raws, span) if self.preparers.converts(unit, span)]

    def probes(self, unit: str, span: Span) -> tuple[Probe, ...]:
        """Return some layers as a unit runs them."""
        return self.preparers.of(unit).probes(span)

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
    ) -> dict[str, Timed]:
        """Time each group on each unit, alone and at once beside load, so that drift cannot part the two.

        The first one is the reference: it is timed again now and then. A group is better at that than the
        whole, because it is short: other programs get between hardly any of its runs.
        """
        found = {unit: Timed() for unit in raws}
        for index, span in enumerate(groups):
            able = self.able(raws, span)
            for unit in able:
                (probe,) = self.probes(unit, span)
                alone = self._time(unit, probe)
                found[unit].alone.append(alone)
                others = companions(self.platform, unit, able=able) if Method.HEAVY in methods else ()
                if others:
                    load = {other: self.probes(other, span)[0] for other in others}
                    found[unit].paired.append(alone)
                    found[unit].beside.append(self._time(unit, probe, beside=load))
            if (index + 1) * REFERENCES // len(groups) > index * REFERENCES // len(groups):
                for unit, timed in found.items():
                    self._time_reference(unit, timed)
        for unit, timed in found.items():
            busy = [one.timing.busy for one in timed.references]
            try:
                self.notes += compare_references(unit, busy, most_far=self.options.most_far)
            except NoisyMeasurementError:
                self.bench.forget_references(unit)
                raise
        return found

    def _time_reference(self, unit: str, timed: Timed) -> None:
        """Time the first group of a unit once more."""
        if timed.alone:
            (probe,) = self.probes(unit, timed.alone[0].span)
            timed.references = timed.references or timed.alone[:1]
            occasion = f"reference {len(timed.references)}"
            timed.references.append(self._time(unit, probe, occasion=occasion))

    def _time_shortest(self, span: Span, raws: Mapping[str, RawTimes], timed: Mapping[str, Timed]) -> None:
        """Time one of the chunks with least to do, where the engine does not refuse to open it."""
        for unit in self.able(raws, span):
            try:
                timed[unit].shortest += [self._time(unit, probe) for probe in self.probes(unit, span)]
            except ENDING:
                raise
            except ExecutionError:
                continue

    def _columns(
        self, raws: Mapping[str, RawTimes], timed: Mapping[str, Timed], methods: Sequence[Method]
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
        costs = isolated.of(self.network.name)
        rows = []
        for chunk in chunks:
            span, column = (chunk.start, chunk.stop), isolated.units.index(chunk.unit)
            timings = [self._time(chunk.unit, probe).timing for probe in self.probes(chunk.unit, span)]
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

    def _hops(self, raws: Mapping[str, RawTimes], costs: NetworkCosts) -> tuple[HopCost, ...]:
        """Run chunks that go to and fro between the units, and return what hops cost besides copies.

        `costs`: what the table says of them.
        """
        if self.trial is None:
            return ()
        digests = (model.digest for model in self.model.network.models)
        setting = (*digests, self.bench.setting.engine, self.bench.setting.digest)
        kept, runs = Kept(ledger=self.bench.ledger, setting=setting), []
        for deployment in trials(self.network, self.platform, raws):
            what = f"hops between {' and '.join(deployment.units)}"
            self.bench.progress.say(what)
            try:
                runs.append((deployment, passed(deployment, costs, self.platform, self.trial, kept)))
            except GaplessError as error:
                self.notes.append(f"{what} were not measured, they are predicted by copies only: {error}")
        return hop_costs(runs, costs, self.platform)

    def _share_units(self, raws: Mapping[str, RawTimes], groups: Sequence[Span]) -> tuple[SharedUnit, ...]:
        """Time the longest chunk that each unit can run by one of its workers, alone and beside others."""
        found: list[SharedUnit] = []
        for unit, raw in raws.items():
            spare = [each.name for each in self.bench.platform.units if each.worker_of == unit]
            spans = [
                span
                for span in (self._whole, *groups)
                if unit in self.able(raws, span) and len(self.probes(unit, span)) == 1
            ]
            if not spare or not spans:
                continue
            (probe,) = self.probes(unit, max(spans, key=lambda span: span_time(raw.layer_us, span) or 0.0))
            loads = {
                str(count): dict.fromkeys((unit, *spare[1 : count - 1]), probe)
                for count in range(2, len(spare) + 2)
            }
            job = Job(unit=spare[0], probes=(probe,), loads=loads, occasion="workers")
            before = self.others_on(unit)
            self.notes += measure_jobs(self.bench, [job], rounds=WORKER_ROUNDS)
            others = max(before, self.others_on(unit))
            for count, times in job.times.items():
                alone_us, beside_us = median(times.alone_us), median(times.beside_us)
                found.append(
                    SharedUnit(
                        unit=unit, workers=int(count), alone_us=alone_us, beside_us=beside_us, others=others
                    )
                )
            if not found[-1].is_told:
                self.notes.append(
                    f"unit {unit!r}: other programs kept {others:.0%} of its cores busy, so it is not known "
                    "how many workers pay: each takes its part from them; end them, and measure again"
                )
        return tuple(found)

    def _time(
        self, unit: str, probe: Probe, *, beside: Mapping[str, Probe] = ALONE, occasion: str = ""
    ) -> ProbeTiming:
        timing = self.bench.timing(unit, probe, beside=beside, occasion=occasion)
        start, stop = probe.span
        self.measured.append(
            MeasuredChunk(
                chunk=Chunk(network=self.network.name, start=start, stop=stop, unit=unit),
                beside=tuple(beside),
                busy=timing.busy,
                copy_in_us=timing.copy_in.typical_us,
                run_us=timing.run.typical_us,
                copy_out_us=timing.copy_out.typical_us,
            )
        )
        return probe_timing(probe, timing)

    def _provenance(
        self, method: Method, columns: Sequence[UnitCosts], hops: Sequence[HopCost]
    ) -> Provenance:
        effort, unsteady = self.options.effort, len(self.bench.warnings)
        notes = [
            f"medians of at least {effort.min_repetitions} runs or {effort.min_seconds:g} s",
            "layers fitted to the whole by " + ", ".join(f"{one.unit} {one.factor:.3f}" for one in columns),
            self.bench.kept_words,
            f"{unsteady} warnings of unsteady measurements" if unsteady else "",
            *self.notes,
        ]
        emulated = [unit.name for unit in self.platform.units if unit.emulated]
        if emulated:
            notes.append(f"emulated units ({', '.join(emulated)}): sustained speed, medians of means")
        return replace(self.provenance(method.value, *notes), hops=bool(hops))

    def provenance(self, method: str, *notes: str) -> Provenance:
        """Return where numbers come from that are measured now: by which method, and what to know of it."""
        return Provenance(
            source=" + ".join(f"{one.locator} ({one.digest[:16]})" for one in self.model.network.models),
            method=method,
            notes="; ".join(filter(None, notes)),
            engine=self.bench.setting.engine,
            device=self.bench.setting.device,
            taken_at=datetime.now().astimezone().isoformat(timespec="seconds"),
        )


def _fit(method: Method, costs: UnitCosts) -> UnitFit:
    return UnitFit(
        unit=costs.unit,
        method=method,
        factor=costs.factor,
        overhead_us=costs.overhead_us,
        copy_in=costs.copy_in,
        copy_out=costs.copy_out,
        hop_us=costs.hop_us,
    )

"""Contention on this machine: networks beside each other, and beside a memory probe.

On processor cores the time that counts is the one for which the cores really worked on the piece: what other
programs take of a core is not contention. Where they took part of the aggressor's cores from it, the slowdown
is extrapolated to an aggressor that always runs. How co-runs are measured: `turns`.

Simplification: all layers of the aggressor run in a loop. In a plan only some of them run at once. Where
parts of networks are measured (`ContentionOptions.parts`), the simulation goes by the slices that run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from statistics import fmean, median

from ....executor.engine import Engine
from ....executor.joined import join
from ....executor.machine.counters import counters_availability
from ....executor.model import Model
from ....executor.progress import Forgetful, Ledger, Report, silent
from ....formulations.errors import ENDING, ExecutionError, InvalidInputError, ProfilingError
from ....formulations.hardware import Platform
from ...probes import Probe
from ...sampling import Effort, TimeBase
from ...summary import MAX_SPREAD
from ...survey import Survey, survey
from ..corun import require_pairs, unit_pairs
from ..turns import CoRun, Job, measure_jobs
from .features import EVENTS
from .parts import PartContention, choose_parts, with_slices
from .probe import PROBE, can_probe, probe_piece, sweep_bytes
from .rank_one import NetworkFactors, RankOne, drowned, fit_rank_one, judged
from .result import Calibration, Contention, ContentionOptions, CountedFeatures, Part, high_from
from .ridge import Form, Ridge, fit_ridge

COUNTED_RUNS = 20
"""Runs of a network of which counters are read: together they take longer than the kernel's turns."""

_TURNS = 2
"""How often in a row a network is measured beside another one."""

_TRIAL = Effort(min_repetitions=1, min_seconds=0.0, warm_up_repetitions=1)


def measure_contention(
    models: Sequence[Model],
    platform: Platform,
    engine: Engine,
    *,
    options: ContentionOptions = ContentionOptions(),
    estimated: Sequence[Model] = (),
    ledger: Ledger = Forgetful(),
    report: Report = silent,
) -> Contention:
    """Measure how much networks slow each other down on the units of a platform.

    `estimated`: further networks, which run alone only: their intensities follow from performance counters,
    by Eq. (1) as fitted to the others. `ledger`: where each finished measurement is kept: what it holds
    already is not measured again.
    Raises InvalidInputError: no network is given, two have the same name, or no two units can run at once.
    """
    _require(models, platform, estimated)
    counters = counters_availability(EVENTS)
    if estimated and not counters.ok:
        raise ProfilingError(_no_estimate(estimated[0].network.name, counters.reason))
    everything = [*models, *estimated]
    with survey(
        join(everything),
        platform,
        engine,
        options=options.profiling,
        ledger=ledger,
        report=report,
        counting=True,
    ) as profiling:
        names = tuple(model.network.name for model in estimated)
        return ContentionSurvey(profiling=profiling, options=options, estimated=names).take(everything)


def _require(models: Sequence[Model], platform: Platform, estimated: Sequence[Model]) -> None:
    names = [model.network.name for model in (*models, *estimated)]
    if not models:
        raise InvalidInputError("no network is given: name at least one to measure its contention")
    taken = [name for name in dict.fromkeys(names) if name == PROBE or names.count(name) > 1]
    if taken:
        raise InvalidInputError(
            f"each network needs a name of its own, which {', '.join(map(repr, taken))} is not; "
            "NAME=... before a model gives it one"
        )
    require_pairs(platform, "contention")


@dataclass(slots=True, kw_only=True)
class ContentionSurvey:
    """Contention in the making."""

    profiling: Survey  # makes pieces of the joined networks, and times them
    options: ContentionOptions
    estimated: tuple[str, ...] = ()  # networks that run alone only, to be counted
    pieces: dict[str, Probe] = field(default_factory=dict)
    """Everything that runs, by name: networks, parts, the memory probe."""
    networks: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    able: dict[str, list[str]] = field(default_factory=dict)  # units that can run a piece, by its name
    warnings: list[str] = field(default_factory=list)  # what a reader should know; grows

    @property
    def platform(self) -> Platform:
        """The units."""
        return self.profiling.platform

    def take(self, models: Sequence[Model]) -> Contention:
        """Measure everything and conclude; errors as for `measure_contention`."""
        begin = time.monotonic()
        bench = self.profiling.bench
        bench.effort = replace(bench.effort, time_base=TimeBase.BUSY)
        bench.progress.say("preparing the networks")
        self.prepare(models)
        self.try_out()
        coruns = self.coruns()
        found = _concluded(self, coruns, self.counted())
        return replace(found, seconds=time.monotonic() - begin)

    def prepare(self, models: Sequence[Model]) -> None:
        """Have everything converted that will run.

        Raises ConversionError: the engine cannot convert a network or a part.
        """
        (preparer,) = self.profiling.preparers.each
        spans: dict[str, tuple[int, int]] = {}
        offset = 0
        for model in models:
            network = model.network
            count = 0 if network.name in self.estimated else self.options.parts
            parts = choose_parts(network, count=count)
            spans[network.name] = (offset, offset + len(network.layers))
            spans |= {part.label: (offset + part.start, offset + part.stop) for part in parts}
            offset += len(network.layers)
            self.parts += parts
        names = (model.network.name for model in models)
        self.networks = tuple(name for name in names if name not in self.estimated)
        preparer.prepare(spans.values())
        for name, span in spans.items():
            probes = preparer.probes(span)
            if len(probes) != 1:
                raise InvalidInputError(f"{name!r} joins several models; name each of them by itself")
            self.pieces[name] = probes[0]
        self.pieces[PROBE] = Probe(span=(0, 0), prepared=probe_piece())

    def try_out(self) -> None:
        """Find out which unit can run what.

        Raises PlacementError: this machine does not grant what a unit stands for.
        """
        used = set(chain.from_iterable(unit_pairs(self.platform)))
        units = [unit for unit in self.platform.units if unit.name in used]
        for unit in units:
            self.profiling.bench.start(unit.name)
        for name in self.pieces:
            self.able[name] = [
                unit.name
                for unit in units
                if (name != PROBE or can_probe(unit)) and self._runs(name, unit.name)
            ]
        if not any(self._each()):
            raise ProfilingError("; ".join(self.warnings) or "no two units can run anything at once")

    def coruns(self) -> tuple[CoRun, ...]:
        """Measure all co-runs, in rounds."""
        jobs: dict[tuple[str, str], Job] = {}  # each victim stays open while its aggressors change
        for victim, unit, aggressor, other in self._each():
            new = Job(unit=unit, probes=(self.pieces[victim],), loads={}, occasion=victim)
            job = jobs.setdefault((victim, unit), new)
            job.loads[f"{aggressor} on {other}"] = {other: self.pieces[aggressor]}
        rounds = self.options.rounds
        thieves = measure_jobs(self.profiling.bench, [*jobs.values()], rounds=rounds, turns=_TURNS)
        self.warnings += [f"{warning}; slowdowns are extrapolated" for warning in thieves]
        found = []
        for victim, unit, aggressor, other in self._each():
            times = jobs[victim, unit].times[f"{aggressor} on {other}"]
            found.append(
                CoRun(
                    victim=victim,
                    victim_unit=unit,
                    aggressor=aggressor,
                    aggressor_unit=other,
                    alone_us=tuple(times.alone_us),
                    beside_us=tuple(times.beside_us),
                    shares=tuple(times.shares),
                )
            )
        return tuple(found)

    def counted(self) -> tuple[CountedFeatures, ...]:
        """Read the counters of each network on each unit; none where there are no counters."""
        found: list[CountedFeatures] = []
        refused: dict[str, list[str]] = {}
        raw = self.profiling.bench.bench
        for unit in [unit.name for unit in self.platform.units if unit.cores]:
            names = [name for name in (*self.networks, *self.estimated) if unit in self.able[name]]
            try:
                for name in names:
                    features = raw.features(unit, self.pieces[name].prepared, runs=COUNTED_RUNS)
                    found.append(CountedFeatures(network=name, unit=unit, features=features))
            except ProfilingError as error:
                refused.setdefault(str(error), []).append(unit)
        self.warnings += [
            f"performance counters are not used on {', '.join(units)}: {reason}"
            for reason, units in refused.items()
        ]
        return tuple(found)

    def _each(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield what is measured: what runs where, beside what where."""
        for unit, other in unit_pairs(self.platform):
            for victim, aggressor in self._combinations():
                if unit in self.able[victim] and other in self.able[aggressor]:
                    yield victim, unit, aggressor, other

    def _combinations(self) -> Iterator[tuple[str, str]]:
        networks = self.networks
        yield from product(networks, networks) if self.options.pairs else zip(networks, networks, strict=True)
        parts = tuple(part.label for part in self.parts)
        yield from product((*networks, *parts), [PROBE])
        yield from product([PROBE], (*networks, PROBE, *parts))

    def _runs(self, name: str, unit: str) -> bool:
        try:
            self.profiling.bench.bench.timing(unit, self.pieces[name].prepared, effort=_TRIAL)
        except ENDING:
            raise
        except ExecutionError as error:
            self.warnings.append(f"unit {unit!r} cannot run {name!r}: {error}")
            return False
        return True


def _concluded(
    survey: ContentionSurvey,
    coruns: tuple[CoRun, ...],
    counted: tuple[CountedFeatures, ...],
) -> Contention:
    """Return what follows from the measurements."""
    among = [one for one in coruns if PROBE not in (one.victim, one.aggressor)]
    if not among:
        raise ProfilingError("; ".join(survey.warnings) or "no co-run of networks could be measured")
    probe_fit = _probe_fit(survey.networks, coruns, among)
    by_pairs = fit_rank_one(among)
    used = by_pairs if survey.options.pairs or probe_fit is None else probe_fit
    pair_fit = by_pairs if used is by_pairs else None
    calibrations = _calibrations(coruns)
    unsteady = [
        f"the memory probe alone on {one.unit} spreads over {one.spread:.0%} of its time: end what else "
        "runs, or measure more rounds"
        for one in calibrations
        if one.spread > MAX_SPREAD
    ]
    regression = _regression(coruns, counted, survey.options.form)
    clipped = [f"{label}: the slowdown does not stand out from the noise" for label in used.clipped]
    by_network = with_estimated(used, survey, coruns, counted, regression).interference(
        survey.platform.unit_names,
        provenance=survey.profiling.provenance(
            "co-runs of networks" if pair_fit else "co-runs with a memory probe",
            _notes(survey.options, used),
            survey.profiling.bench.kept_words,
        ),
        high_from_permille=high_from(
            [round(1000 * factors.intensity) for factors in used.networks],
            percentile=survey.options.percentile,
        ),
    )
    return Contention(
        platform=survey.platform,
        networks=survey.networks,
        options=survey.options,
        interference=with_slices(by_network, _measured_parts(survey.parts, coruns)),
        calibrations=calibrations,
        coruns=coruns,
        probe_fit=probe_fit,
        pair_fit=pair_fit,
        parts=survey.parts,
        counted=counted,
        regression=regression,
        estimated=survey.estimated,
        warnings=(*survey.warnings, *unsteady, *clipped, *_unheard(survey.parts, coruns)),
    )


def _measured_parts(parts: Sequence[Part], coruns: Sequence[CoRun]) -> list[PartContention]:
    """Return what parts do to the probe, and the probe to them; of networks all of whose parts could run."""
    found: list[PartContention] = []
    for part in parts:
        causes = [one.slowdown for one in coruns if (one.victim, one.aggressor) == (PROBE, part.label)]
        beside = [one for one in coruns if (one.victim, one.aggressor) == (part.label, PROBE)]
        if causes and beside:
            found.append(
                PartContention(
                    part=part,
                    time_us=median(time_us for one in beside for time_us in one.alone_us),
                    causes=median(causes),
                    suffers=median(one.slowdown for one in beside),
                )
            )
    there = Counter(each.part.network for each in found)
    whole = {name for name, count in Counter(part.network for part in parts).items() if there[name] == count}
    return [each for each in found if each.part.network in whole]


def _unheard(parts: Sequence[Part], coruns: Sequence[CoRun]) -> Iterator[str]:
    """Yield which networks have parts that the probe hardly notices."""
    for name in dict.fromkeys(part.network for part in parts):
        labels = {part.label for part in parts if part.network == name}
        felt = [one for one in coruns if one.victim == PROBE and one.aggressor in labels]
        if felt and 2 * sum(map(drowned, felt)) > len(felt):
            yield (
                f"parts of {name}: what most of them do to the probe does not stand out from the noise: "
                "their slices tell little; measure longer or more rounds, or leave --parts out"
            )


def with_estimated(
    fit: RankOne,
    survey: ContentionSurvey,
    coruns: Sequence[CoRun],
    counted: Sequence[CountedFeatures],
    regression: Ridge | None,
) -> RankOne:
    """Return a model with the networks that were not measured beside others, by Eq. (1).

    The regression tells how much a network slows the probe; over how much a typical one of those measured
    does, that is its intensity.
    """
    if not survey.estimated:
        return fit
    caused = [one.slowdown for one in coruns if one.victim == PROBE and one.aggressor in survey.networks]
    typical = fmean(caused) / fmean(fit.of(name).intensity for name in survey.networks) if caused else 0.0
    more = []
    for name in survey.estimated:
        rows = [entry.features.row for entry in counted if entry.network == name]
        if regression is None or not rows or typical <= 0:
            reasons = "; ".join(survey.warnings) or "no network slows the memory probe"
            raise ProfilingError(_no_estimate(name, reasons))
        intensity = max(0.0, fmean(regression.predict(rows)) / typical)
        more.append(NetworkFactors(network=name, intensity=intensity))
    return replace(fit, networks=(*fit.networks, *more))


def _no_estimate(name: str, why: str) -> str:
    return (
        f"the intensity of {name!r} cannot be estimated from performance counters ({why}); name it among the "
        "networks that are measured"
    )


def _probe_fit(networks: Sequence[str], coruns: Sequence[CoRun], among: Sequence[CoRun]) -> RankOne | None:
    """Return the model from as many co-runs as networks: of the probe beside each, of each beside itself.

    How much the probe suffers tells the intensities. What a network suffers beside itself, over its
    intensity, tells its sensitivity: the probe cannot, because it takes all of the memory's bandwidth,
    which no network does, and those that bear that well are not those that bear each other well.
    """
    felt = [one for one in coruns if one.victim == PROBE and one.aggressor in networks]
    alike = [one for one in among if one.victim == one.aggressor]
    return judged(fit_rank_one([*felt, *alike]).without([PROBE]), among) if felt and alike else None


def _notes(options: ContentionOptions, fit: RankOne) -> str:
    explained = "" if fit.explained is None else f"explains {fit.explained:.0%} of the variance, "
    return (
        f"medians of {_TURNS * options.rounds} co-runs of at least {options.seconds_per_item:g} s; "
        f"rank-one model {explained}mean error {fit.mean_error:.1%} of the time alone"
    )


def _calibrations(coruns: Sequence[CoRun]) -> tuple[Calibration, ...]:
    """Return what the probe does alone, from all its co-runs on each unit."""
    sweeps: dict[str, list[float]] = {}
    for one in coruns:
        if one.victim == PROBE:
            sweeps.setdefault(one.victim_unit, []).extend(one.alone_us)
    size = sweep_bytes()
    return tuple(
        Calibration(unit=unit, bytes_a_sweep=size, sweeps_us=tuple(times)) for unit, times in sweeps.items()
    )


def _regression(coruns: Sequence[CoRun], counted: Sequence[CountedFeatures], form: Form) -> Ridge | None:
    """Fit the slowdown that each network on each unit causes to the probe to its features."""
    rows, targets = [], []
    for entry in counted:
        for one in coruns:
            if (one.victim, one.aggressor, one.aggressor_unit) == (PROBE, entry.network, entry.unit):
                rows.append(entry.features.row)
                targets.append(one.slowdown)
    return fit_ridge(rows, targets, form=form) if rows else None

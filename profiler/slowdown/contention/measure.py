"""Measuring contention on this machine: networks beside each other, and beside a memory probe.

Each co-run is measured between two measurements of the same piece alone, and all co-runs are repeated in
rounds: what drifts slowly cancels in the ratio, and a disturbance of some seconds hits one round of a few
co-runs. On processor cores the time that counts is the one for which the cores really worked on the
piece: what other programs take of a core is not contention. Where they took part of the aggressor's cores
from it, the slowdown is extrapolated to an aggressor that always runs.

Simplification: the aggressor runs in a loop, all the time and all of its layers. In a plan it pauses, and
only some of its layers run at once. The simulation takes the first into account; where parts of networks are
measured (`ContentionOptions.parts`), it goes by the slices that run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import fmean, median

from ....executor.engine import Engine
from ....executor.joined import join
from ....executor.machine.counters import counters_availability
from ....executor.model import Model
from ....executor.progress import Report, silent
from ....formulations.costs import Provenance
from ....formulations.errors import InvalidInputError, ProfilingError
from ....formulations.hardware import Platform
from ...preparing import Preparer
from ...records import MeasuringProgress, setting_of
from ...summary import MAX_SPREAD
from .bench import ContentionBench
from .features import EVENTS
from .observations import CoRun
from .parts import PartContention, with_slices
from .probe import PROBE, sweep_bytes
from .rank_one import NetworkFactors, RankOne, drowned, fit_rank_one, judged
from .result import Calibration, Contention, ContentionOptions, CountedFeatures, Part, high_from
from .ridge import Form, Ridge, fit_ridge
from .survey import ContentionSurvey, unit_pairs


def measure_contention(
    models: Sequence[Model],
    platform: Platform,
    engine: Engine,
    *,
    options: ContentionOptions = ContentionOptions(),
    estimated: Sequence[Model] = (),
    report: Report = silent,
) -> Contention:
    """Measure how much networks slow each other down on the units of a platform.

    `estimated`: further networks, which run alone only: their intensities follow from performance counters,
    by Eq. (1) as fitted to the others.
    Raises InvalidInputError: no network is given, two have the same name, or no two units can run at once.
    """
    _require(models, platform, estimated)
    counters = counters_availability(EVENTS)
    if estimated and not counters.ok:
        raise ProfilingError(_no_estimate(estimated[0].network.name, counters.reason))
    everything = [*models, *estimated]
    joined = join(everything)
    setting = setting_of(engine)
    provenance = Provenance(
        source=" + ".join(f"{ref.locator} ({ref.digest[:16]})" for ref in joined.network.models),
        engine=setting.engine,
        device=setting.device,
        taken_at=datetime.now().astimezone().isoformat(timespec="seconds"),
    )
    with ContentionBench(platform, joined, seed=options.seed) as bench:
        survey = ContentionSurvey(
            platform=platform,
            options=options,
            bench=bench,
            progress=MeasuringProgress(report=report),
            estimated=tuple(model.network.name for model in estimated),
        )
        return take(survey, everything, Preparer(joined, engine, bench.feed), provenance)


def take(
    survey: ContentionSurvey, models: Sequence[Model], preparer: Preparer, provenance: Provenance
) -> Contention:
    """Measure everything and conclude; `preparer` cuts the joined models, errors as above."""
    begin = time.monotonic()
    survey.progress.say("preparing the networks")
    survey.prepare(models, preparer)
    survey.try_out()
    coruns = survey.coruns()
    found = _concluded(survey, coruns, survey.counted(), provenance)
    return replace(found, seconds=time.monotonic() - begin)


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
    if not unit_pairs(platform):
        raise InvalidInputError(
            f"no two of the units {', '.join(platform.unit_names)} can run at once (they share cores), so "
            "there is no contention to measure; `gapless device detect` shows the units of this device"
        )


def _concluded(
    survey: ContentionSurvey,
    coruns: tuple[CoRun, ...],
    counted: tuple[CountedFeatures, ...],
    provenance: Provenance,
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
        provenance=replace(
            provenance,
            method="co-runs of networks" if pair_fit else "co-runs with a memory probe",
            notes=_notes(survey.options, used),
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
        f"medians of {2 * options.rounds} co-runs of at least {options.seconds_per_item:g} s; "
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

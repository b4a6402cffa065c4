"""Contention: how much networks slow each other down, as it was measured, and as it is estimated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..profiler.platforms.phone_estimates import EstimatedContention, EstimatedPart
from ..profiler.slowdown.contention.rank_one import RankOne
from ..profiler.slowdown.contention.result import Contention
from ..profiler.slowdown.turns import CoRun
from .blocks import Block, Column, Section, Sentence, Table, Tone, Unit, matrix, notes, table
from .words import layers_words, size

_LEGEND = (
    "intensity, sensitivity: slowdown that a network causes and suffers, relative to a typical one of these; "
    "high, low: above the percentile of the intensities, or not. The probe takes all of the bandwidth, so "
    "what it does to a network tells little of what other networks do to it"
)
_ESTIMATED = (
    "Eq. (1): intensity predicted from the three features, by a ridge regression over the networks of Table "
    "II; taken: what plans are made with. Features are computed from the work of each layer, not counted. "
    "High in parts: share of the time in layers or parts of high intensity, and the one that presses most"
)


def contention_blocks(found: Contention) -> Iterator[Block]:
    """Yield what `gapless costs contention` answers."""
    provenance = found.interference.provenance
    words = f": {provenance.method} in {found.seconds:.1f} s by {provenance.engine}"
    yield Sentence(words, lead=", ".join(found.networks))
    alone = matrix(
        "",
        "unit",
        ("bandwidth", "spread", "data"),
        (
            (
                one.unit,
                f"{one.bytes_per_s / 1e9:.1f} GB/s",
                f"{100 * one.spread:.1f} %",
                size(one.bytes_a_sweep),
            )
            for one in found.calibrations
        ),
    )
    yield Section("The memory probe alone:", (alone,))
    yield _networks(found)
    yield Sentence(_LEGEND, Tone.SOFT)
    yield Section("Parts of networks beside the probe:", (_parts(found),))
    yield Section("Performance counters:", (_counted(found),))
    for units in dict.fromkeys((one.victim_unit, one.aggressor_unit) for one in found.pairs):
        rows = [one for one in found.pairs if (one.victim_unit, one.aggressor_unit) == units]
        title = f"Slowdown on {units[0]} (rows) beside a network on {units[1]} (columns):"
        yield Section(title, (_pairs(found.networks, rows),))
    yield from map(Sentence, _fits(found))
    yield from notes(found.warnings)


_WORDS = ("unit", "layers", "contention", "high in parts")
_FACTORS = ("slows the probe by", "is slowed by it by", "intensity", "sensitivity", "contention")


def _networks(found: Contention) -> Table:
    def row(name: str) -> tuple[str | None, ...]:
        factors = found.interference.of(name)
        return (
            name,
            _percent(found.caused(name)),
            _percent(found.suffered(name)),
            _factor(factors.intensity_permille),
            None if name in found.estimated else _factor(factors.sensitivity_permille),
            _class(high=found.interference.is_high(name)),
        )

    return matrix(
        "Networks", "network", _FACTORS, map(row, (*found.networks, *found.estimated)), words=_WORDS
    )


def _parts(found: Contention) -> Table:
    known = found.interference
    slices = {(entry.network, own.start): own for entry in known.networks for own in entry.slices}
    rows = []
    for part in found.parts:
        own = slices.get((part.network, part.start))
        factors: tuple[str | None, ...] = (None, None, None)
        if own is not None:
            high = known.is_high_intensity(own.intensity_permille)
            factors = (_factor(own.intensity_permille), _factor(own.sensitivity_permille), _class(high=high))
        beside = (_percent(found.caused(part.label)), _percent(found.suffered(part.label)))
        rows.append((part.network, f"{part.start}-{part.stop - 1}", *beside, *factors))
    return matrix("Parts", "network", ("layers", *_FACTORS), rows, words=_WORDS)


def _counted(found: Contention) -> Table:
    heads = ("instructions/cycle", "cache misses", "backend stalls", "predicted slowdown of the probe")
    rows = []
    for entry in found.counted:
        predicted = None if found.regression is None else found.regression.predict([entry.features.row])[0]
        features = entry.features
        rates = (f"{100 * features.miss_rate:.1f} %", f"{100 * features.stall_rate:.1f} %")
        counts = (f"{features.instructions_per_cycle:.2f}", *rates)
        rows.append((entry.network, entry.unit, *counts, _percent(predicted)))
    return matrix("Counters", "network", ("unit", *heads), rows, words=_WORDS)


def _pairs(networks: Sequence[str], rows: Sequence[CoRun]) -> Table:
    def cells(victim: str) -> tuple[str | None, ...]:
        beside = {one.aggressor: _pair(one) for one in rows if one.victim == victim}
        return (victim, *map(beside.get, networks))

    return matrix("Pairs", "", networks, map(cells, networks))


def _pair(one: CoRun) -> str:
    noise = "" if one.noise is None else f" ±{100 * one.noise:.1f}"
    return f"{100 * one.slowdown:.1f} %{noise}"


def _fits(found: Contention) -> Iterator[str]:
    fits = {"networks beside each other": found.pair_fit, "the probe beside networks": found.probe_fit}
    yield from (f"rank-one model from {what}: {_fit(fit)}" for what, fit in fits.items() if fit)
    if found.regression is not None:
        error = found.regression.error
        words = "too few networks to tell its error" if error is None else f"error {100 * error:.1f} %"
        yield f"ridge regression from counters, each network predicted by the others: {words}"


def _fit(fit: RankOne) -> str:
    explained = "" if fit.explained is None else f"explains {100 * fit.explained:.0f} % of the variance, "
    return f"{explained}mean error {100 * fit.mean_error:.1f} % of the time alone"


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:+.1f} %"


def _factor(permille: int) -> str:
    return f"{permille / 1000:.2f}"


def _class(*, high: bool) -> str:
    return "high" if high else "low"


def estimated_blocks(found: EstimatedContention, *, parts: bool) -> Iterator[Block]:
    """Yield what `gapless costs contention --platform` answers; `parts`: a line for each part, too."""
    weights = ", ".join(f"{weight:+.3f}" for weight in found.regression.weights)
    words = f": Eq. (1) in its {found.form} form, alpha {found.regression.alpha:g}, weights {weights}"
    yield Sentence(words, lead=found.platform)
    yield _estimates(found)
    yield Sentence(_ESTIMATED, Tone.SOFT)
    if parts:
        yield _estimated_parts(found)
    yield Sentence(f"estimated: {found.interference.provenance.notes}", Tone.SOFT)


def _estimates(found: EstimatedContention) -> Table:
    known = {each.network: each for each in found.interference.networks}

    def row(whole: EstimatedPart) -> tuple[str | None, ...]:
        factors = known.get(whole.network)
        high = whole.high if factors is None else found.interference.is_high(whole.network)
        taken: tuple[str | None, ...] = (None, None)
        if factors is not None:
            taken = (_factor(factors.intensity_permille), _factor(factors.sensitivity_permille))
        own = (whole.network, *_features(whole), f"{whole.intensity:.2f}")
        return (*own, *taken, _class(high=high), _worst(found, whole))

    heads = ("operations", "misses", "stalls", "Eq. (1)", "taken", "sensitivity", "contention")
    return matrix("Networks", "network", (*heads, "high in parts"), map(row, found.networks), words=_WORDS)


def _estimated_parts(found: EstimatedContention) -> Table:
    columns: list[Column[EstimatedPart]] = [
        Column("network", Unit.NAME, lambda part: part.network),
        Column("layers", Unit.TEXT, lambda part: layers_words(part.start, part.stop)),
        Column("first", Unit.NAME, lambda part: part.first),
        Column("time", Unit.MICROSECONDS, lambda part: part.time_us),
        Column("operations", Unit.COUNT, lambda part: _features(part)[0]),
        Column("misses", Unit.COUNT, lambda part: _features(part)[1]),
        Column("stalls", Unit.COUNT, lambda part: _features(part)[2]),
        Column("Eq. (1)", Unit.FACTOR, lambda part: part.intensity, digits=2),
        Column("contention", Unit.TEXT, lambda part: _class(high=part.high)),
    ]
    return table("Parts", columns, found.parts, most=len(found.parts))


def _features(part: EstimatedPart) -> tuple[str, str, str]:
    features = part.features
    return (
        f"{features.instructions_per_cycle:.2f}",
        f"{100 * features.miss_rate:.0f} %",
        f"{100 * features.stall_rate:.0f} %",
    )


def _worst(found: EstimatedContention, whole: EstimatedPart) -> str:
    own = [part for part in found.parts if part.network == whole.network]
    share = sum(part.time_us for part in own if part.high) / whole.time_us
    worst = max(own, key=lambda part: part.intensity)
    return f"{100 * share:.0f} %; {worst.first} {worst.intensity:.1f}"

"""Contention for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import size
from ...profiler.slowdown.contention.observations import CoRun
from ...profiler.slowdown.contention.rank_one import RankOne
from ...profiler.slowdown.contention.result import Contention
from ..layout import indented, notes_view, plain_table

_LEGEND = (
    "intensity, sensitivity: slowdown that a network causes and suffers, relative to a typical one of these; "
    "high, low: above the percentile of the intensities, or not. The probe takes all of the bandwidth, so "
    "what it does to a network tells little of what other networks do to it"
)


def contention_view(found: Contention) -> Group:
    """Return what `gapless costs contention` shows."""
    provenance = found.interference.provenance
    head = Text(", ".join(found.networks), style="bold")
    head.append(f": {provenance.method} in {found.seconds:.1f} s by {provenance.engine}", style="not bold")
    parts: list[RenderableType] = [head]
    if found.calibrations:
        parts += ["", Text("The memory probe alone:"), indented(_calibrations(found))]
    parts += ["", indented(_networks(found)), Text(_LEGEND, style="dim")]
    if found.parts:
        parts += ["", Text("Parts of networks beside the probe:"), indented(_parts(found))]
    if found.counted:
        parts += ["", Text("Performance counters:"), indented(_counted(found))]
    for units in dict.fromkeys((one.victim_unit, one.aggressor_unit) for one in found.pairs):
        rows = [one for one in found.pairs if (one.victim_unit, one.aggressor_unit) == units]
        title = f"Slowdown on {units[0]} (rows) beside a network on {units[1]} (columns):"
        parts += ["", Text(title), indented(_matrix(found.networks, rows))]
    parts += ["", *_fits(found), *notes_view(found.warnings)]
    return Group(*parts)


def _calibrations(found: Contention) -> RenderableType:
    numbers = ("bandwidth", "spread", "data")
    table = plain_table("unit", *numbers, numbers=numbers)
    for one in found.calibrations:
        table.add_row(
            one.unit,
            f"{one.bytes_per_s / 1e9:.1f} GB/s",
            f"{100 * one.spread:.1f} %",
            size(one.bytes_a_sweep),
        )
    return table


def _networks(found: Contention) -> RenderableType:
    numbers = ("slows the probe by", "is slowed by it by", "intensity", "sensitivity")
    table = plain_table("network", *numbers, "contention", numbers=numbers)
    for name in (*found.networks, *found.estimated):
        factors = found.interference.of(name)
        table.add_row(
            name,
            _percent(found.caused(name)),
            _percent(found.suffered(name)),
            f"{factors.intensity_permille / 1000:.2f}",
            "-" if name in found.estimated else f"{factors.sensitivity_permille / 1000:.2f}",
            "high" if found.interference.is_high(name) else "low",
        )
    return table


def _parts(found: Contention) -> RenderableType:
    numbers = ("slows the probe by", "is slowed by it by", "intensity", "sensitivity")
    table = plain_table("network", "layers", *numbers, "contention", numbers=numbers)
    known = found.interference
    slices = {(entry.network, own.start): own for entry in known.networks for own in entry.slices}
    for part in found.parts:
        own = slices.get((part.network, part.start))
        high = own is not None and known.is_high_intensity(own.intensity_permille)
        table.add_row(
            part.network,
            f"{part.start}-{part.stop - 1}",
            _percent(found.caused(part.label)),
            _percent(found.suffered(part.label)),
            "-" if own is None else f"{own.intensity_permille / 1000:.2f}",
            "-" if own is None else f"{own.sensitivity_permille / 1000:.2f}",
            "-" if own is None else "high" if high else "low",
        )
    return table


def _counted(found: Contention) -> RenderableType:
    numbers = ("instructions/cycle", "cache misses", "backend stalls", "predicted slowdown of the probe")
    table = plain_table("network", "unit", *numbers, numbers=numbers)
    for entry in found.counted:
        predicted = None if found.regression is None else found.regression.predict([entry.features.row])[0]
        table.add_row(
            entry.network,
            entry.unit,
            f"{entry.features.instructions_per_cycle:.2f}",
            f"{100 * entry.features.miss_rate:.1f} %",
            f"{100 * entry.features.stall_rate:.1f} %",
            _percent(predicted),
        )
    return table


def _matrix(networks: Sequence[str], rows: Sequence[CoRun]) -> RenderableType:
    table = plain_table("", *networks, numbers=networks)
    for victim in networks:
        cells = {one.aggressor: _cell(one) for one in rows if one.victim == victim}
        table.add_row(victim, *(cells.get(aggressor, "-") for aggressor in networks))
    return table


def _cell(one: CoRun) -> str:
    noise = "" if one.noise is None else f" ±{100 * one.noise:.1f}"
    return f"{100 * one.slowdown:.1f} %{noise}"


def _fits(found: Contention) -> list[Text]:
    fits = {"networks beside each other": found.pair_fit, "the probe beside networks": found.probe_fit}
    lines = [Text(f"rank-one model from {what}: {_fit(fit)}") for what, fit in fits.items() if fit]
    if found.regression is not None:
        error = found.regression.error
        words = "too few networks to tell its error" if error is None else f"error {100 * error:.1f} %"
        lines.append(Text(f"ridge regression from counters, each network predicted by the others: {words}"))
    return lines


def _fit(fit: RankOne) -> str:
    explained = "" if fit.explained is None else f"explains {100 * fit.explained:.0f} % of the variance, "
    return f"{explained}mean error {100 * fit.mean_error:.1f} % of the time alone"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:+.1f} %"

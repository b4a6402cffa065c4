"""Estimated contention for people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import millis
from ...profiler.platforms.phone_estimates import EstimatedContention, EstimatedPart
from ..layout import indented, plain_table

_LEGEND = (
    "Eq. (1): intensity predicted from the three features, by a ridge regression over the networks of Table "
    "II; taken: what plans are made with. Features are computed from the work of each layer, not counted. "
    "High in parts: share of the time in layers or parts of high intensity, and the one that presses most"
)


def estimated_contention_view(found: EstimatedContention, *, parts: bool) -> Group:
    """Return what `gapless costs contention --platform` shows; `parts`: a line for each part, too."""
    weights = ", ".join(f"{weight:+.3f}" for weight in found.regression.weights)
    head = Text(found.platform, style="bold")
    head.append(
        f": Eq. (1) in its {found.form} form, alpha {found.regression.alpha:g}, weights {weights}",
        style="not bold",
    )
    rows: list[RenderableType] = [head, "", indented(_networks(found)), Text(_LEGEND, style="dim")]
    rows += ["", indented(_parts(found))] if parts else []
    return Group(*rows, "", Text(f"estimated: {found.interference.provenance.notes}", style="dim"))


def _networks(found: EstimatedContention) -> RenderableType:
    numbers = ("operations", "misses", "stalls", "Eq. (1)", "taken", "sensitivity")
    table = plain_table("network", *numbers, "contention", "high in parts", numbers=numbers)
    known = {each.network: each for each in found.interference.networks}
    for whole in found.networks:
        factors = known.get(whole.network)
        high = whole.high if factors is None else found.interference.is_high(whole.network)
        table.add_row(
            whole.network,
            *_features(whole),
            f"{whole.intensity:.2f}",
            "-" if factors is None else f"{factors.intensity_permille / 1000:.2f}",
            "-" if factors is None else f"{factors.sensitivity_permille / 1000:.2f}",
            _class(high=high),
            _worst(found, whole),
        )
    return table


def _parts(found: EstimatedContention) -> RenderableType:
    numbers = ("time", "operations", "misses", "stalls", "Eq. (1)")
    table = plain_table("network", "layers", "first", *numbers, "contention", numbers=numbers)
    for part in found.parts:
        layers = str(part.start) if part.stop == part.start + 1 else f"{part.start}-{part.stop - 1}"
        table.add_row(
            part.network,
            layers,
            part.first,
            millis(round(part.time_us)),
            *_features(part),
            f"{part.intensity:.2f}",
            _class(high=part.high),
        )
    return table


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


def _class(*, high: bool) -> str:
    return "high" if high else "low"

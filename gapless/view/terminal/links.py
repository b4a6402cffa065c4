"""Links for the terminal: what was fitted, and how well it predicts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import size
from ...profiler.links.evaluation import FAR, Check, checks_by_size, checks_in_short
from ...profiler.links.fitting import LinkFit, Weight, fit_link
from ...profiler.links.samples import Links, Load, Purpose
from ..layout import indented, plain_table

_LOADS = {Load.IDLE: "alone", Load.LINK: "beside others on the link", Load.OTHERS: "while other devices send"}
_LEGEND = (
    "latency + bytes / speed is what a message takes alone; queue, own traffic, other traffic: what it takes "
    "more for each microsecond that the message before it waited, for each MB on the same link, and for "
    "each MB on all links on average. In brackets: 95 % of the fits to resampled messages"
)


def measured_view(found: Links) -> Group:
    """Return what a file of measured links says: they are fitted to be shown."""
    return links_view(found, [fit_link(one) for one in found.links])


def links_view(found: Links, fits: Sequence[LinkFit]) -> Group:
    """Return what `gapless device links` shows."""
    head = Text(found.name, style="bold").append(
        f": {found.source} in {found.seconds:.0f} s", style="not bold"
    )
    parts: list[RenderableType] = [head, "", indented(_fits(found, fits)), Text(_LEGEND, style="dim"), ""]
    parts += [Text("Errors of the prediction (fit), and of bandwidth alone (median, 90 % below):")]
    parts += [indented(_checks(checks_by_size(found, fits))), ""]
    parts += [Text("Messages that were not fitted, all sizes together:")]
    parts += [indented(_checks(checks_in_short(found, fits)))]
    sources = [Text(f"{one.name}: {one.source}", style="dim") for one in found.devices]
    return Group(*parts, "", *sources)


def _fits(found: Links, fits: Sequence[LinkFit]) -> RenderableType:
    numbers = ("speed", "latency", "queue", "own traffic", "other traffic", "clocks differ by")
    table = plain_table("from", "to", *numbers, numbers=numbers)
    for link, fit in zip(found.links, fits, strict=True):
        weights, planned = fit.weights, fit.link()
        table.add_row(
            fit.source,
            fit.target,
            f"{planned.bytes_per_second / 1e6:,.4g} MB/s",
            _weight(weights.e, 1, "us"),
            _weight(weights.w2, 1, ""),
            _weight(weights.w3, 1e3, "ms/MB"),
            _weight(weights.w4, 1e3, "ms/MB"),
            f"<= {link.clock_error_us:,.0f} us",
        )
    return table


def _weight(weight: Weight | None, factor: float, unit: str) -> str:
    if weight is None:
        return "-"
    value, low, high = (one * factor for one in (weight.value, weight.low, weight.high))
    return f"{value:,.3g} [{low:,.2g}, {high:,.2g}] {unit}".rstrip()


def _checks(checks: Sequence[Check]) -> RenderableType:
    numbers = ("bytes", "messages", "took", "fit", "bandwidth", f"fit > {FAR:.0%}", f"bandwidth > {FAR:.0%}")
    table = plain_table("sent", "what", *numbers, numbers=numbers)
    for one in checks:
        table.add_row(
            _LOADS[one.load],
            {Purpose.FIT: "fitted", Purpose.CHECK: "not fitted", Purpose.SHARD: "shard outputs"}[one.purpose],
            size(one.size),
            str(one.messages),
            f"{one.latency_us:,.0f} us",
            f"{one.fit.median:.1%}, {one.fit.p90:.1%}",
            f"{one.bandwidth.median:.1%}, {one.bandwidth.p90:.1%}",
            f"{one.fit.far:.0%}",
            f"{one.bandwidth.far:.0%}",
        )
    return table

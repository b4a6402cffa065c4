"""Kinds of plans of one network over one cluster, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...api.kinds import KINDS, KindResult
from ..layout import indented, plain_table
from ..presenter import presenter_of
from ..words import gap, millis, seconds, share, size

_COLUMNS = ("items/s", "more", "latency", "devices", "energy per item", "largest memory", "gap", "time")


def kinds_view(found: Sequence[KindResult]) -> Group:
    """Return what `gapless compare --kinds` shows: a line for each kind, and the plans."""
    first = next((one.problem for one in found if one.problem is not None), None)
    best = max((one.throughput or 0.0 for one in found), default=0.0)
    table = plain_table("kind", *_COLUMNS, numbers=_COLUMNS)
    for one in found:
        table.add_row(KINDS[one.kind], *(_cells(one, found[0]) or ("-",) * len(_COLUMNS)))
    parts: list[RenderableType] = []
    if first is not None:
        devices = len(first.platform.units)
        parts.append(Text(f"{first.network.name} over the {devices} devices of {first.platform.name}"))
    parts += ["", indented(table), ""]
    for one in found:
        parts += _lines(one, is_best=one.throughput == best > 0)
    words = (
        "more: items/s beyond those of the first kind; latency: one request from entry to exit, without "
        "waiting; energy per item: from the powers in the cluster file; gap: how far the plan may be from "
        "the best of its kind; time: of planning"
    )
    return Group(*parts, Text(words, style="dim"))


def _cells(one: KindResult, base: KindResult) -> tuple[str, ...] | None:
    if one.result is None or one.result.best is None or one.throughput is None:
        return None
    score = one.result.best.score
    more = one.throughput / base.throughput - 1 if base.throughput else None
    return (
        f"{one.throughput:,.3g}",
        "-" if more is None or one is base else f"{100 * more:+.1f} %",
        millis(score.value("latency")),
        str(score.value("devices")),
        f"{score.value('energy') / 1e6:,.0f} mJ" if score.value("energy") else "-",
        size(score.value("peak_memory")),
        gap(one.result.gap),
        seconds(one.seconds),
    )


def _lines(one: KindResult, *, is_best: bool) -> Iterator[RenderableType]:
    name = Text(KINDS[one.kind], style="bold green" if is_best else "bold")
    if one.problem is None or one.result is None:
        yield name.append(f": left out: {one.failure}", style="not bold yellow")
        return
    if one.result.best is None:
        yield name.append(f": {one.result.status}", style="not bold yellow")
        return
    plan = presenter_of(one.problem).plan_text(one.result.best.plan)
    yield name.append(f": {plan}", style="not bold default")
    found = getattr(one.problem.data, "over_graph", None)
    if found is not None:
        lost = share(found.given_pieces_us - found.period_us, found.period_us)
        yield Text(f"  its pieces lengthen the least period by {lost}", style="dim")

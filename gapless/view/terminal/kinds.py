"""Kinds of plans of one network side by side: over a cluster, and by the order of its layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import gap, millis, seconds, share, size, term_value
from ...api.branching import branching
from ...api.kinds import KINDS, KindResult
from ...api.layer_orders import OrderResult
from ...formulations.problem import Problem
from ...formulations.reordering import order_words
from ..layout import indented, plain_table
from ..presenter import presenter_of
from .models import branching_words

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


_ORDER_COLUMNS = ("objective", "bound", "gap", "as chunks", "as parts", "time")


def orders_view(given: Problem, found: Sequence[OrderResult]) -> Group:
    """Return what `gapless compare --layer-orders` shows: a line for each order, and the plans."""
    table = plain_table("order", *_ORDER_COLUMNS, numbers=_ORDER_COLUMNS)
    for one in found:
        table.add_row(one.order, *_order_cells(one))
    head = Text(f"{given.network.name}: {branching_words(branching(given))}")
    words = (
        "objective, bound, gap: of what plans of this order can be, by their own costs; as chunks: the "
        "period of the plan where all that is alive at a boundary is copied; as parts: where each part "
        "copies what it touches. Compare within one of these two columns."
    )
    lines = [*map(_order_line, found), *_worth(found)]
    return Group(head, "", indented(table), "", *lines, Text(words, style="dim"))


def _order_cells(one: OrderResult) -> tuple[str, ...]:
    if one.problem is None or one.result is None or one.result.best is None:
        return ("-",) * len(_ORDER_COLUMNS)
    terms, first = one.problem.formulation.terms, one.problem.objective.terms[0]
    return (
        *(term_value(terms, first, value) for value in (one.result.objective, one.result.bound)),
        gap(one.result.gap),
        *("-" if value is None else millis(value) for value in (one.chunks_us, one.parts_us)),
        seconds(one.seconds),
    )


def _order_line(one: OrderResult) -> Text:
    line = Text(one.order, style="bold")
    if one.problem is None or one.result is None:
        return line.append(f": left out: {one.failure}", style="not bold yellow")
    if one.plan is None:
        return line.append(f": {one.result.status}", style="not bold yellow")
    order = one.problem.network.order
    moved = f" in the order {order_words(order)}" if order else ""
    plan = presenter_of(one.problem).plan_text(one.plan)
    return line.append(f": {plan}{moved}", style="not bold default")


def _worth(found: Sequence[OrderResult]) -> Iterator[Text]:
    """Yield how much longer or shorter the period is than in the given order, in words."""
    fixed = next((one for one in found if one.order == "fixed"), None)
    for one in found:
        if fixed is None or one is fixed:
            continue
        pairs = {"chunks": (one.chunks_us, fixed.chunks_us), "parts": (one.parts_us, fixed.parts_us)}
        changes = [
            f"{100 * (new / old - 1):+.1f} % as {what}" for what, (new, old) in pairs.items() if new and old
        ]
        if changes:
            yield Text(f"{one.order} against fixed: {', '.join(changes)}", style="bold")

"""Sweeps for people: which platform is best, what one more device brings, who proves what, what failed."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.sweeps import (
    BACKEND_COLUMNS,
    amount_words,
    backend_cells,
    class_words,
    gain_words,
    price_words,
    topic_words,
)
from ...answers.words import share
from ...sweeps.findings import FAILED, Contest, Growth, contests, disagreements, growths, records
from ...sweeps.run import SweepResult
from ...sweeps.spec import Sweep
from ..layout import indented, plain_table

_MOST = 6
"""Tables of one kind; the page has all."""

_MOST_FAILED = 10


def sweep_view(found: SweepResult) -> RenderableType:
    """Return what `gapless sweep` shows."""
    done, failed = len(found.rows), len(found.failed)
    title = Text(f"{done:,} of {found.total:,} plans", style="bold")
    words = [
        f"{found.resumed:,} of them from before" if found.resumed else "",
        f"{failed} failed" if failed else "",
    ]
    title.append("".join(f"; {each}" for each in words if each), style="not bold")
    parts: list[RenderableType] = [title]
    for name, tables in (
        ("Which platform", [_contest(one, found.sweep.currency) for one in contests(found.rows)]),
        ("What one more device brings", [_growth(one) for one in growths(found.rows)]),
    ):
        parts += ["", Text(name, style="bold"), *tables[:_MOST]] if tables else []
        if len(tables) > _MOST:
            parts.append(Text(f"  ... and {len(tables) - _MOST} more tables: see the page"))
    if any(row.backend for row in found.rows):
        classes = class_words(found.rows)
        parts += ["", Text("Who proves what", style="bold"), indented(_backends(found))]
        parts += [Text(classes, style="dim")] if classes else []
    parts += [Text(f"contradiction: {text}", style="bold red") for text in disagreements(found.rows)]
    return Group(*parts, *_failures(found))


def spec_view(sweep: Sweep) -> RenderableType:
    """Return what a sweep file asks for: the names on each of its axes."""
    table = plain_table("what", "number", "names", numbers=("number",))
    axes = {
        "models": [one if isinstance(one, str) else one.name for one in sweep.models],
        "platforms": [one if isinstance(one, str) else one.name for one in sweep.platforms],
        "problems": [one if isinstance(one, str) else " ".join(one.values()) for one in sweep.problems],
        "objectives": [text or "usual" for text in sweep.objectives],
        "limits": [one.words or "none" for one in sweep.limits],
        "backends": [name or "usual" for name in sweep.backends],
    }
    for axis, names in axes.items():
        if names:
            table.add_row(axis, f"{len(names):,}", ", ".join(names))
    return Group(Text(sweep.title or "Sweep", style="bold"), indented(table))


def _contest(contest: Contest, currency: str) -> RenderableType:
    priced = any(one.for_price is not None for one in contest.standings)
    heads = [
        "platform",
        "devices",
        "reached",
        "of the best",
        *(["price", "for its price"] if priced else []),
        "status",
    ]
    table = plain_table(*heads, numbers=("reached", "of the best", "price", "for its price"))
    for one in contest.standings:
        row = one.row
        price = [price_words(row.price, currency), "-" if one.for_price is None else share(one.for_price, 1)]
        table.add_row(
            row.platform,
            row.devices or f"{row.available} units",
            amount_words(contest.topic, row),
            share(one.share, 1),
            *(price if priced else []),
            row.status,
        )
    return indented(Group(Text(topic_words(contest.topic)), table))


def _growth(growth: Growth) -> RenderableType:
    table = plain_table(
        "number", "devices", "reached", "more", "status", numbers=("number", "reached", "more")
    )
    for stage in growth.stages:
        row = stage.row
        reached = amount_words(growth.topic, row)
        table.add_row(str(row.available), row.devices or "-", reached, gain_words(stage.gain), row.status)
    return indented(Group(Text(f"{growth.platform}: {topic_words(growth.topic)}"), table))


def _backends(found: SweepResult) -> RenderableType:
    table = plain_table(*BACKEND_COLUMNS, numbers=BACKEND_COLUMNS[1:])
    for record in records(found.rows):
        table.add_row(*backend_cells(record))
    return table


def _failures(found: SweepResult) -> Iterator[RenderableType]:
    if not found.failed:
        return
    yield Text(f"\n{FAILED}", style="bold red")
    for row in found.failed[:_MOST_FAILED]:
        yield Text(f"  task {row.task}, {row.model} on {row.platform or '?'}: {row.error}")
    if len(found.failed) > _MOST_FAILED:
        yield Text(f"  ... and {len(found.failed) - _MOST_FAILED} more: see the table")

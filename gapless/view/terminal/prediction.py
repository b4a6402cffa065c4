"""How well cost models foretell executed plans, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...executor.tuning.statistics import PredictionQuality
from ...profiler.prediction.corrections import Corrections
from ...profiler.prediction.evaluation import ALL, MULTI, SCOPES, Evaluated, Evaluation, Fit, plans_of
from ...profiler.prediction.executions import Executions
from ..layout import plain_table
from ..words import capital

_TOPS_SHOWN = (1, 5)
"""Numbers of plans that a table of qualities speaks of; JSON has all."""

Row = tuple[str, int | None, PredictionQuality]
"""What was learned, from how many plans, and how good it is."""

_LEGEND = Text(
    "learned: corrections, from so many other plans; top 1, top 5: by how much the best of so many plans "
    "with the least prediction is slower than the fastest of all (--json has more); half of the runs, same "
    "chunks in other plans: how well executions foretell each other, which no cost model can do much better",
    style="dim",
)


def prediction_view(executions: Executions, found: Evaluation) -> RenderableType:
    """Return what `gapless predict` shows of one file."""
    methods = ", ".join(table.provenance.method for table in executions.tables)
    head = Text(executions.network.name, style="bold")
    head.append(
        f" on {executions.platform.name}: {len(executions.executed)} plans, "
        f"{len(executions.network.layers)} layers, units {', '.join(executions.platform.unit_names)}; "
        f"tables {methods}",
        style="not bold",
    )
    return Group(head, *_tables(executions, found), "", _LEGEND, "", Text(_conclusion(found), style="bold"))


def _conclusion(found: Evaluation) -> str:
    """Return which costs to plan with."""
    known = [
        (one.quality.mape_percent, number, one)
        for number, one in enumerate(found.left_out)
        if one.quality.scope == ALL and one.quality.mape_percent is not None
    ]
    if not known:
        return "Too few plans to say which costs foretell them: `gapless tune` executes more."
    off, _, best = min(known)
    costs = f"{best.quality.table} costs"
    if best.fit is Fit.NONE:
        return f"{capital(costs)} foretell these plans best, {off:.1f} % off on average: plan with them."
    return (
        f"{capital(costs)} foretell these plans best with corrections of {best.fit}, {off:.1f} % off on "
        f"average: --costs {best.quality.table} --out FILE writes a problem with them."
    )


def _tables(executions: Executions, found: Evaluation) -> Iterator[RenderableType]:
    several = plans_of(executions, MULTI)
    for scope in SCOPES:
        if scope == ALL and len(several) == len(executions.executed):
            continue
        rows = [_row(one) for one in found.left_out if one.quality.scope == scope]
        rows += [("", None, one) for one in found.floor if one.scope == scope]
        if rows:
            yield quality_table(f"{scope}; leave one out", rows)
    if found.curve:
        title = "learned from a few plans of several chunks, judged by the others"
        yield quality_table(title, map(_row, found.curve))


def _row(one: Evaluated) -> Row:
    return str(one.fit), one.learned_from, one.quality


def quality_table(title: str, rows: Iterable[Row]) -> Table:
    """Return a table of qualities with a title above it."""
    numbers = ("from", "plans", "Spearman", "MAPE", *(f"top {k}" for k in _TOPS_SHOWN))
    table = plain_table("cost model", "learned", *numbers, numbers=numbers)
    table.title, table.title_justify = f"\n{title}", "left"
    for learned, count, found in rows:
        regrets = dict(found.regret_percent)
        table.add_row(
            found.table,
            learned,
            "" if count is None else str(count),
            str(found.plans),
            "-" if found.spearman is None else f"{found.spearman:.3f}",
            "-" if found.mape_percent is None else f"{found.mape_percent:.1f} %",
            *(f"+{regrets[k]:.1f} %" if k in regrets else "-" for k in _TOPS_SHOWN),
        )
    return table


def corrections_view(executions: Executions, learned: Corrections) -> RenderableType:
    """Return the corrections that were learned: one row a unit."""
    table = plain_table("unit", "factor", "layers", numbers=("factor",))
    table.title, table.title_justify = "\nlearned from all plans", "left"
    for column, (unit, factor) in enumerate(
        zip(executions.platform.unit_names, learned.unit_factor, strict=True)
    ):
        layers = [row[column] for row in learned.layer_factor]
        table.add_row(unit, f"{factor:.3f}", f"{min(layers):.2f} to {max(layers):.2f}")
    return table

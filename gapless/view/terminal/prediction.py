"""How well cost models foretell executed plans, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...answers.words import interval_words, microseconds
from ...executor.tuning.statistics import PredictionQuality
from ...formulations.co_run import LEARNED
from ...profiler.prediction.corrections import Corrections
from ...profiler.prediction.evaluation import ALL, MULTI, SCOPES, Evaluated, Evaluation, Fit, plans_of
from ...profiler.prediction.executions import Executions
from ...profiler.prediction.learned import Lessons
from ..layout import plain_table

_TOPS_SHOWN = (1, 5)
"""Numbers of plans that a table of qualities speaks of; JSON has all."""

_NO_BETTER = 0.5
"""Points of mean error by which what was learned must be better than a table as it is to be trusted."""

_MOST_PLANS = 10
"""Most plans that are shown with their intervals; JSON has all."""

Row = tuple[str, int | None, PredictionQuality]
"""What was learned, from how many plans, and how good it is."""

_LEGEND = Text(
    "learned: corrections, from so many other plans; top 1, top 5: by how much the best of so many plans "
    "with the least prediction is slower than the fastest of all, where one fit predicts all of them "
    "(--json has more); half of the runs, same chunks in other plans: how well executions foretell each "
    "other, which no cost model can do much better",
    style="dim",
)


def prediction_view(executions: Executions, found: Evaluation) -> RenderableType:
    """Return what `gapless costs judge` shows of one file."""
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
    """Return in a sentence which costs to trust, and why."""
    known = [
        (one.quality.mape_percent, number, one)
        for number, one in enumerate(found.left_out)
        if one.quality.scope == ALL and one.quality.mape_percent is not None and one.fit is not Fit.OWN
    ]
    if not known:
        return "Too few plans to say which costs foretell them: `gapless tune` executes more."
    plain = [entry for entry in known if entry[2].fit is Fit.NONE]
    off, _, best = min(known)
    if plain and min(plain)[0] <= off + _NO_BETTER:
        off, _, best = min(plain)  # what nothing has to be learned for is as good
    model = best.quality.table
    why = f"plans that they knew nothing of took {off:.1f} % more or less on average"
    if best.fit is not Fit.NONE and plain:
        other_off, _, other = min(plain)
        why += f" ({other.quality.table} as measured: {other_off:.1f} %)"
    if best.covered_percent is not None:
        why += f", and {best.covered_percent:.0f} % of them lay within intervals meant for 90 %"
    if best.fit is Fit.NONE:
        return f"Trust {model} costs: {why}; plan with them."
    costs = f"{model} costs" if model == LEARNED else f"{model} costs with corrections of {best.fit}"
    return f"Trust {costs}: {why}; --costs {model} --out FILE writes a problem with them."


def _foretold(found: Evaluation) -> Table:
    """Return the fastest plans with what the learned model foretells of them."""
    table = plain_table(
        "plan", "measured", "foretold", "90 % within", numbers=("measured", "foretold", "90 % within")
    )
    table.title, table.title_justify = "\nfastest plans, foretold from all others by learned costs", "left"
    for one in found.foretold[:_MOST_PLANS]:
        told = one.foretold
        table.add_row(
            one.plan,
            microseconds(one.measured_us),
            microseconds(told.period_us),
            interval_words(told.low_us, told.high_us),
        )
    return table


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
        title = "learned from the first plans of several chunks that tuning measures, judged by the others"
        yield quality_table(title, map(_row, found.curve))
    if found.foretold:
        yield _foretold(found)


def _row(one: Evaluated) -> Row:
    learned = str(one.fit) if one.order is None else f"{one.fit}; {one.order}"
    return learned, one.learned_from, one.quality


def quality_table(title: str, rows: Iterable[Row]) -> Table:
    """Return a table of qualities with a title above it."""
    numbers = ("from", "plans", "Pearson", "Spearman", "MAPE", *(f"top {k}" for k in _TOPS_SHOWN))
    table = plain_table("cost model", "learned", *numbers, numbers=numbers)
    table.title, table.title_justify = f"\n{title}", "left"
    for learned, count, found in rows:
        regrets = dict(found.regret_percent)
        table.add_row(
            found.table,
            learned,
            "" if count is None else str(count),
            str(found.plans),
            "-" if found.pearson is None else f"{found.pearson:.3f}",
            "-" if found.spearman is None else f"{found.spearman:.3f}",
            "-" if found.mape_percent is None else f"{found.mape_percent:.1f} %",
            *(f"+{regrets[k]:.1f} %" if k in regrets else "-" for k in _TOPS_SHOWN),
        )
    return table


def lessons_view(executions: Executions, learned: Corrections | Lessons) -> RenderableType:
    """Return what was learned."""
    if isinstance(learned, Corrections):
        return _corrections_view(executions, learned)
    table = plain_table("unit", "beside", "load", "factor", "layers", numbers=("load", "factor"))
    table.title, table.title_justify = f"\nlearned from {learned.basis}", "left"
    names = executions.platform.unit_names
    for one in learned.companies:
        layers = [row[names.index(one.unit)] for row in learned.layer_factor]
        spread = f"{min(layers):.2f} to {max(layers):.2f}"
        table.add_row(
            one.unit, ", ".join(one.beside) or "-", f"{one.loaded:.2f}", f"{one.factor:.3f}", spread
        )
    note = Text(
        "load: from isolated times (0) to heavy ones (1); factor: what is left beyond that; layers: how much "
        "single layers differ on top of both",
        style="dim",
    )
    return Group(table, "", note)


def _corrections_view(executions: Executions, learned: Corrections) -> RenderableType:
    """Return the corrections that were learned: one row a unit."""
    table = plain_table("unit", "factor", "layers", numbers=("factor",))
    table.title, table.title_justify = "\nlearned from all plans", "left"
    for column, (unit, factor) in enumerate(
        zip(executions.platform.unit_names, learned.unit_factor, strict=True)
    ):
        layers = [row[column] for row in learned.layer_factor]
        table.add_row(unit, f"{factor:.3f}", f"{min(layers):.2f} to {max(layers):.2f}")
    return table

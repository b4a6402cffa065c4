"""What a server did, for people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import counted, microseconds, percent, size
from ...executor.coordination.tally import Fate, Statistics
from ..layout import indented, plain_table


def served_view(found: Statistics) -> RenderableType:
    """Return what `gapless serve` shows in the end."""
    total = sum(found.total(fate) for fate in Fate)
    title = Text(counted(total, "request"), style="bold")
    decided = "" if found.decision_us is None else f", {found.decision_us:.0f} us a decision in the median"
    title.append(f" in {found.seconds:.0f} s; {counted(found.decisions, 'chunk')}{decided}", style="not bold")
    numbers = [*map(str, Fate), "p50", "p90", "p99"]
    models = plain_table("model", *numbers, numbers=numbers)
    for model in found.models:
        times = (model.p50_us, model.p90_us, model.p99_us)
        models.add_row(model.name, *(str(model.fates[fate]) for fate in Fate), *map(microseconds, times))
    columns = ["chunks", "busy", "restarts", "memory"]
    units = plain_table("unit", *columns, numbers=columns)
    for unit in found.units:
        busy = percent(round(unit.busy_us / (1000 * found.seconds)))
        units.add_row(unit.name, str(unit.chunks), busy, str(unit.restarts), size(unit.rss_bytes))
    return Group(title, "", indented(models), "", indented(units))

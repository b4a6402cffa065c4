"""What a server did."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..executor.coordination.tally import Fate, ModelCounts, Statistics, UnitCounts
from .blocks import Block, Column, Sentence, Unit, table
from .words import counted


def served_blocks(found: Statistics) -> Iterator[Block]:
    """Yield what `gapless serve` answers in the end."""
    decided = "" if found.decision_us is None else f", {found.decision_us:.0f} us a decision in the median"
    words = f" in {found.seconds:.0f} s; {counted(found.decisions, 'chunk')}{decided}"
    yield Sentence(words, lead=counted(sum(found.total(fate) for fate in Fate), "request"))

    def counts(fate: Fate) -> Callable[[ModelCounts], int]:
        return lambda model: model.fates[fate]

    models: list[Column[ModelCounts]] = [
        Column("model", Unit.NAME, lambda model: model.name),
        *(Column(fate, Unit.COUNT, counts(fate)) for fate in Fate),
        Column("p50", Unit.MEASURED, lambda model: model.p50_us),
        Column("p90", Unit.MEASURED, lambda model: model.p90_us),
        Column("p99", Unit.MEASURED, lambda model: model.p99_us),
    ]
    yield table("Models", models, found.models, most=len(found.models))
    units: list[Column[UnitCounts]] = [
        Column("unit", Unit.NAME, lambda unit: unit.name),
        Column("chunks", Unit.COUNT, lambda unit: unit.chunks),
        Column("busy", Unit.SHARE, lambda unit: unit.busy_us / (1e6 * found.seconds)),
        Column("restarts", Unit.COUNT, lambda unit: unit.restarts),
        Column("memory", Unit.BYTES, lambda unit: unit.rss_bytes),
    ]
    yield table("Units", units, found.units)

"""Interference: how much longer, or less, layers take while other units are busy, as heat maps of ratios."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import median

from ..profiler.slowdown.interference.paper import PRINTED, REMARKS
from ..profiler.slowdown.interference.ratios import HeatMap as Ratios
from ..profiler.slowdown.interference.ratios import InterferenceRatios, PlanInterference, heat_maps
from ..profiler.slowdown.turns import CoRunRatio
from .blocks import Block, Cell, Column, Section, Sentence, Table, Tone, Unit, Value, grid, notes, table
from .charts import HeatCell, HeatMap, HeatRow

NEAR = 0.05
"""Distance from 1 up to which a ratio counts as neither slower nor faster."""

_PRINTED = "paper"
_RATIO = "time beside load over time alone"


def interference_blocks(found: InterferenceRatios) -> Iterator[Block]:
    """Yield what `gapless costs interference` answers."""
    provenance = found.provenance
    how = f" in {found.seconds:.1f} s by {provenance.engine}" if found.options else ""
    yield Sentence(f": {_RATIO}; {provenance.method}{how}", lead=found.platform.name)
    for ratios in heat_maps(found):
        yield Section(f"{ratios.title}:", (ratio_map(ratios, _printed(found, ratios)),))
    for plan in found.plans:
        yield Section(f"plan [{plan.plan}]:", (_chunks(plan), _periods(plan)))
    yield Sentence("")
    yield from (Sentence(note, Tone.SOFT) for note in _notes(found))
    yield from notes(found.warnings)


def picture_notes(found: InterferenceRatios) -> list[str]:
    """Return what stands below a picture of the heat maps."""
    provenance = found.provenance
    how = (provenance.method, provenance.source, provenance.engine, provenance.taken_at)
    return [_legend(found), "; ".join(filter(None, how))]


def ratio_map(given: Ratios, printed: Mapping[str, float] | None = None) -> HeatMap:
    """Return ratios as a heat map: twice as slow or fast is as red or green as it gets.

    `printed`: of each row what a paper prints, in a column of its own without colours.
    """

    def cell(row: str, column: str, ratio: float | None) -> HeatCell:
        if ratio is None:
            return HeatCell(text="", level=None)
        level = min(max((math.log2(ratio) + 1) / 2, 0.0), 1.0)
        about = f"{row}, {column}: {ratio:.3f}"
        return HeatCell(text=f"{ratio:.2f}", level=level, about=about, mark=sign(ratio))

    def paper(row: str) -> tuple[HeatCell, ...]:
        text = f"{printed[row]:.2f}" if printed and row in printed else ""
        return (HeatCell(text=text, level=None),) if printed else ()

    return HeatMap(
        title=given.title,
        columns=(*given.columns, *((_PRINTED,) if printed else ())),
        rows=tuple(
            HeatRow(
                name=row,
                cells=(*(cell(row, *one) for one in zip(given.columns, cells, strict=True)), *paper(row)),
            )
            for row, cells in zip(given.rows, given.cells, strict=True)
        ),
        low="half the time alone",
        high="double",
    )


def sign(ratio: float) -> str:
    """Return what tells slower (+) from faster (-) without colours."""
    return "+" if ratio > 1 + NEAR else "-" if ratio < 1 - NEAR else "="


def _legend(found: InterferenceRatios) -> str:
    what = "groups of layers" if found.options else "layers"
    return f"mean over the {what} of {_RATIO}; red: slower, green: faster, yellow: hardly different"


def _notes(found: InterferenceRatios) -> list[str]:
    notes = []
    if found.ratios:
        notes.append(
            f"{_legend(found)}; + slower by more than {100 * NEAR:.0f} %, - faster by more than that, "
            "= neither"
        )
    if found.plans:
        notes.append(
            "rest: the other chunks of the plan, in a loop on their units without pauses; "
            "predicted: the largest load, of all chunks of a unit"
        )
    if any(_printed(found, heat_map) for heat_map in heat_maps(found)):
        remark = REMARKS.get(found.platform.name)
        notes += [
            "computed by gapless from the tables that the authors published, not taken from the paper; "
            f'column "{_PRINTED}": what Section V-C of BetterTogether prints for all networks together'
            + (f". Note that {remark}" if remark else "")
        ]
    source = found.provenance.source
    return [*notes, *([f"source: {source}"] if source and not found.options else [])]


def _printed(found: InterferenceRatios, heat_map: Ratios) -> dict[str, float]:
    """Return what the paper prints, beside a map of all networks of one of its devices."""
    whole = found.options is None and len(heat_map.columns) > 1
    return dict(PRINTED.get(found.platform.name, {})) if whole else {}


def _chunks(plan: PlanInterference) -> Table:
    tones = {"+": Tone.BAD, "-": Tone.GOOD, "=": Tone.WARN}
    columns: list[Column[CoRunRatio]] = [
        Column("layers", Unit.TEXT, lambda one: f"{one.chunk.start}-{one.chunk.stop - 1}"),
        Column("unit", Unit.NAME, lambda one: one.chunk.unit),
        Column("alone", Unit.MEASURED, lambda one: median(one.alone_us)),
        Column("beside the rest", Unit.MEASURED, lambda one: median(one.beside_us)),
        Column(
            "ratio",
            Unit.COUNT,
            lambda one: Cell(f"{one.ratio:.2f} {sign(one.ratio)}", tones[sign(one.ratio)]),
        ),
    ]
    return table("Chunks", columns, plan.chunks)


def _periods(plan: PlanInterference) -> Table:
    def row(by: str, period_us: float) -> tuple[Value, ...]:
        return by, period_us, None if plan.period_us is None else period_us / plan.period_us - 1

    heads = [("predicted by", Unit.NAME), ("period", Unit.MEASURED)]
    rows: list[tuple[Value, ...]] = [row(one.by, one.period_us) for one in plan.periods]
    if plan.period_us is not None:
        heads.append(("against the run", Unit.CHANGE))
        rows.append(("measured run", plan.period_us, ""))
    return grid("Periods", heads, (cells[: len(heads)] for cells in rows))

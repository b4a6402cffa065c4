"""Interference for people."""

from __future__ import annotations

from statistics import median

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...answers.blocks import notes
from ...answers.words import microseconds
from ...profiler.slowdown.interference.paper import PRINTED, REMARKS
from ...profiler.slowdown.interference.ratios import HeatMap, InterferenceRatios, PlanInterference, heat_maps
from ..layout import indented, plain_table
from .blocks import sentence_view
from .heat_map import NEAR, heat_map_svg, heat_table, shade, sign

_PRINTED = "paper"
_RATIO = "time beside load over time alone"


def interference_view(found: InterferenceRatios) -> Group:
    """Return what `gapless costs interference` shows."""
    parts: list[RenderableType] = [_head(found)]
    for heat_map in heat_maps(found):
        printed = _printed(found, heat_map)
        extra = {_PRINTED: printed} if printed else {}
        parts += ["", Text(f"{heat_map.title}:"), indented(heat_table(heat_map, extra=extra))]
    for plan in found.plans:
        parts += ["", Text(f"plan [{plan.plan}]:"), indented(_chunks(plan)), indented(_periods(plan))]
    parts += [
        "",
        *(Text(note, style="dim") for note in _notes(found)),
        *map(sentence_view, notes(found.warnings)),
    ]
    return Group(*parts)


def interference_svg(found: InterferenceRatios) -> str:
    """Return the heat maps as a picture; there must be ratios."""
    provenance = found.provenance
    how = (provenance.method, provenance.source, provenance.engine, provenance.taken_at)
    return heat_map_svg(heat_maps(found), [_legend(found), "; ".join(filter(None, how))])


def _head(found: InterferenceRatios) -> Text:
    provenance = found.provenance
    head = Text(found.platform.name, style="bold")
    how = f" in {found.seconds:.1f} s by {provenance.engine}" if found.options else ""
    return head.append(f": {_RATIO}; {provenance.method}{how}", style="not bold")


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
            "foretold: the largest load, of all chunks of a unit"
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


def _printed(found: InterferenceRatios, heat_map: HeatMap) -> dict[str, float]:
    """Return what the paper prints, beside a map of all networks of one of its devices."""
    whole = found.options is None and len(heat_map.columns) > 1
    return dict(PRINTED.get(found.platform.name, {})) if whole else {}


def _chunks(plan: PlanInterference) -> Table:
    numbers = ("alone", "beside the rest", "ratio")
    table = plain_table("layers", "unit", *numbers, numbers=numbers)
    for one in plan.chunks:
        table.add_row(
            f"{one.chunk.start}-{one.chunk.stop - 1}",
            one.chunk.unit,
            microseconds(median(one.alone_us)),
            microseconds(median(one.beside_us)),
            Text(f" {one.ratio:.2f} {sign(one.ratio)} ", style=f"black on {shade(one.ratio)}"),
        )
    return table


def _periods(plan: PlanInterference) -> Table:
    columns = ("period", "against the run") if plan.period_us else ("period",)
    table = plain_table("foretold by", *columns, numbers=columns)
    for one in plan.foretold:
        against = [] if plan.period_us is None else [f"{100 * (one.period_us / plan.period_us - 1):+.1f} %"]
        table.add_row(one.by, microseconds(one.period_us), *against)
    if plan.period_us is not None:
        table.add_row(Text("measured run", style="bold"), microseconds(plan.period_us), "")
    return table

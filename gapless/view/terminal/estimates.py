"""Described devices, trained predictors and judged predictions, for people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import millis, term_name, term_value
from ...api.estimates import PredictionJudged
from ...formulations.problem import Problem
from ...profiler.learned.device import DeviceDescription
from ...profiler.learned.predictors import PredictorCard
from ..layout import plain_table

_WEIGHTS = ("conv. GMAC", "depthw. GMAC", "product GMAC", "moved MB", "weights MB", "operator", "session")
_SCALES = (1e6, 1e6, 1e6, 1e3, 1e3, 1e-3, 1e-3)
"""From microseconds for a MAC, a byte, an operator or a session to milliseconds for what the header says."""


def device_view(found: DeviceDescription) -> RenderableType:
    """Return what `gapless device describe` shows: the embeddings in milliseconds."""
    head = Text(found.platform.name, style="bold")
    head.append(
        f": {len(found.networks)} networks by {found.engine}, milliseconds for each", style="not bold"
    )
    table = plain_table("unit", *_WEIGHTS, "error", numbers=(*_WEIGHTS, "error"))
    for unit in found.platform.unit_names:
        one = found.embedding(unit)
        weights = (f"{weight * scale:.3g}" for weight, scale in zip(one.weights, _SCALES, strict=True))
        name = f"{unit} (emulated)" if found.unit(unit).emulated else unit
        table.add_row(Text(name, style="bold"), *weights, f"{one.error:.0%}")
    legend = (
        "error: mean relative error of this regression over what was measured; predictors correct it by layer"
    )
    return Group(head, "", table, "", Text(legend, style="dim"))


def card_view(card: PredictorCard) -> RenderableType:
    """Return what `gapless costs learn` shows: errors on what was held out."""
    head = Text(f"{len(card.networks)} networks on {len(card.devices)} device types: ", style="bold")
    head.append(f"{card.shards} shards, {card.layers} layers, {card.seconds:g} s", style="not bold")
    numbers = ("median", "p90", "above 20 %", "of")
    table = plain_table("predictor", "held out", "errors of", *numbers, numbers=numbers)
    for row in card.errors:
        style = "bold" if row.method == card.default else ""
        table.add_row(
            Text(row.method, style=style),
            row.split,
            row.what,
            f"{row.median:.1%}",
            f"{row.p90:.1%}",
            f"{row.above_20:.0%}",
            str(row.count),
        )
    return Group(head, "", table, "", Text(f"used unless another is asked for: {card.default}", style="bold"))


def judged_view(problem: Problem, judged: PredictionJudged) -> RenderableType:
    """Return how far predicted costs are from measured ones, and what plans made on them lose."""
    numbers = ("predicted", "measured", "error", "layers, median", "layers, p90")
    table = plain_table("unit", *numbers, numbers=numbers)
    for one in judged.units:
        table.add_row(
            Text(one.unit, style="bold"),
            millis(one.predicted_us),
            millis(one.measured_us),
            f"{one.error:+.1%}",
            f"{one.median:.1%}",
            f"{one.p90:.1%}",
        )
    terms, term = problem.formulation.terms, problem.objective.terms[0]
    on_predicted, on_measured = (
        term_value(terms, term, value) for value in (judged.planned_on_predicted, judged.planned_on_measured)
    )
    words = (
        f"{term_name(terms, term)} by the measured costs: {on_predicted} for the plan made on predicted "
        f"costs, {on_measured} for the plan made on measured ones: it loses {judged.loss:.1%}"
    )
    return Group(Text("against measured costs", style="bold"), "", table, "", Text(words))

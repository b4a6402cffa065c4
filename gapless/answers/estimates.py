"""Described devices, trained predictors and judged predictions."""

from __future__ import annotations

from collections.abc import Iterator

from ..api.estimates import PredictionJudged
from ..formulations.problem import Problem
from ..profiler.learned.device import DeviceDescription
from ..profiler.learned.predictors import ErrorRow, PredictorCard
from ..profiler.learned.tables import UnitError
from .blocks import Block, Column, Section, Sentence, Tone, Unit, matrix, table
from .words import term_name, term_value

_WEIGHTS = ("conv. GMAC", "depthw. GMAC", "product GMAC", "moved MB", "weights MB", "operator", "session")
_SCALES = (1e6, 1e6, 1e6, 1e3, 1e3, 1e-3, 1e-3)
"""From microseconds for a MAC, a byte, an operator or a session to milliseconds for what the header says."""


def device_blocks(found: DeviceDescription) -> Iterator[Block]:
    """Yield what `gapless device describe` answers: the embeddings in milliseconds."""
    yield Sentence(
        f": {len(found.networks)} networks by {found.engine}, milliseconds for each", lead=found.platform.name
    )

    def row(unit: str) -> tuple[str, ...]:
        one = found.embedding(unit)
        weights = (f"{weight * scale:.3g}" for weight, scale in zip(one.weights, _SCALES, strict=True))
        name = f"{unit} (emulated)" if found.unit(unit).emulated else unit
        return name, *weights, f"{one.error:.0%}"

    yield matrix("Units", "unit", (*_WEIGHTS, "error"), map(row, found.platform.unit_names))
    yield Sentence(
        "error: mean relative error of this regression over what was measured; predictors correct it by "
        "layer",
        Tone.SOFT,
    )


def card_blocks(card: PredictorCard) -> Iterator[Block]:
    """Yield what `gapless costs learn` answers: errors on what was held out."""
    yield Sentence(
        f"{card.shards} shards, {card.layers} layers, {card.seconds:g} s",
        lead=f"{len(card.networks)} networks on {len(card.devices)} device types: ",
    )
    columns: list[Column[ErrorRow]] = [
        Column("predictor", Unit.NAME, lambda row: row.method),
        Column("held out", Unit.TEXT, lambda row: row.split),
        Column("errors of", Unit.TEXT, lambda row: row.what),
        Column("median", Unit.SHARE, lambda row: row.median),
        Column("p90", Unit.SHARE, lambda row: row.p90),
        Column("above 20 %", Unit.SHARE, lambda row: row.above_20, digits=0),
        Column("of", Unit.COUNT, lambda row: row.count),
    ]
    yield table(
        "Errors",
        columns,
        card.errors,
        tone=lambda row: Tone.STRONG if row.method == card.default else Tone.PLAIN,
    )
    yield Sentence(f"used unless another is asked for: {card.default}", Tone.STRONG)


def judged_blocks(problem: Problem, judged: PredictionJudged) -> Iterator[Block]:
    """Yield how far predicted costs are from measured ones, and what plans made on them lose."""
    columns: list[Column[UnitError]] = [
        Column("unit", Unit.NAME, lambda one: one.unit),
        Column("predicted", Unit.MICROSECONDS, lambda one: one.predicted_us),
        Column("measured", Unit.MICROSECONDS, lambda one: one.measured_us),
        Column("error", Unit.CHANGE, lambda one: one.error),
        Column("layers, median", Unit.SHARE, lambda one: one.median),
        Column("layers, p90", Unit.SHARE, lambda one: one.p90),
    ]
    yield Section("against measured costs", (table("Units", columns, judged.units),))
    terms, term = problem.formulation.terms, problem.objective.terms[0]
    on_predicted, on_measured = (
        term_value(terms, term, value) for value in (judged.planned_on_predicted, judged.planned_on_measured)
    )
    yield Sentence(
        f"{term_name(terms, term)} by the measured costs: {on_predicted} for the plan made on predicted "
        f"costs, {on_measured} for the plan made on measured ones: it loses {judged.loss:.1%}"
    )

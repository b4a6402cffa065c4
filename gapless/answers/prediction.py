"""Described devices, trained predictors, and how well cost models predict executed plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..api.estimates import PredictionJudged
from ..executor.tuning.result import PredictionQuality
from ..formulations.co_run import LEARNED
from ..formulations.problem import Problem
from ..profiler.learned.device import DeviceDescription
from ..profiler.learned.predictors import ErrorRow, PredictorCard
from ..profiler.learned.tables import UnitError
from ..profiler.prediction.corrections import Corrections
from ..profiler.prediction.evaluation import (
    ALL,
    MULTI,
    SCOPES,
    Evaluated,
    Evaluation,
    Fit,
    PlanForetold,
    plans_of,
)
from ..profiler.prediction.executions import Executions
from ..profiler.prediction.learned import Company, Lessons
from .blocks import Block, Column, Section, Sentence, Tone, Unit, Value, matrix, table
from .words import term_name, term_value

_TOPS_SHOWN = (1, 5)
"""Numbers of plans that a table of qualities speaks of; JSON has all."""

_NO_BETTER = 0.5
"""Points of mean error by which what was learned must be better than a table as it is to be trusted."""

_MOST_PLANS = 10
"""Most plans that are shown with their intervals; JSON has all."""

Row = tuple[str, int | None, PredictionQuality]
"""What was learned, from how many plans, and how good it is."""

_LEGEND = (
    "learned: corrections, and the number of other plans they are from; top 1, top 5: by how much the best "
    "of the 1 or 5 plans with the shortest predictions is slower than the fastest of all, where one fit "
    "predicts all of them (--json has more); half of the runs, same chunks in other plans: how well "
    "executions predict each other, which no cost model can do much better"
)


def prediction_blocks(executions: Executions, found: Evaluation) -> Iterator[Block]:
    """Yield what `gapless costs judge` answers about one file."""
    methods = ", ".join(table.provenance.method for table in executions.tables)
    yield Sentence(
        f" on {executions.platform.name}: {len(executions.executed)} plans, "
        f"{len(executions.network.layers)} layers, units {', '.join(executions.platform.unit_names)}; "
        f"tables {methods}",
        lead=executions.network.name,
    )
    yield from _tables(executions, found)
    yield Sentence(_LEGEND, Tone.SOFT)
    yield Sentence("")
    yield Sentence(_conclusion(found), Tone.STRONG)


def _conclusion(found: Evaluation) -> str:
    """Return in a sentence which costs to trust, and why."""
    known = [
        (one.quality.mape_percent, number, one)
        for number, one in enumerate(found.left_out)
        if one.quality.scope == ALL and one.quality.mape_percent is not None and one.fit is not Fit.OWN
    ]
    if not known:
        return "Too few plans to say which costs predict them: `gapless tune` executes more."
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


def _tables(executions: Executions, found: Evaluation) -> Iterator[Section]:
    several = plans_of(executions, MULTI)
    for scope in SCOPES:
        if scope == ALL and len(several) == len(executions.executed):
            continue
        rows = [_row(one) for one in found.left_out if one.quality.scope == scope]
        rows += [("", None, one) for one in found.floor if one.scope == scope]
        if rows:
            yield quality_section(f"{scope}; leave one out", rows)
    if found.curve:
        title = "learned from the first plans of several chunks that tuning measures, judged by the others"
        yield quality_section(title, map(_row, found.curve))
    columns: list[Column[PlanForetold]] = [
        Column("plan", Unit.CODE, lambda one: one.plan),
        Column("measured", Unit.MEASURED, lambda one: one.measured_us),
        Column("predicted", Unit.MEASURED, lambda one: one.foretold.period_us),
        Column("90 % within", Unit.MEASURED, lambda one: (one.foretold.low_us, one.foretold.high_us)),
    ]
    told = table("Predicted", columns, found.foretold[:_MOST_PLANS])
    yield Section("fastest plans, predicted from all others by learned costs", (told,))


def _row(one: Evaluated) -> Row:
    learned = str(one.fit) if one.order is None else f"{one.fit}; {one.order}"
    return learned, one.learned_from, one.quality


def quality_section(title: str, rows: Iterable[Row]) -> Section:
    """Return a table of qualities with a title above it."""

    def regret(top: int) -> Callable[[Row], float | None]:
        return lambda row: _share(dict(row[2].regret_percent).get(top))

    columns: list[Column[Row]] = [
        Column("cost model", Unit.NAME, lambda row: row[2].table),
        Column("learned", Unit.TEXT, lambda row: row[0]),
        Column("from", Unit.COUNT, lambda row: "" if row[1] is None else row[1]),
        Column("plans", Unit.COUNT, lambda row: row[2].plans),
        Column("Pearson", Unit.FACTOR, lambda row: row[2].pearson),
        Column("Spearman", Unit.FACTOR, lambda row: row[2].spearman),
        Column("MAPE", Unit.SHARE, lambda row: _share(row[2].mape_percent)),
        *(Column(f"top {top}", Unit.CHANGE, regret(top)) for top in _TOPS_SHOWN),
    ]
    return Section(title, (table(title, columns, rows),))


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def lessons(executions: Executions, learned: Corrections | Lessons) -> Iterator[Block]:
    """Yield what was learned."""
    names = executions.platform.unit_names
    if isinstance(learned, Corrections):
        rows: Iterable[tuple[Value, ...]] = (
            (unit, f"{factor:.3f}", _spread([row[column] for row in learned.layer_factor]))
            for column, (unit, factor) in enumerate(zip(names, learned.unit_factor, strict=True))
        )
        yield Section(
            "learned from all plans", (matrix("", "unit", ("factor", "layers"), rows, words=["layers"]),)
        )
        return
    columns: list[Column[Company]] = [
        Column("unit", Unit.NAME, lambda one: one.unit),
        Column("beside", Unit.NAME, lambda one: ", ".join(one.beside) or None),
        Column("load", Unit.FACTOR, lambda one: one.loaded, digits=2),
        Column("factor", Unit.FACTOR, lambda one: one.factor),
        Column(
            "layers",
            Unit.TEXT,
            lambda one: _spread([row[names.index(one.unit)] for row in learned.layer_factor]),
        ),
    ]
    yield Section(f"learned from {learned.basis}", (table("", columns, learned.companies),))
    yield Sentence(
        "load: from isolated times (0) to heavy ones (1); factor: what is left beyond that; layers: how much "
        "single layers differ on top of both",
        Tone.SOFT,
    )


def _spread(factors: Sequence[float]) -> str:
    return f"{min(factors):.2f} to {max(factors):.2f}"


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

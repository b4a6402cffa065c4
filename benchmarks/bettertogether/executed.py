"""Figures 6 and 7: predicted against measured times of executed plans, for three choices of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import gapless
from gapless.executor.tuning.result import PredictionQuality, quality
from gapless.formulations.judge import score
from gapless.profiler.prediction.executions import ExecutedPlan, Executions

from ..printing import Part, Statement, beside, titled
from .planned import TOP, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A column of Figs. 6 and 7: what candidates are chosen by, and from which table of costs.

    Attributes
    ----------
    name
        What people call it.
    terms
        By which terms executed plans are chosen, the first ones least.
    costs
        Name of the table that predicts.
    objective
        What a solver is asked for when it makes the same list from all plans.
    """

    name: str
    terms: tuple[str, ...]
    costs: str
    objective: str


WAYS = (
    Way(name="(a) gapness, heavy", terms=("paper_gapness", "period"), costs="heavy", objective="paper"),
    Way(name="(b) period, heavy", terms=("period", "gapness"), costs="heavy", objective="period,gapness"),
    Way(
        name="(c) period, isolated", terms=("period", "gapness"), costs="isolated", objective="period,gapness"
    ),
)

PRINTED = {"(a) gapness, heavy": 0.9441, "(c) period, isolated": 0.8887}
"""Pearson's correlations of AlexNet-sparse on the Google Pixel (Figs. 7a and 7b)."""

AVERAGES = {"(a) gapness, heavy": 0.9229, "(c) period, isolated": 0.8541}
"""Means of all twelve cells (Figs. 7a and 7b)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The executed plans that one way chooses.

    Attributes
    ----------
    plans, predicted_us
        Best prediction first.
    quality, several
        Predicted against measured: of all of them, and of those of several chunks. Plans of one chunk are far
        slower than others, and inflate a correlation.
    lost
        By how much the fastest of them is slower than the fastest of all executed plans.
    ran
        How many of the candidates of the same way among all plans were executed at all.
    """

    plans: tuple[ExecutedPlan, ...]
    predicted_us: tuple[int, ...]
    quality: PredictionQuality
    several: PredictionQuality
    lost: float
    ran: int


def choose(executions: Executions, way: Way, count: int) -> Chosen:
    """Return what a way chooses among executed plans, the best prediction first."""
    problem = executions.problem(way.costs)
    ranked = sorted(executions.executed, key=lambda one: score(problem, one.plan).values(way.terms))
    predicted = {one.plan: score(problem, one.plan).period_us for one in ranked[:count]}
    plans = tuple(sorted(ranked[:count], key=lambda one: predicted[one.plan]))
    proposed = gapless.plan(problem, top=count, objective=way.objective).candidates
    known = {one.plan for one in executions.executed}

    def judged(some: Sequence[ExecutedPlan]) -> PredictionQuality:
        times = [predicted[one.plan] for one in some]
        return quality(times, [one.period_us for one in some], table=way.costs, scope=way.name)

    return Chosen(
        plans=plans,
        predicted_us=tuple(predicted[one.plan] for one in plans),
        quality=judged(plans),
        several=judged([one for one in plans if len(one.plan.chunks) > 1]),
        lost=min(one.period_us for one in plans) / min(one.period_us for one in executions.executed) - 1,
        ran=sum(candidate.plan in known for candidate in proposed),
    )


def correlations(cells: Sequence[Executions], *, pictured: bool) -> Iterator[Part]:
    """Yield one row for each cell and way, and for the phone all its points (Fig. 6) where asked."""
    table = titled(
        "Figs. 6 and 7: candidates among the plans that were executed (/ paper, Pixel 7a, AlexNet-sparse)",
        "application, way", "plans", "Pearson", "of several chunks", "off", "fastest is slower than all by",
        "of the way's own candidates ran",
    )  # fmt: skip
    for cell in cells:
        count = min(TOP, len(cell.executed) // 2)
        for way in WAYS:
            found = choose(cell, way, count)
            phone = _is_phone(cell)
            table.add_row(
                f"{cell.network.name}, {way.name}",
                f"{count} of {len(cell.executed)}",
                beside(_number(found.quality.pearson), str(PRINTED.get(way.name, "-")) if phone else None),
                _number(found.several.pearson),
                f"{found.quality.mape_percent or 0:.0f} %",
                f"{found.lost:.1%}",
                f"{found.ran} of {count}",
            )
            if pictured and phone:
                yield _points(way, found)
    yield table
    for cell in cells:
        yield _statement(cell)


def _statement(cell: Executions) -> Statement:
    count = min(TOP, len(cell.executed) // 2)
    found = [choose(cell, way, count).quality for way in WAYS]
    values = [one.pearson for one in found]
    words = ", ".join(f"{way.name} {_number(value)}" for way, value in zip(WAYS, values, strict=True))
    first, last = values[0], values[-1]
    return Statement(
        "predictions of (a) correlate better than those of (c) "
        f"({AVERAGES[WAYS[0].name]:.2f} against {AVERAGES[WAYS[2].name]:.2f} in the mean)",
        f"{cell.network.name}: {words}",
        first is not None and (last is None or first > last),
    )


def _points(way: Way, found: Chosen) -> Part:
    table = titled(f"Fig. 6 {way.name}: milliseconds", "#", "predicted", "measured", "plan")
    for place, (one, us) in enumerate(zip(found.plans, found.predicted_us, strict=True), 1):
        table.add_row(str(place), f"{us / 1000:.2f}", f"{one.period_us / 1000:.2f}", listed(one.plan))
    return table


def _is_phone(cell: Executions) -> bool:
    """Return whether these are the published runs of the cell of which the paper prints correlations."""
    return "Pixel 7a" in cell.source and "AlexNet-sparse" in cell.source


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

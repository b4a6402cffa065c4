"""How well cost models foretell executed plans: as they are, and with corrections learned from other plans.

Nothing is ever judged by what it was learned from: corrections are fitted on all other plans (leave one
out), or on a few plans drawn at random and judged by the rest.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from ...executor.progress import Report, Step, silent
from ...executor.tuning.statistics import PredictionQuality, quality
from ...formulations.co_run import co_run_model_names, get_co_run_model
from ...formulations.errors import InvalidInputError
from ...formulations.judge import score
from ...formulations.plan import Chunk
from ...formulations.problem import Problem
from .corrections import UNITS_ONLY, Shrinkage, fit_corrections
from .executions import ExecutedPlan, Executions

ALL, MULTI = "all plans", "plans of several chunks"
REPEATED = "plans of several chunks, all of which also ran in other plans"
SCOPES = (MULTI, REPEATED, ALL)
SIZES = (3, 5, 10)
DRAWS = 20
"""Random choices of the plans that are learned from."""


class Fit(StrEnum):
    """What is learned from executed plans.

    NONE
        Nothing.
    UNITS
        One factor a unit.
    LAYERS
        One factor a unit, and one for each layer on each unit.
    """

    NONE = "none"
    UNITS = "units"
    LAYERS = "units, layers"


_SHRINKAGE = {Fit.UNITS: UNITS_ONLY, Fit.LAYERS: Shrinkage()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """One way to predict, and how good it is; its name and plans are in the quality.

    Attributes
    ----------
    fit
        What was learned.
    learned_from
        From how many plans; 0 where nothing was learned.
    quality
        Predicted against measured, of plans that were not learned from. Of several draws, each number is
        the median.
    """

    fit: Fit
    learned_from: int
    quality: PredictionQuality


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Everything that executed plans say about cost models.

    Attributes
    ----------
    left_out
        As `evaluate` says.
    curve
        As `learning_curve` says.
    floor
        As `noise_floor` says.
    """

    left_out: tuple[Evaluated, ...]
    curve: tuple[Evaluated, ...]
    floor: tuple[PredictionQuality, ...]


def evaluation_of(executions: Executions, *, report: Report = silent) -> Evaluation:
    """Judge all cost models by executed plans, in every way; `report` is told of each."""
    return Evaluation(
        left_out=evaluate(executions, report=report),
        curve=learning_curve(executions, report=report),
        floor=noise_floor(executions),
    )


def evaluate(executions: Executions, *, report: Report = silent) -> tuple[Evaluated, ...]:
    """Judge every co-run cost model that the tables allow, for each of `SCOPES` that has plans.

    Each model as it is, then with corrections that are fitted on the other plans (leave one out): on those
    of several chunks, and for the scope of all plans on all others. Plans of one chunk are far slower than
    others and so inflate correlations.
    """
    return tuple(
        found
        for base in (MULTI, ALL)
        for model in usable_models(executions)
        for fit in Fit
        for found in _left_out(executions, model, fit, base, report)
    )


def learning_curve(
    executions: Executions, sizes: Sequence[int] = SIZES, *, report: Report = silent
) -> tuple[Evaluated, ...]:
    """Judge how many plans of several chunks must be executed before corrections help.

    For each size, corrections are fitted on so many plans, `DRAWS` times with different ones, and judged by
    all others. Sizes that leave no plan to judge are passed over.
    """
    return tuple(
        _drawn(executions, model, fit, size, report)
        for model in usable_models(executions)
        for fit in Fit
        for size in ((0,) if fit is Fit.NONE else sizes)
        if size < len(plans_of(executions, MULTI))
    )


def noise_floor(executions: Executions) -> tuple[PredictionQuality, ...]:
    """Judge how well executions foretell each other: what no cost model can be much better than.

    One half of the runs of each plan by the other half, where single runs are known. And the largest time
    that the chunks of a plan took in *other* plans on as many units (medians), for plans all of whose chunks
    occur there (`REPEATED`).
    """
    plans = plans_of(executions, MULTI)
    runs = [one.run_us for one in plans if len(one.run_us) > 1]
    halves = [(median(times[1::2]), median(times[::2])) for times in runs]
    elsewhere = [(us, one.period_us) for one in plans if (us := _elsewhere_us(one, plans)) is not None]
    return tuple(
        quality([p for p, _ in pairs], [m for _, m in pairs], table=name, scope=scope)
        for name, scope, pairs in (
            ("half of the runs", MULTI, halves),
            ("same chunks in other plans", REPEATED, elsewhere),
        )
        if pairs
    )


def usable_models(executions: Executions) -> tuple[str, ...]:
    """Return the names of all co-run cost models, also registered ones, that the tables allow.

    Raises
    ------
    InvalidInputError
        There is none.
    """
    measured = {table.provenance.method for table in executions.tables}
    found = tuple(name for name in co_run_model_names() if get_co_run_model(name).needs <= measured)
    if not found:
        raise InvalidInputError(
            f"the tables are measured as {', '.join(map(repr, sorted(measured)))}, and no co-run cost model "
            "can do with these; name them 'isolated' or 'heavy' in their provenance (method)"
        )
    return found


def plans_of(executions: Executions, scope: str) -> list[ExecutedPlan]:
    """Return the executed plans of one of `SCOPES`."""
    if scope == ALL:
        return list(executions.executed)
    several = [one for one in executions.executed if len(one.plan.chunks) > 1]
    if scope == MULTI:
        return several
    return [one for one in several if _elsewhere_us(one, several) is not None]


def _predictions_us(
    problem: Problem, plans: Sequence[ExecutedPlan], fit: Fit, learned_from: Sequence[ExecutedPlan]
) -> list[float]:
    """Return the period of each plan by costs that are corrected by what was learned from others."""
    known = problem if fit is Fit.NONE else _corrected(problem, fit, learned_from)
    return [float(score(known, one.plan).period_us) for one in plans]


def left_out_us(problem: Problem, plans: Sequence[ExecutedPlan], fit: Fit) -> list[float]:
    """Return the period of each plan by costs that are corrected by all other plans."""
    if fit is Fit.NONE:
        return _predictions_us(problem, plans, fit, ())
    return [
        _predictions_us(problem, [one], fit, [other for other in plans if other.plan != one.plan])[0]
        for one in plans
    ]


def _corrected(problem: Problem, fit: Fit, executed: Sequence[ExecutedPlan]) -> Problem:
    return fit_corrections(problem, executed, shrinkage=_SHRINKAGE[fit]).applied(problem)


def _left_out(executions: Executions, model: str, fit: Fit, base: str, report: Report) -> Iterator[Evaluated]:
    """Yield the quality of one way to predict, for the scopes whose plans are among those of another."""
    report(Step(text=f"{model}, learned: {fit}; leave one out of {base}"))
    plans = plans_of(executions, base)
    predicted = left_out_us(executions.problem(model), plans, fit)
    for scope in (ALL,) if base == ALL else (MULTI, REPEATED):
        judged = plans_of(executions, scope)
        pairs = [(us, one.period_us) for us, one in zip(predicted, plans, strict=True) if one in judged]
        if pairs:
            found = quality([p for p, _ in pairs], [m for _, m in pairs], table=model, scope=scope)
            learned_from = 0 if fit is Fit.NONE else len(plans) - 1
            yield Evaluated(fit=fit, learned_from=learned_from, quality=found)


def _drawn(executions: Executions, model: str, fit: Fit, size: int, report: Report) -> Evaluated:
    report(Step(text=f"{model}, learned: {fit}; from {size} plans"))
    problem, plans = executions.problem(model), plans_of(executions, MULTI)
    found = []
    for seed in range(DRAWS if size else 1):
        chosen = set(random.Random(seed).sample(range(len(plans)), size))
        rest = [one for index, one in enumerate(plans) if index not in chosen]
        predicted = _predictions_us(problem, rest, fit, [plans[index] for index in sorted(chosen)])
        found.append(quality(predicted, [one.period_us for one in rest], table=model, scope=MULTI))
    return Evaluated(fit=fit, learned_from=size, quality=_middle(found))


def _middle(found: Sequence[PredictionQuality]) -> PredictionQuality:
    """Return the median of each number."""
    first = found[0]

    def of(number: Callable[[PredictionQuality], float | None]) -> float | None:
        known = [value for one in found if (value := number(one)) is not None]
        return median(known) if known else None

    regrets: Iterator[tuple[int, float]] = (
        (k, median(dict(one.regret_percent)[k] for one in found)) for k, _ in first.regret_percent
    )
    return PredictionQuality(
        table=first.table,
        scope=first.scope,
        plans=first.plans,
        pearson=of(lambda one: one.pearson),
        spearman=of(lambda one: one.spearman),
        mape_percent=of(lambda one: one.mape_percent),
        regret_percent=tuple(regrets),
    )


def _elsewhere_us(one: ExecutedPlan, plans: Sequence[ExecutedPlan]) -> float | None:
    """Return the largest time that the chunks of a plan took in other plans; None where one is unknown."""
    others = [
        other for other in plans if other.plan != one.plan and len(other.plan.chunks) == len(one.plan.chunks)
    ]
    times = [_seen_us(chunk, others) for chunk in one.plan.chunks]
    return max((time for time in times if time is not None), default=None) if None not in times else None


def _seen_us(chunk: Chunk, plans: Sequence[ExecutedPlan]) -> float | None:
    found = [
        time
        for plan in plans
        for other, time in zip(plan.plan.chunks, plan.chunk_us, strict=False)
        if other == chunk
    ]
    return median(found) if found else None

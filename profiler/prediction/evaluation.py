"""How well cost models predict executed plans: as they are, and with what was learned from other plans.

Nothing is ever judged by what it was learned from: each plan is foretold from all others (leave one out), or
the first few of the order in which tuning measures are learned from, and the rest is foretold. No constant
of any model is fitted here either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

from ...executor.progress import Report, Step, silent
from ...executor.tuning.candidates import apart_first
from ...executor.tuning.result import PredictionQuality, quality
from ...formulations.co_run import INTERPOLATED, LEARNED, co_run_model_names, get_co_run_model
from ...formulations.errors import InvalidInputError
from ...formulations.plan import Chunk
from ...formulations.problem import Problem
from ..platforms.catalog import DEFAULT_METHOD
from .corrections import UNITS_ONLY, Shrinkage, fit_corrections
from .executions import ExecutedPlan, Executions, charged_us
from .learned import Foretold, learn
from .session import NEEDED, Session

ALL, MULTI = "all plans", "plans of several chunks"
REPEATED = "plans of several chunks, all of which also ran in other plans"
SCOPES = (MULTI, REPEATED, ALL)
SIZES = (3, 5, 10)


class Fit(StrEnum):
    """What is learned from executed plans.

    NONE
        Nothing.
    UNITS
        One factor a unit.
    LAYERS
        One factor a unit, and one for each layer on each unit.
    COMPANY
        Who slows whom, and units and layers (`learned.learn`).
    OWN
        The same, and what the share of a chunk in the network does; that cannot be planned with.
    """

    NONE = "none"
    UNITS = "units"
    LAYERS = "units, layers"
    COMPANY = "who is busy"
    OWN = "who is busy, own share"


_SHRINKAGE = {Fit.UNITS: UNITS_ONLY, Fit.LAYERS: Shrinkage()}


class Order(StrEnum):
    """In which order plans are learned from, as tuning measures them.

    BEST
        Least prediction first.
    APART
        A few that are far apart, then least prediction first (`apart_first`).
    """

    BEST = "best first"
    APART = "apart first"


@dataclass(frozen=True, slots=True)
class Way:
    """A way to predict: a co-run cost model, and what is learned on top of it."""

    model: str
    fit: Fit

    @property
    def base(self) -> str:
        """The cost model without anything learned."""
        return INTERPOLATED if self.model == LEARNED else self.model

    def foretold_us(
        self, executions: Executions, plans: Sequence[ExecutedPlan], learned_from: Sequence[ExecutedPlan]
    ) -> list[float]:
        """Return the period of each plan by what was learned from others."""
        if self.model == LEARNED:
            return [one.period_us for one in self._foretold(executions, plans, learned_from)]
        problem = executions.problem(self.model)
        if self.fit is not Fit.NONE:
            fitted = fit_corrections(problem, learned_from, shrinkage=_SHRINKAGE[self.fit])
            problem = fitted.applied(problem)
        return _charged(problem, plans)

    def left_out_us(self, executions: Executions, plans: Sequence[ExecutedPlan]) -> list[float]:
        """Return the period of each plan by what was learned from all others."""
        if self.model == LEARNED:
            return [one.period_us for one in self.left_out(executions, plans)]
        if self.fit is Fit.NONE:
            return self.foretold_us(executions, plans, ())
        return [self.foretold_us(executions, [one], _others(one, plans))[0] for one in plans]

    def left_out(self, executions: Executions, plans: Sequence[ExecutedPlan]) -> list[Foretold]:
        """Return what the learned model foretells of each plan after all others."""
        session = Session.of(executions)
        own = self.fit is Fit.OWN
        return [
            learn(replace(session, executed=tuple(_others(one, plans))), own_share=own).foretell(one)
            for one in plans
        ]

    def _foretold(
        self, executions: Executions, plans: Sequence[ExecutedPlan], learned_from: Sequence[ExecutedPlan]
    ) -> list[Foretold]:
        session = replace(Session.of(executions), executed=tuple(learned_from))
        found = learn(session, own_share=self.fit is Fit.OWN)
        return [found.foretell(one) for one in plans]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """One way to predict, and how good it is; its name and plans are in the quality."""

    fit: Fit  # what was learned
    learned_from: int  # from how many plans; 0 where nothing was learned
    quality: PredictionQuality
    """Predicted against measured, of plans that were not learned from. Where each plan was predicted by a fit
    of its own, nothing is said of regret: predictions of one fit alone can be ranked."""
    order: Order | None = None  # which plans were learned from; None: all others
    covered_percent: float | None = None
    """Share of the plans that lay within their intervals of 90 %; None: the way has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanForetold:
    """One executed plan, and what the learned model predicts for it from all others."""

    plan: str  # in words
    measured_us: float  # what it took
    foretold: Foretold  # what it was expected to take


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Everything that executed plans say about cost models."""

    left_out: tuple[Evaluated, ...]  # as `evaluate` says
    curve: tuple[Evaluated, ...]  # as `learning_curve` says
    floor: tuple[PredictionQuality, ...]  # as `noise_floor` says
    foretold: tuple[PlanForetold, ...] = ()
    """Plans with intervals, the fastest first; empty where a table that the learned model needs is
    missing."""


def evaluation_of(executions: Executions, *, own_share: bool = False, report: Report = silent) -> Evaluation:
    """Judge all cost models by executed plans, in every way.

    `own_share`: whether to judge `Fit.OWN`, too.
    """
    ways = ways_of(executions, own_share=own_share)
    return Evaluation(
        left_out=evaluate(executions, ways, report=report),
        curve=learning_curve(executions, ways=ways, report=report),
        floor=noise_floor(executions),
        foretold=intervals(executions, report=report),
    )


def ways_of(executions: Executions, *, own_share: bool = False) -> tuple[Way, ...]:
    """Return all ways to predict that the tables allow; `own_share`: `Fit.OWN` among them."""
    plain = (Fit.NONE, *_SHRINKAGE)
    found = [Way(model, fit) for model in usable_models(executions) for fit in plain]
    if {table.provenance.method for table in executions.tables} >= NEEDED:
        found += [Way(LEARNED, fit) for fit in (Fit.COMPANY, Fit.OWN) if own_share or fit is Fit.COMPANY]
    return tuple(found)


def evaluate(
    executions: Executions, ways: Sequence[Way] = (), *, report: Report = silent
) -> tuple[Evaluated, ...]:
    """Judge ways to predict, or all that the tables allow (`ways_of`), for each of `SCOPES` that has plans.

    Each plan is foretold from the others (leave one out): those of several chunks, and for the scope of all
    plans all others. Plans of one chunk are far slower than others and so inflate correlations.
    """
    return tuple(
        found
        for base in (MULTI, ALL)
        for way in ways or ways_of(executions)
        for found in _left_out(executions, way, base, report)
    )


def learning_curve(
    executions: Executions,
    sizes: Sequence[int] = SIZES,
    *,
    ways: Sequence[Way] = (),
    report: Report = silent,
) -> tuple[Evaluated, ...]:
    """Judge how many plans of several chunks must be executed before learning helps.

    For each size the first plans of an `Order` are learned from at once, and all others are foretold. Sizes
    that leave no plan to judge are passed over.
    """
    return tuple(
        _from_first(executions, way, order, size, report)
        for way in ways or ways_of(executions)
        for order in (Order if way.model == LEARNED else (Order.BEST,))
        for size in ((0,) if way.fit is Fit.NONE else sizes)
        if size < len(plans_of(executions, MULTI))
    )


def intervals(executions: Executions, *, report: Report = silent) -> tuple[PlanForetold, ...]:
    """Return what the learned model foretells of each plan from all others, the fastest plan first."""
    way = Way(LEARNED, Fit.COMPANY)
    if way not in ways_of(executions) or len(executions.executed) < 2:
        return ()
    report(Step(text=f"{LEARNED}: intervals"))
    plans = sorted(executions.executed, key=lambda one: one.period_us)
    return tuple(
        PlanForetold(plan=str(one.plan), measured_us=one.period_us, foretold=told)
        for one, told in zip(plans, way.left_out(executions, plans), strict=True)
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
    """Return the names of all co-run cost models that the tables allow and that learn nothing themselves."""
    measured = {table.provenance.method for table in executions.tables}
    known = (name for name in co_run_model_names() if name != LEARNED)
    found = tuple(name for name in known if get_co_run_model(name).needs <= measured)
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


def ranked_by(executions: Executions, model: str, order: Order) -> list[ExecutedPlan]:
    """Return the plans of several chunks in the order in which tuning measures them.

    It plans with the heavy table as long as it knows no better; where there is none, with `model`.
    """
    measured = {table.provenance.method for table in executions.tables}
    model = DEFAULT_METHOD if DEFAULT_METHOD in measured else model
    plans, problem = plans_of(executions, MULTI), executions.problem(model)
    charged = _charged(problem, plans)
    ranked = [plans[index] for index in sorted(range(len(plans)), key=charged.__getitem__)]
    if order is Order.BEST:
        return ranked
    first = apart_first(problem, [one.plan for one in ranked])
    place = {plan: number for number, plan in enumerate(first)}
    return sorted(ranked, key=lambda one: place[one.plan])


def _charged(problem: Problem, plans: Sequence[ExecutedPlan]) -> list[float]:
    return [float(max(charged_us(problem, one))) for one in plans]


def _others(one: ExecutedPlan, plans: Sequence[ExecutedPlan]) -> list[ExecutedPlan]:
    return [other for other in plans if other.plan != one.plan]


def _left_out(executions: Executions, way: Way, base: str, report: Report) -> Iterator[Evaluated]:
    """Yield the quality of one way to predict, for the scopes whose plans are among those of another."""
    report(Step(text=f"{way.model}, learned: {way.fit}; leave one out of {base}"))
    plans = plans_of(executions, base)
    told = way.left_out(executions, plans) if way.model == LEARNED else None
    predicted = way.left_out_us(executions, plans) if told is None else [one.period_us for one in told]
    for scope in (ALL,) if base == ALL else (MULTI, REPEATED):
        judged = plans_of(executions, scope)
        kept = [index for index, one in enumerate(plans) if one in judged]
        if not kept:
            continue
        measured = [plans[index].period_us for index in kept]
        found = quality([predicted[index] for index in kept], measured, table=way.model, scope=scope)
        yield Evaluated(
            fit=way.fit,
            learned_from=0 if way.fit is Fit.NONE else len(plans) - 1,
            quality=found if way.fit is Fit.NONE else replace(found, regret_percent=()),
            covered_percent=None if told is None else _covered([told[index] for index in kept], measured),
        )


def _from_first(executions: Executions, way: Way, order: Order, size: int, report: Report) -> Evaluated:
    report(Step(text=f"{way.model}, learned: {way.fit}; from {size} plans"))
    ranked = ranked_by(executions, way.base, order)
    first, rest = ranked[:size], ranked[size:]
    predicted = way.foretold_us(executions, rest, first)
    return Evaluated(
        fit=way.fit,
        learned_from=size,
        quality=quality(predicted, [one.period_us for one in rest], table=way.model, scope=MULTI),
        order=order if size else None,
    )


def _covered(told: Sequence[Foretold], measured_us: Sequence[float]) -> float:
    """Return which share of measured times lies within the intervals, percent."""
    inside = [one.low_us <= us <= one.high_us for one, us in zip(told, measured_us, strict=True)]
    return 100 * sum(inside) / len(inside)


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

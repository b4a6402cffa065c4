"""Interference: how much longer, or less, layers take while other units are busy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median

from ...executor.engine import Engine
from ...executor.measurement import Measurement
from ...executor.model import Model
from ...executor.progress import Report, silent
from ...executor.tuning.store import Store
from ...formulations.co_run import co_run_model_names, get_co_run_model
from ...formulations.costs import CostTable
from ...formulations.errors import InvalidInputError, InvalidPlanError
from ...formulations.hardware import Platform
from ...formulations.judge import check, score
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...profiler.platforms.catalog import (
    is_shipped_name,
    network_names,
    platform_names,
    shipped_platform,
    shipped_problem,
)
from ...profiler.platforms.workloads import phone_names
from ...profiler.profile import Method, Profile
from ...profiler.slowdown.interference.measure import check_loads, interference_survey
from ...profiler.slowdown.interference.ratios import (
    InterferenceRatios,
    PlanInterference,
    PredictedPeriod,
    table_ratios,
)
from ...profiler.slowdown.turns import CoRunOptions
from ..device import this_device
from ..engines import engines_of, resolve_engine
from ..execution import models_for, open_ledger, profiled_problem
from ..models import open_model


def measure_interference(
    models: Sequence[Model | str | Path],
    *,
    platform: Platform | None = None,
    engine: str | Engine | None = None,
    beside: Sequence[Sequence[str]] = (),
    options: CoRunOptions = CoRunOptions(),
    store: Store | str | Path = ":memory:",
    resume: bool = False,
    report: Report = silent,
) -> InterferenceRatios:
    """Measure how much longer layers take on each unit while other units run the same layers in a loop.

    Parameters
    ----------
    models
        The networks, as `open_model` returns them, or their locators; each is measured by itself.
    platform
        The units; None: this device, as `this_device` finds it.
    engine
        Who runs the layers; None: MNN for ONNX files, "callable" for Python functions.
    beside
        Sets of units that make load, e.g. [["big", "gpu"], ["big"]]; empty: each other unit, and all other
        units that can run at once.
    options
        How long to measure.
    store
        File of measurements; ":memory:" keeps none.
    resume
        Go on with what the store holds, instead of measuring it again.
    report
        Told of each step.

    Raises
    ------
    InvalidInputError
        A model, unit or option is not valid, or no two units can run at once.
    ProfilingError, ExecutionError
        It could not be measured.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.costs.measure_interference(["squeezenet"])  # doctest: +SKIP
    >>> [(r.chunk.unit, r.load, r.ratio) for r in found.ratios]  # doctest: +SKIP
    [('core0', 'core1', 1.21), ...]
    """
    opened = [open_model(given) if isinstance(given, str | Path) else given for given in models]
    names = [model.network.name for model in opened]
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(
            f"each network needs a name of its own, got {', '.join(names) or '(none)'}; "
            "NAME=... before a model gives it one"
        )
    runner = resolve_engine(engine, *opened)
    units = this_device(engine=runner) if platform is None else platform
    sets, each = tuple(map(tuple, beside)), list[InterferenceRatios]()
    check_loads(units, sets)
    with ExitStack() as stack:
        ledger = open_ledger(store, stack, resume=resume)
        for model in opened:
            with interference_survey(
                model, units, runner, options=options, ledger=ledger, report=report
            ) as survey:
                each.append(survey.loads(sets))
    return _joined(each)


def measure_plan_interference(
    problem: Problem | Profile,
    plans: Sequence[Plan],
    *,
    model: Model | None = None,
    engine: str | Engine | None = None,
    measured: Sequence[Measurement] = (),
    options: CoRunOptions = CoRunOptions(),
    store: Store | str | Path = ":memory:",
    resume: bool = False,
    report: Report = silent,
) -> InterferenceRatios:
    """Measure each chunk of plans alone, and while the other chunks of its plan run in a loop.

    The largest time beside the rest predicts the period of the plan; what the judge says of it with
    other costs stands beside it.

    Parameters
    ----------
    problem
        What the plans were made for: one network, no workload. A profile tells what the judge says with
        every co-run cost model that its tables allow, a problem what it says with its own costs.
    plans
        Valid plans of it.
    model
        The model; None: opened from where the problem says it lies.
    measured
        What `run` measured of these plans, in any order; not every plan needs to be there.
    engine, options, store, resume, report
        As for `measure_interference`.

    Raises
    ------
    InvalidInputError
        A plan is not valid for the problem, or a measurement is of no plan.
    ProfilingError, ExecutionError
        It could not be measured.
    """
    judged = _judged(problem)
    first = next(iter(judged.values()))
    _require_plans(first, plans)
    periods_us = _periods_us(plans, measured)
    runs = models_for(first)[first.network.name] if model is None else model
    runner, units = engines_of(first, engine, runs)
    with ExitStack() as stack:
        ledger = open_ledger(store, stack, resume=resume)
        with interference_survey(
            runs, units, runner, options=options, ledger=ledger, report=report
        ) as survey:
            found = survey.plans(plans)
    return replace(found, plans=tuple(_with_periods(one, judged, periods_us) for one in found.plans))


def interference_of_tables(subject: str | Profile) -> InterferenceRatios:
    """Return the ratios of the heavy and the isolated tables, without measuring anything.

    `subject`: the name of a shipped platform (all its networks) or problem, or a profile with both tables.

    >>> from gapless.api.slowdown.interference import interference_of_tables
    >>> found = interference_of_tables("pixel7a/octree")
    >>> len(found.ratios)
    28
    """
    if isinstance(subject, Profile):
        platform = subject.platform
        tables = [(subject.table(Method.ISOLATED), subject.table(Method.HEAVY))]
    else:
        names = _shipped_names(subject)
        platform = shipped_platform(names[0].partition("/")[0])
        tables = [
            (_shipped_table(name, Method.ISOLATED), _shipped_table(name, Method.HEAVY)) for name in names
        ]
    ratios = tuple(one for isolated, heavy in tables for one in table_ratios(platform, isolated, heavy))
    if not ratios:
        raise InvalidInputError(
            f"no two units of {platform.name} can run at once, so that its heavy table says nothing more "
            "than its isolated one"
        )
    heavy = [table.provenance for _, table in tables]
    return InterferenceRatios(
        platform=platform,
        ratios=ratios,
        provenance=replace(
            heavy[0],
            source="; ".join(dict.fromkeys(one.source for one in heavy)),
            method="heavy over isolated tables",
            notes="; ".join(dict.fromkeys(filter(None, (one.notes for one in heavy)))),
        ),
    )


def is_shipped_subject(name: str) -> bool:
    """Return whether a shipped platform or problem has this name, with tables or without."""
    return name in (*platform_names(), *phone_names()) or is_shipped_name(name)


def _joined(each: Sequence[InterferenceRatios]) -> InterferenceRatios:
    """Return what was measured of several networks on one platform as one."""
    provenances = [one.provenance for one in each]
    return replace(
        each[0],
        ratios=tuple(ratio for one in each for ratio in one.ratios),
        provenance=replace(
            provenances[0],
            source="; ".join(one.source for one in provenances),
            notes="; ".join(dict.fromkeys(one.notes for one in provenances)),
        ),
        receipts=tuple(receipt for one in each for receipt in one.receipts),
        warnings=tuple(warning for one in each for warning in one.warnings),
        seconds=sum(one.seconds for one in each),
    )


def _judged(problem: Problem | Profile) -> dict[str, Problem]:
    """Return the problem with the costs of each co-run cost model that can be had, by its name."""
    if isinstance(problem, Profile):
        known = {table.provenance.method for table in problem.tables}
        names = [name for name in co_run_model_names() if get_co_run_model(name).needs <= known]
        return {name: profiled_problem(problem, costs=name) for name in names}
    if not problem.formulation.correctable:
        raise InvalidInputError(
            "interference is measured of plans of one network without a workload; with a workload, "
            "`gapless costs contention` measures how its networks slow each other down"
        )
    return {problem.costs.provenance.method or "the problem": problem}


def _require_plans(problem: Problem, plans: Sequence[Plan]) -> None:
    if not plans:
        raise InvalidInputError("no plan is given: name at least one")
    for plan in plans:
        violations = check(problem, plan)
        if violations:
            raise InvalidPlanError(
                f"plan [{plan}] cannot be run on this problem:",
                [violation.message for violation in violations],
            )


def _periods_us(plans: Sequence[Plan], measured: Sequence[Measurement]) -> dict[str, float]:
    """Return the measured periods by plan_id: the median where a plan was measured several times."""
    found: dict[str, list[float]] = {plan.plan_id: [] for plan in plans}
    for one in measured:
        plan = one.deployment.plan
        if plan is None or plan.plan_id not in found:
            raise InvalidInputError(f"the measurement of [{one.deployment}] is of none of the given plans")
        found[plan.plan_id].append(one.period_us)
    return {plan_id: median(periods) for plan_id, periods in found.items() if periods}


def _with_periods(
    one: PlanInterference, judged: Mapping[str, Problem], periods_us: Mapping[str, float]
) -> PlanInterference:
    return replace(
        one,
        predicted=tuple(
            PredictedPeriod(by=name, period_us=float(score(problem, one.plan).period_us))
            for name, problem in judged.items()
        ),
        period_us=periods_us.get(one.plan.plan_id),
    )


def _shipped_names(subject: str) -> list[str]:
    if subject in platform_names():
        return [f"{subject}/{network}" for network in network_names(subject)]
    if not is_shipped_name(subject):
        raise InvalidInputError(
            f"there are no measured tables of {subject!r}; choose a platform "
            f"({', '.join(platform_names())}), or one of its problems, such as pixel7a/octree"
        )
    return [subject]


def _shipped_table(name: str, method: Method) -> CostTable:
    return shipped_problem(name, method=method).costs

"""What needs a device: profile a model, run a plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..executor.engine import Engine
from ..executor.engines.registry import get_engine
from ..executor.machine.fingerprint import fingerprint
from ..executor.measurement import Measurement
from ..executor.model import Model
from ..executor.pipeline.pipeline import Pipeline
from ..executor.progress import Afresh, Report, silent
from ..executor.runner import Budget
from ..executor.tuning.store import Store
from ..formulations.co_run import combine
from ..formulations.deployment import Deployment
from ..formulations.files import dump, parse
from ..formulations.hardware import Platform
from ..formulations.operation import operation_of
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..profiler.profile import PROFILE, Method, Profile, ProfileOptions
from ..profiler.profile import profile as measure_profile
from .device import common_engine, this_device
from .models import models_of, open_model, open_models
from .problems import given_problem

DEFAULT_METHOD = str(Method.HEAVY)
"""The table that plans are made from: each layer measured while all other units run it, too."""


def profile(
    model: Model | str | Path | Sequence[str | Path],
    *,
    platform: Platform | None = None,
    engine: str | Engine | None = None,
    methods: Iterable[str | Method] = (Method.ISOLATED, Method.HEAVY),
    options: ProfileOptions = ProfileOptions(),
    store: Store | str | Path = ":memory:",
    resume: bool = False,
    report: Report = silent,
) -> Profile:
    """Measure what every layer of a model costs on every unit.

    Parameters
    ----------
    model
        As `open_model` returns it, or its locator; several locators are one network.
    platform
        The units; None: this device, as `this_device` finds it.
    engine
        Who runs the layers; None: MNN for ONNX files, "callable" for Python functions.
    methods
        Which tables: "isolated" (alone), "heavy" (while the other units run the same layers).
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
        A model or option is not valid.
    ProfilingError, ExecutionError
        It could not be measured.
    """
    opened = resolve_model(model)
    found = resolve_engine(engine, opened)
    units = this_device(engine=found) if platform is None else platform
    wanted = tuple(Method(method) for method in methods)
    with ExitStack() as stack:
        return take_profile(
            opened,
            units,
            found,
            methods=wanted,
            options=options,
            store=open_store(store, stack),
            report=report,
            resume=resume,
        )


def profiled_problem(profile: Profile, *, costs: str = DEFAULT_METHOD) -> Problem:
    """Return the problem of planning a profiled model, with the costs of a co-run cost model."""
    found = combine(costs, profile.tables, profile.platform)
    return Problem(
        platform=profile.platform,
        networks=(profile.network,),
        costs=found.costs,
        co_run_costs=found.beside,
    )


def open_pipeline(
    problem: Problem | str | Path,
    plan: Plan | Deployment,
    *,
    model: Model | Mapping[str, Model] | None = None,
    engine: str | Engine | None = None,
    restarts: int = 0,
    report: Report = silent,
) -> Pipeline:
    """Open a plan as a running pipeline: a context manager with `measure`, `trace` and `map`.

    Parameters
    ----------
    problem
        What the plan was made for, or its file; its units are asked of this machine.
    plan
        The plan, or a deployment such as replicas.
    model
        The model, or those of several networks by name; None: opened from where the problem says they lie.
    engine
        Who runs them.
    restarts
        How many times lost workers are replaced.
    report
        Told when they are.

    Examples
    --------
    >>> import gapless
    >>> with gapless.open_pipeline(problem, plan) as pipeline:  # doctest: +SKIP
    ...     for outputs in pipeline.map({"image": frame} for frame in camera):
    ...         show(outputs["boxes"])
    """
    problem = given_problem(problem)
    operation_of(problem).check_executable(problem)
    deployment = operation_of(problem).deploy(problem, plan) if isinstance(plan, Plan) else plan
    models = models_for(problem) if model is None else model
    if not isinstance(models, Mapping):
        models = {problem.network.name: models}
    return Pipeline(
        deployment,
        models,
        problem.platform,
        resolve_engine(engine, *models.values()),
        device=str(fingerprint()),
        restarts=restarts,
        report=report,
    )


def run(
    problem: Problem | str | Path,
    plan: Plan | Deployment,
    *,
    budget: Budget = Budget(seconds=5.0),
    **options: Any,
) -> Measurement:
    """Run a plan on this device for a while, and measure it.

    For a workload, a request of the budget is a round: one of each of its requests.

    Parameters
    ----------
    problem, plan, options
        As for `open_pipeline`.
    budget
        For how long.
    """
    with open_pipeline(problem, plan, **options) as pipeline:
        return pipeline.measure(budget)


def take_profile(
    model: Model,
    platform: Platform,
    engine: Engine,
    *,
    methods: tuple[Method, ...],
    options: ProfileOptions,
    store: Store,
    report: Report,
    resume: bool,
) -> Profile:
    """Return a profile; with `resume`, from what the store holds of the same model, units and options."""
    setting = (engine.name, engine.availability().version, fingerprint().digest)
    what = (model.network.models, platform, methods, options)
    key = hashlib.sha256(repr((*what, *setting)).encode()).hexdigest()
    kept = store.find("profile", key) if resume else None
    if kept is not None:
        return parse(kept.encode(), PROFILE, name="the profile in the store")
    taken = measure_profile(
        model,
        platform,
        engine,
        methods=methods,
        options=options,
        ledger=store if resume else Afresh(store),
        report=report,
    )
    store.keep("profile", key, dump(taken, PROFILE))
    return taken


def models_for(problem: Problem, *, at: Mapping[str, str | Path] | None = None) -> dict[str, Model]:
    """Open the models of all networks that run, by name; parameters and errors as for `models_of`."""
    pieces = getattr(problem.data, "pieces", None)
    return {
        network.name: models_of(network, at=at, pieces=pieces)
        for network in problem.formulation.placed(problem)
    }


def resolve_engine(engine: str | Engine | None, *models: Model) -> Engine:
    """Return the engine that is asked for, or that the models need."""
    if engine is None:
        return get_engine(common_engine(models))
    return get_engine(engine) if isinstance(engine, str) else engine


def resolve_all(
    models: Sequence[Model | str | Path], engine: str | Engine | None, platform: Platform | None
) -> tuple[list[Model], Engine, Platform]:
    """Return models from themselves or their locators, their engine, and the units: by default all here."""
    opened = [open_model(given) if isinstance(given, str | Path) else given for given in models]
    found = resolve_engine(engine, *opened)
    return opened, found, this_device(engine=found) if platform is None else platform


def resolve_model(model: Model | str | Path | Sequence[str | Path]) -> Model:
    """Return a model from itself or its locators."""
    if isinstance(model, str | Path):
        return open_models([model])
    if isinstance(model, Sequence):
        return open_models(model)
    return model


def open_store(store: Store | str | Path, stack: ExitStack) -> Store:
    """Return a store; one that is named is closed with the stack."""
    return store if isinstance(store, Store) else stack.enter_context(Store(store))

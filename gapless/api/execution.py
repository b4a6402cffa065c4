"""What needs a device: profile a model, run a plan."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypedDict, Unpack

from ..executor.engine import Engine
from ..executor.engines.registry import engine_words, engines_on
from ..executor.machine.state import fingerprint
from ..executor.measurement import Measurement
from ..executor.model import Model, in_order_of
from ..executor.pipeline.pipeline import Pipeline
from ..executor.pipeline.verify import References, verify
from ..executor.progress import Afresh, Ledger, Report, silent
from ..executor.runner import Budget, Verification
from ..executor.samples import Samples
from ..executor.tuning.store import Store
from ..formulations.co_run import combine
from ..formulations.deployment import Deployment
from ..formulations.errors import EngineUnavailableError, InvalidInputError
from ..formulations.files import dump, parse
from ..formulations.hardware import Platform
from ..formulations.operation import operation_of
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..profiler.profile import PROFILE, Method, Profile, ProfileOptions
from ..profiler.profile import profile as measure_profile
from .device import this_device
from .engines import EngineChoice, engines_of, resolve_engine, resolve_engines, with_engines
from .models import models_of, open_model
from .problems import given_problem
from .samples import named_with, tried_with

DEFAULT_METHOD = str(Method.HEAVY)
"""The table that plans are made from: each layer measured while all other units run it, too."""


def profile(
    model: Model | str | Path,
    *,
    platform: Platform | None = None,
    engine: EngineChoice = None,
    methods: Iterable[str | Method] = (Method.ISOLATED, Method.HEAVY),
    options: ProfileOptions = ProfileOptions(),
    store: Store | str | Path = ":memory:",
    resume: bool = False,
    samples: Samples | None = None,
    report: Report = silent,
) -> Profile:
    """Measure what every layer of a model costs on every unit.

    Parameters
    ----------
    model
        As `open_model` returns it, or its locator. For several, `profile_together` measures what they cost
        when they share the units, and `open_models` makes one network of them.
    platform
        The units; None: this device, as `this_device` finds it.
    engine
        Who runs the layers. Several engines, a sequence or "mnn,onnxruntime", compete: everything is measured
        with each of them, on a variant of each unit ("core0" by the first, "core0@onnxruntime"), and layers
        that one cannot run are left to the others. None: those that the units name, or else MNN and ONNX
        Runtime for ONNX files, as far as they are installed, "callable" for Python functions.
    methods
        Which tables: "isolated" (alone), "heavy" (while the other units run the same layers).
    options
        How long to measure.
    store
        File of measurements; ":memory:" keeps none.
    resume
        Go on with what the store holds, instead of measuring it again.
    samples
        Inputs that the layers are run on: the first request of those that are given (`read_samples`), or
        random numbers in some range; None: those of the model.
    report
        Told of each step.

    Raises
    ------
    InvalidInputError
        A model or option is not valid.
    ProfilingError, ExecutionError
        It could not be measured.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.profile("squeezenet")  # doctest: +SKIP
    >>> problem = gapless.profiled_problem(found)  # doctest: +SKIP
    >>> print(gapless.plan(problem).plan)  # doctest: +SKIP
    0-15 core1 | 16-29 core0
    """
    (opened,) = tried_with([resolve_model(model)], samples)
    found, units = placed(engine, platform, opened)
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


class PipelineOptions(TypedDict, total=False):
    """How a pipeline is opened: the options of `open_pipeline`."""

    model: Model | Mapping[str, Model] | None
    engine: EngineChoice
    restarts: int
    samples: Samples | None
    check: bool
    report: Report


def open_pipeline(
    problem: Problem | str | Path,
    plan: Plan | Deployment,
    *,
    model: Model | Mapping[str, Model] | None = None,
    engine: EngineChoice = None,
    restarts: int = 0,
    samples: Samples | None = None,
    check: bool = True,
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
        What runs them; None: on each unit the engine that it was profiled with.
    restarts
        How many times lost workers are replaced.
    samples
        Inputs that it is measured on, one request in each task slot in turn; None: those of the model.
    check
        Whether some requests are first sent through all streams and compared with the uncut models;
        `Pipeline.verification` says what came of it, and each receipt whether it was done.
    report
        Told when they are.

    Raises
    ------
    OutputMismatchError
        Numbers differ; the message names the first chunk that is wrong.

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
    networks = {network.name: network for network in problem.networks}
    models = {
        name: in_order_of(each, networks[name]) if name in networks else each for name, each in models.items()
    }
    models = named_with(models, samples)
    found, platform = engines_of(problem, engine, *models.values())
    pipeline = Pipeline(
        deployment,
        models,
        platform,
        found,
        device=str(fingerprint()),
        restarts=restarts,
        report=report,
    )
    if check:
        try:
            pipeline.verification = verified(partial(verify, pipeline), models)
        except BaseException:
            pipeline.close()
            raise
    return pipeline


def verified(verify: Callable[[References], Verification], models: Mapping[str, Model]) -> Verification:
    """Return what comparing with the uncut models gives, or why nothing here can run these."""
    try:
        return verify(References(models))
    except EngineUnavailableError as error:
        return Verification(requests=0, worst_error=None, tolerance=0.0, problem=str(error))


def run(
    problem: Problem | str | Path,
    plan: Plan | Deployment,
    *,
    budget: Budget = Budget(seconds=5.0),
    **options: Unpack[PipelineOptions],
) -> Measurement:
    """Run a plan on this device for a while, and measure it.

    For a workload, a request of the budget is a round: one of each of its requests.

    Parameters
    ----------
    problem, plan, options
        As for `open_pipeline`.
    budget
        For how long.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.load_problem("gapless-out/problem.json")  # doctest: +SKIP
    >>> plan = gapless.plan(problem).plan  # doctest: +SKIP
    >>> gapless.run(problem, plan, budget=gapless.Budget(seconds=1)).period_us  # doctest: +SKIP
    3981.2
    """
    with open_pipeline(problem, plan, **options) as pipeline:
        return pipeline.measure(budget)


def take_profile(
    model: Model,
    platform: Platform,
    engine: Engine,
    *,
    methods: tuple[Method, ...] = tuple(Method),
    options: ProfileOptions,
    store: Store,
    report: Report,
    resume: bool,
) -> Profile:
    """Return a profile; with `resume`, from what the store holds of the same model, units and options."""
    engines = engines_on(platform.units, engine)
    setting = (engine_words(engines.values()), fingerprint().digest)
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


def placed(engine: EngineChoice, platform: Platform | None, *models: Model) -> tuple[Engine, Platform]:
    """Return the engine of units that name none, and the units, by default all here, with their engines.

    Raises InvalidInputError: as for `resolve_engines` and `with_engines`.
    """
    if engine is None and platform is not None and any(unit.engine.name for unit in platform.units):
        return resolve_engine(None, *models), platform
    found = resolve_engines(engine, *models)
    return found[0], with_engines(this_device(engine=found) if platform is None else platform, found)


def resolve_all(
    models: Sequence[Model | str | Path], engine: EngineChoice, platform: Platform | None
) -> tuple[list[Model], Engine, Platform]:
    """Return models from themselves or their locators, their one engine, and the units."""
    opened = [open_model(given) if isinstance(given, str | Path) else given for given in models]
    found = resolve_engine(engine, *opened)
    units = this_device(engine=found) if platform is None else platform
    if engine is None and any(unit.engine.name for unit in units.units):
        return opened, found, units
    return opened, found, with_engines(units, [found])


def resolve_model(model: Model | str | Path) -> Model:
    """Return a model from itself or its locator.

    Raises InvalidInputError: a list is given.
    """
    if isinstance(model, str | Path):
        return open_model(model)
    if isinstance(model, list | tuple):
        raise InvalidInputError(
            f"a list of {len(model)} models is given, and this takes one model: `profile_together` measures "
            "what several cost when they share the units (`tune` takes its problem), `open_models` makes one "
            "network of them"
        )
    return model


def open_store(store: Store | str | Path, stack: ExitStack) -> Store:
    """Return a store; one that is named is closed with the stack."""
    return store if isinstance(store, Store) else stack.enter_context(Store(store))


def open_ledger(store: Store | str | Path, stack: ExitStack, *, resume: bool) -> Ledger:
    """Return where measurements are kept, in a store; `resume`: what it holds already is used."""
    kept = open_store(store, stack)
    return kept if resume else Afresh(kept)

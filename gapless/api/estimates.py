"""Costs of networks on devices that never ran them: describe a device once, then predict."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..executor.engine import Engine
from ..executor.engines.registry import get_engine
from ..executor.progress import Report, silent
from ..formulations.errors import InvalidInputError, LayerNotRunnableError
from ..formulations.files import load
from ..formulations.hardware import Platform
from ..formulations.judge import score
from ..formulations.network import Network
from ..formulations.problem import Problem
from ..formulations.terms import Objective
from ..profiler.learned.device import DEVICE, DeviceDescription
from ..profiler.learned.features import NetworkFeatures, features_of, table_features, work_alone
from ..profiler.learned.measuring import DESCRIBING, LEARNING, YARDSTICKS, Scope, describe
from ..profiler.learned.predictors import PredictionMethod, Predictor, PredictorCard
from ..profiler.learned.tables import UnitError, predicted_costs, unit_errors
from ..profiler.learned.training import data_path, data_platform, keep, load_dataset
from ..profiler.zoo.catalog import names_in_parts, zoo_entry, zoo_names
from .clusters import network_of
from .device import this_device
from .engines import DEFAULT_ENGINE
from .models import ZOO_PREFIX, open_model
from .planning import plan
from .problems import given_problem

if TYPE_CHECKING:
    from .clusters import Planned
    from .models import Shapes

MOST_PARAMETERS = 45_000_000
"""Larger built-in networks are in no data set unless they are named: opening their shards takes minutes."""


def describe_device(
    *,
    platform: Platform | None = None,
    engine: str | Engine = DEFAULT_ENGINE,
    networks: Sequence[str | Path] = YARDSTICKS,
    report: Report = silent,
) -> DeviceDescription:
    """Measure a few networks on this device, so that the costs of others can be predicted for it.

    Parameters
    ----------
    platform
        The units; None: this device, as `this_device` finds it.
    engine
        Who runs the networks.
    networks
        Which ones: built-in networks, or ONNX files.
    report
        Told of each measurement.

    Raises
    ------
    InvalidInputError
        There is no such network.
    ExecutionError, ProfilingError
        It could not be measured.
    """
    found = get_engine(engine) if isinstance(engine, str) else engine
    units = this_device(engine=found) if platform is None else platform
    models = [open_model(name) for name in networks]
    described = describe(models, units, found, scope=DESCRIBING, report=report)
    return replace(
        described, embeddings=tuple(described.embedding(unit) for unit in described.platform.unit_names)
    )


def predict_costs(
    model: Planned,
    device: DeviceDescription | str | Path,
    *,
    method: str | PredictionMethod | None = None,
    predictor: Predictor | str | Path | None = None,
    shapes: Shapes | None = None,
) -> Problem:
    """Return the problem of planning a model on a device that never ran it, with predicted costs.

    Parameters
    ----------
    model
        From `open_model`, or its locator; also a built-in network that is a table without weights, such as
        "vit-large". Of other tables (a `Network`, a problem, their files) only the operations are known:
        they need the method "flops".
    device
        From `describe_device`, or its file.
    method
        "transformer", "trees", "nearest", "regression" or "flops"; None: the one that was best on networks
        that the predictor did not know.
    predictor
        A predictor of your own (`learn_costs`), or its folder; None: the one that is shipped.
    shapes
        Fixed shapes of inputs with dynamic dimensions, by name, where an ONNX file is named.

    Returns
    -------
    Problem
        Its costs are marked as estimated.

    Raises
    ------
    InvalidInputError
        There is no such model or method, or its operators are not known.
    EngineUnavailableError
        The method needs ONNX Runtime, which is not installed.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.costs.predict_costs("squeezenet", "board.json")  # doctest: +SKIP
    >>> gapless.plan(problem).plan  # doctest: +SKIP
    """
    described = device if isinstance(device, DeviceDescription) else load(device, DEVICE)
    trained = predictor if isinstance(predictor, Predictor) else Predictor(_folder(predictor))
    chosen = trained.card.default if method is None else parse_method(method)
    network, features = _subject(model, shapes, chosen)
    return Problem(
        platform=described.platform,
        networks=(network,),
        costs=predicted_costs(network, features, described, trained, chosen),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionJudged:
    """Predicted costs beside measured ones, and what the difference does to plans."""

    units: tuple[UnitError, ...]  # errors of the times, by unit
    planned_on_predicted: int
    planned_on_measured: int
    """What the best plan by each costs by the measured costs: the first term of the objective."""

    @property
    def loss(self) -> float:
        """What the plan loses that was made on predicted costs: 0.05 is 5 %."""
        return self.planned_on_predicted / self.planned_on_measured - 1


def judge_prediction(
    predicted: Problem, measured: Problem | str | Path, *, objective: str | Objective | None = None
) -> PredictionJudged:
    """Compare predicted costs with measured ones of the same layers and units, and the plans made on both.

    Parameters
    ----------
    predicted
        From `predict_costs`.
    measured
        As `gapless profile` writes it.
    objective
        What is planned for; None: the objective of the measured problem.

    Raises
    ------
    InvalidInputError
        The problems are not about the same layers on the same units, or have no plan.
    """
    true = given_problem(measured)
    units = unit_errors(predicted, true)
    true = true if objective is None else true.with_objective(objective)
    asked = replace(true, networks=predicted.networks, costs=predicted.costs, co_run_costs=None)
    on_predicted, on_measured = (_value_of_best(one, true) for one in (asked, true))
    return PredictionJudged(units=units, planned_on_predicted=on_predicted, planned_on_measured=on_measured)


def _value_of_best(asked: Problem, true: Problem) -> int:
    """Return what the best plan for one problem costs by another: the first term of the objective."""
    found = plan(asked).plan
    if found is None:
        raise InvalidInputError(
            f"no plan to compare was found among {asked.plan_class}: `gapless plan` says which limits or "
            "rules of the measured problem are in the way"
        )
    return score(true, found).value(true.objective.terms[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedCosts:
    """What was learned of costs.

    Attributes
    ----------
    card
        How good the predictor is; None without training.
    left_out
        Networks that an engine could not run here, and why.
    """

    card: PredictorCard | None
    left_out: tuple[str, ...] = ()


def learn_costs(
    folder: str | Path,
    *,
    networks: Sequence[str | Path] | None = None,
    engines: Sequence[str] = ("mnn", "onnxruntime"),
    platform: Platform | None = None,
    measure: bool = True,
    train: bool = True,
    scope: Scope = LEARNING,
    report: Report = silent,
) -> LearnedCosts:
    """Measure a data set on this device and train a predictor on it; what is measured already is kept.

    What an engine cannot run here is left out, and named.

    Parameters
    ----------
    folder
        Where both go. Files of other devices, measured there, can be put beside those of this one.
    networks
        Built-in networks or ONNX files; None: the built-in ones that are not very large.
    engines
        What runs them.
    platform
        Device types as units; None: one core, all cores, and the core with quotas where those are permitted.
    measure, train
        Which of both to do.
    scope
        How much of each network is measured.
    report
        Told of each step.

    Returns
    -------
    LearnedCosts
        How good the predictor is, and what was left out.

    Raises
    ------
    InvalidInputError
        A network is not there, or too little was measured.
    ExecutionError, ProfilingError
        A unit is not what it stands for, or none of the networks could be run.
    """
    where = Path(folder)
    left_out: tuple[str, ...] = ()
    if measure:
        units = _device_types() if platform is None else platform
        names = _usual_networks() if networks is None else networks
        left_out = _measure(where, names, engines, units, scope=scope, report=report)
    if not train:
        return LearnedCosts(card=None, left_out=left_out)
    from ..profiler.learned.training import train as train_all

    return LearnedCosts(card=train_all(load_dataset(where), where, report=report), left_out=left_out)


def _measure(
    where: Path,
    networks: Sequence[str | Path],
    engines: Sequence[str],
    units: Platform,
    *,
    scope: Scope,
    report: Report,
) -> tuple[str, ...]:
    """Measure what a data set does not have yet; return what was left out, and why."""
    left_out: list[str] = []
    for name in networks:
        paths = {engine: data_path(where, _label(name), engine) for engine in engines}
        missing = [engine for engine, path in paths.items() if not path.exists()]
        models = [open_model(name)] if missing else []
        for engine in missing:
            try:
                found = describe(models, units, get_engine(engine), scope=scope, report=report)
            except LayerNotRunnableError as error:
                left_out.append(f"{_label(name)} with {engine} is left out: {error}")
                continue
            keep(found, paths[engine])
    if len(left_out) == len(networks) * len(engines) > 0:
        raise LayerNotRunnableError("\n".join(left_out))
    return tuple(left_out)


def _label(name: str | Path) -> str:
    return Path(name).stem if os.path.exists(name) else str(name)


def _usual_networks() -> tuple[str, ...]:
    names = (name for name in zoo_names() if zoo_entry(name).parameters <= MOST_PARAMETERS)
    return (*YARDSTICKS, *(name for name in names if name not in YARDSTICKS))


def _device_types() -> Platform:
    from ..executor.machine.quota import quota_availability

    found = this_device()
    single = next((unit for unit in found.units if len(unit.cores) == 1), found.units[0])
    widest = max(found.units, key=lambda unit: len(unit.cores))
    units = (single,) if widest == single else (single, widest)
    return data_platform(replace(found, units=units), *([] if quota_availability().ok else [()]))


def _subject(
    model: Planned, shapes: Shapes | None, method: PredictionMethod
) -> tuple[Network, NetworkFeatures]:
    if isinstance(model, str | Path):
        name = str(model).removeprefix(ZOO_PREFIX)
        if name in names_in_parts() and not os.path.exists(model):
            return table_features(name)
        if not (os.path.isfile(model) and str(model).endswith(".json")):
            model = open_model(model, shapes=shapes)
    if not isinstance(model, str | Path | Network | Problem):
        return model.network, features_of(model)
    network = network_of(model)
    if method is not PredictionMethod.FLOPS:
        raise InvalidInputError(
            f"{network.name!r} is a table that does not say what its operators are like: name the ONNX file "
            "or the built-in network instead, or predict from the operations alone with the method flops"
        )
    return network, work_alone(network)


def parse_method(text: str | PredictionMethod) -> PredictionMethod:
    """Return a method by its name."""
    try:
        return PredictionMethod(text)
    except ValueError:
        choices = ", ".join(PredictionMethod)
        raise InvalidInputError(f"the method is {text!r}, must be one of {choices}") from None


def _folder(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)

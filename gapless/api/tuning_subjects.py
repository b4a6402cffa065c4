"""What is tuned: models, the units that they run on, and tables of what they cost there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..executor.engine import Engine
from ..executor.engines.registry import engine_words, engines_on
from ..executor.graph.grouping import Granularity
from ..executor.machine.fingerprint import fingerprint
from ..executor.model import Model
from ..executor.progress import Ledger, Report
from ..executor.tuning.trust import TableFacts
from ..formulations.co_run import BUILT_IN_MODELS
from ..formulations.hardware import Platform
from ..formulations.operation import operation_of
from ..formulations.problem import Problem
from ..profiler.profile import Profile
from ..profiler.quality import defects
from .engines import EngineChoice, engines_of, resolve_engine
from .execution import models_for, placed, profiled_problem, resolve_model
from .groups import check_in_pieces, groupable, tables_of_groups
from .models import open_model
from .tuning_checks import check_powers


def opened(
    subject: Model | Problem | str | Path | Sequence[str | Path], *, in_pieces: bool = False
) -> dict[str, Model]:
    """Return the models that are tuned, by name."""
    if isinstance(subject, Problem):
        operation_of(subject).check_executable(subject)
        return models_for(subject)
    if in_pieces and isinstance(subject, str | Path):
        subject = open_model(subject, granularity=Granularity.PIECE)
    model = resolve_model(subject)
    if in_pieces:
        check_in_pieces(model)
    return {model.network.name: model}


def units_of(
    subject: object,
    platform: Platform | None,
    engine: EngineChoice,
    models: Mapping[str, Model],
    *,
    grouped: bool,
    traded: Sequence[str],
) -> tuple[Engine, Platform]:
    """Return the engine, and the units: those of a problem, those that are given, or those of this device.

    Raises
    ------
    InvalidInputError
        As for `placed`; groups, which compute a chunk together, are of one engine.
    """
    if isinstance(subject, Problem):
        return engines_of(subject, engine, *models.values())
    found, units = placed(
        resolve_engine(engine, *models.values()) if grouped else engine, platform, *models.values()
    )
    if grouped:
        groupable(units)
    check_powers(units, traded)
    return found, units


def setting_words(platform: Platform, engine: Engine) -> str:
    """Return what measurements depend on besides candidates: this machine, and the engines of the units."""
    return f"{fingerprint().digest} {engine_words(engines_on(platform.units, engine).values())}"


def tables_of(
    taken: Profile,
    model: Model,
    engine: Engine,
    first: str,
    *,
    groups: str | int | None,
    ledger: Ledger,
    report: Report,
) -> dict[str, Problem]:
    """Return the problem with each table of costs, the first one being that which plans are made from."""
    tables = {name: profiled_problem(taken, costs=name) for name in (first, *BUILT_IN_MODELS)}
    if groups is None:
        return tables
    return tables_of_groups(tables, taken, model, engine, groups, ledger=ledger, report=report)


def facts_of(taken: Profile) -> TableFacts:
    """Return what is known of measured tables."""
    unsteady = [bool(defects(one.busy)) for one in taken.measured]
    return TableFacts(
        sums_error=taken.check_error, unsteady=sum(unsteady) / len(unsteady) if unsteady else None
    )

"""What is tuned: models, the units that they run on, and tables of what they cost there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..executor.engine import Engine
from ..executor.engines.registry import engine_words, engines_on
from ..executor.graph.choices import Granularity
from ..executor.machine.fingerprint import fingerprint
from ..executor.model import Model, in_order_of, reordered
from ..executor.progress import Ledger, Report
from ..executor.tuning.trust import TableFacts
from ..formulations.co_run import BUILT_IN_MODELS
from ..formulations.hardware import Platform
from ..formulations.objective import Objective
from ..formulations.operation import operation_of
from ..formulations.problem import Problem
from ..formulations.reordering import order_words, parse_order
from ..profiler.profile import Profile
from ..profiler.quality import defects
from .engines import EngineChoice, engines_of, resolve_engine
from .execution import models_for, placed, profiled_problem, resolve_model
from .groups import check_in_pieces, groupable, tables_of_groups
from .layer_orders import with_layer_order
from .models import open_model
from .partitions import with_parts
from .side_by_side import with_side_by_side
from .tuning_checks import check_powers


def opened(subject: Model | Problem | str | Path, order: str, *, in_pieces: bool = False) -> dict[str, Model]:
    """Return the models that are tuned, by name.

    Raises InvalidInputError: an order that is given in numbers is not one of their layers; InvalidPlanError:
    their layers run in their own order only.
    """
    if isinstance(subject, Problem):
        operation_of(subject).check_executable(subject)
        models = models_for(subject)
    else:
        if in_pieces and isinstance(subject, str | Path):
            subject = open_model(subject, granularity=Granularity.PIECE)
        model = resolve_model(subject)
        if in_pieces:
            check_in_pieces(model)
        models = {model.network.name: model}
    for each in models.values() if order[:1].isdecimal() else ():
        reordered(each, parse_order(order, each.network))
    return models


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

    Raises InvalidInputError: as for `placed`; groups, which compute a chunk together, are of one engine.
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


def in_layer_order(
    tables: Mapping[str, Problem], models: Mapping[str, Model], order: str, goal: Objective
) -> tuple[dict[str, Problem], dict[str, Model]]:
    """Return tables and models with their layers in an order (`with_layer_order`).

    The best order is chosen by the first table, which plans are made from. Where the order is free, only that
    one has to be a single table, and the others are left out if they are not; where the latency counts, too,
    layers are side by side (`with_side_by_side`).
    """
    first = next(iter(tables))
    if order == "free":
        single = (name for name, table in tables.items() if name == first or table.co_run_costs is None)
        freed = with_side_by_side if goal.first == "latency" else with_parts
        return {name: freed(tables[name]) for name in single}, dict(models)
    if order == "fixed":
        return dict(tables), dict(models)
    chosen = order_words(with_layer_order(tables[first], order).network.order) or "fixed"
    found = {name: with_layer_order(table, chosen) for name, table in tables.items()}
    return found, {each.name: in_order_of(models[each.name], each) for each in found[first].networks}


def facts_of(taken: Profile) -> TableFacts:
    """Return what is known of measured tables."""
    unsteady = [bool(defects(one.busy)) for one in taken.measured]
    return TableFacts(
        sums_error=taken.check_error, unsteady=sum(unsteady) / len(unsteady) if unsteady else None
    )

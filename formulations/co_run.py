"""Co-run cost models: what a chunk takes when other units are busy, too (formulations, section 2).

Two tables are measured: each layer alone, and each layer while all other units run it as well. A plan
keeps some units busy, not all and not none. A model makes from both tables the one or the ones that a
problem is planned and judged with: one for all plans, or one for each number of units that a plan uses.

Whoever has a better idea registers a model of his own; everything that takes the name of a table of
costs then takes its name, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .costs import CostRows, CostTable, NetworkCosts, TransferRows, shape_of
from .errors import BackendFailedError, InvalidInputError, InvalidProblemError
from .hardware import Platform
from .plugins import PluginError, entry_point_names, load_entry_point
from .validation import meant, shown

ENTRY_POINT_GROUP = "gapless.co_run_models"

INTERPOLATED, LEARNED = "interpolated", "learned"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoRunCosts:
    """What a model makes: the costs of a problem."""

    costs: CostTable  # the table for plans on one unit, or for all plans
    beside: tuple[CostTable, ...] | None = None
    """Tables for plans that use 2, 3, ... units, or one for each set of units (`Problem.co_run_costs`); None:
    `costs` is for all."""

    def table(self, used: int) -> CostTable:
        """Return the table for plans that use a number of units, where they are told apart by that alone."""
        return self.costs if self.beside is None or used < 2 else self.beside[used - 2]


class CoRunModel(Protocol):
    """A way to tell what things cost beside others."""

    @property
    def name(self) -> str:
        """What it is called on the command line; a class variable will do."""
        ...

    @property
    def needs(self) -> frozenset[str]:
        """Methods of the measured tables that it reads: "isolated", "heavy"."""
        ...

    def combine(self, isolated: CostTable | None, heavy: CostTable | None, platform: Platform) -> CoRunCosts:
        """Return the costs that follow from the measured tables; those that it `needs` are there."""
        ...


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """A measured table as it is: `isolated` or `heavy`, whatever a plan uses."""

    name: str

    @property
    def needs(self) -> frozenset[str]:
        """The table that it is."""
        return frozenset({self.name})

    def combine(self, isolated: CostTable | None, heavy: CostTable | None, platform: Platform) -> CoRunCosts:
        """Return the table."""
        table = isolated if self.name == "isolated" else heavy
        assert table is not None
        return CoRunCosts(costs=table)


@dataclass(frozen=True, slots=True)
class Interpolated:
    """Between both tables, by how many of the units are in use.

    A plan that uses k of M units is charged isolated^(1-w) x heavy^w with w = (k - 1) / (M - 1), layer by
    layer and copy by copy, rounded once to whole microseconds. One unit alone is charged as alone, all
    units as all together. M counts the units that can run at once: of units that share cores one.
    """

    name: str = INTERPOLATED
    needs: frozenset[str] = frozenset({"isolated", "heavy"})

    def combine(self, isolated: CostTable | None, heavy: CostTable | None, platform: Platform) -> CoRunCosts:
        """Return one table for each number of used units.

        Raises InvalidProblemError: the tables are not of the same layers on the same units.
        """
        assert isolated is not None
        assert heavy is not None
        if shape_of(isolated) != shape_of(heavy):
            raise InvalidProblemError(
                "the isolated and the heavy table differ in units, batch, networks, or in which layers run "
                "where: they cannot be interpolated. Measure both in one profile"
            )
        alone, busy = isolated.provenance, heavy.provenance
        others = max(platform.most_at_once - 1, 1)
        notes = f"isolated^(1-w) x heavy^w with w = (used units - 1) / {others}"
        notes += "".join(f"; {told.method}: {told.notes}" for told in (alone, busy) if told.notes)
        tables = []
        for used in range(1, len(isolated.units) + 1):
            weight = min((used - 1) / others, 1.0)  # no valid plan uses more units than can run at once
            estimated = alone.estimated or busy.estimated or 0 < weight < 1
            hops = alone.hops and busy.hops
            told = replace(alone, method=self.name, estimated=estimated, notes=notes, hops=hops)
            tables.append(replace(_blended(isolated, heavy, weight), provenance=told))
        return CoRunCosts(costs=tables[0], beside=tuple(tables[1:]))


def _blended(isolated: CostTable, heavy: CostTable, weight: float) -> CostTable:
    """Return the weighted geometric mean of two tables of the same shape, in whole microseconds."""
    networks = [
        NetworkCosts(
            network=one.network,
            layer_us=_layers(one.layer_us, heavy.of(one.network).layer_us, weight),
            transfer_in_us=_transfers(one.transfer_in_us, heavy.of(one.network).transfer_in_us, weight),
            transfer_out_us=_transfers(one.transfer_out_us, heavy.of(one.network).transfer_out_us, weight),
        )
        for one in isolated.networks
    ]
    return replace(isolated, networks=tuple(networks))


def _layers(isolated: CostRows, heavy: CostRows, weight: float) -> CostRows:
    return tuple(
        tuple(
            None if a is None or b is None else max(1, _mean(a, b, weight))
            for a, b in zip(one, other, strict=True)
        )
        for one, other in zip(isolated, heavy, strict=True)
    )


def _transfers(isolated: TransferRows, heavy: TransferRows, weight: float) -> TransferRows:
    """Return the mean of two tables of copies, which may cost nothing, or not be there at all."""
    if not isolated and not heavy:
        return ()
    none = tuple((0,) * len(row) for row in isolated or heavy)
    return tuple(
        tuple(_mean(a, b, weight) for a, b in zip(one, other, strict=True))
        for one, other in zip(isolated or none, heavy or none, strict=True)
    )


def _mean(a: int, b: int, weight: float) -> int:
    if a == b:
        return a
    if not a or not b:  # a geometric mean would forget the other one
        return round((1 - weight) * a + weight * b)
    return round(math.exp((1 - weight) * math.log(a) + weight * math.log(b)))


_BUILT_IN: dict[str, CoRunModel] = {
    model.name: model for model in (MeasuredTable("isolated"), MeasuredTable("heavy"), Interpolated())
}
BUILT_IN_MODELS = tuple(_BUILT_IN)
"""Names of the models that come with gapless."""

_UNTAUGHT = Interpolated(LEARNED)
"""What `learned` is before any plan was executed (`profiler.prediction.learned`)."""

_REGISTERED: dict[str, CoRunModel] = {}


def possible_models(methods: Collection[str]) -> tuple[str, ...]:
    """Return the names of the built-in models that can do with tables measured by these methods."""
    return tuple(name for name, model in _BUILT_IN.items() if model.needs <= set(methods))


def co_run_model_names() -> tuple[str, ...]:
    """Return the names of all co-run cost models: built-in, registered, then entry points."""
    known = [*_BUILT_IN, LEARNED, *_REGISTERED, *entry_point_names(ENTRY_POINT_GROUP)]
    return tuple(dict.fromkeys(known))


def register_co_run_model(model: CoRunModel) -> None:
    """Make a model known by its name, in this process.

    Packages do it for good with the entry-point group `gapless.co_run_models`.

    Raises
    ------
    InvalidInputError
        The name is that of a built-in model.
    """
    if model.name in (*_BUILT_IN, LEARNED):
        raise InvalidInputError(f"the co-run cost model {model.name!r} is built in; choose another name")
    _REGISTERED[model.name] = model


def get_co_run_model(name: str) -> CoRunModel:
    """Return a model by name.

    Raises InvalidInputError: there is no such model.
    Raises BackendFailedError: an entry point could not be loaded.
    """
    model = _UNTAUGHT if name == LEARNED else _BUILT_IN.get(name) or _REGISTERED.get(name)
    if model is not None:
        return model
    if name not in entry_point_names(ENTRY_POINT_GROUP):
        raise InvalidInputError(
            f"no co-run cost model is called {shown(name)}; {meant(name, co_run_model_names())}"
        )
    try:
        loaded: CoRunModel = load_entry_point(
            ENTRY_POINT_GROUP, name, what="co-run cost model", like=CoRunModel
        )
    except PluginError as error:
        raise BackendFailedError(str(error)) from error
    return loaded


def combine(name: str, tables: Sequence[CostTable], platform: Platform) -> CoRunCosts:
    """Return the costs that a model makes from measured tables.

    `name`: of the model; `tables`: measured tables; their provenance says by which method; `platform`: the
    units.
    Raises InvalidInputError: there is no such model, or no table that it needs.
    """
    model = get_co_run_model(name)
    known = {table.provenance.method: table for table in tables}
    missing = sorted(model.needs - known.keys())
    if missing:
        raise InvalidInputError(
            f"the co-run cost model {name!r} needs the table {', '.join(missing)}; "
            f"measured are {', '.join(known) or 'none'}"
        )
    return model.combine(known.get("isolated"), known.get("heavy"), platform)

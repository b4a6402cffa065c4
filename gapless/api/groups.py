"""Problems of groups of devices: chunks of a network that several devices compute together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ..executor.graph.choices import Granularity
from ..executor.graph.tiling import Tiler
from ..formulations.cluster import Pipelines, parse_most
from ..formulations.cluster_platform import ClusterPlatform
from ..formulations.errors import InvalidInputError, InvalidPlanError
from ..formulations.groups import Cooperation
from ..formulations.hardware import Platform
from ..formulations.problem import Problem
from ..formulations.spatial import Axis
from ..formulations.terms import Objective
from ..profiler.profile import Method
from ..profiler.sampling import Effort
from ..profiler.tiles import measure_tiles
from .clusters import cluster_named, cluster_problem
from .problems import pipelines_of

if TYPE_CHECKING:
    from ..executor.engine import Engine
    from ..executor.graph.onnx_model import OnnxModel
    from ..executor.model import Model
    from ..executor.progress import Ledger, Report
    from ..profiler.profile import Profile
    from .models import Shapes

FixedShares = Mapping[tuple[str, int], float]
"""By unit and layer, which share of its time does not depend on how many rows are computed."""

TILES = Effort(min_repetitions=8, min_seconds=0.02, max_seconds=0.25, warm_up_repetitions=2)
"""How long each size of a tile is measured: there are four of each piece on each unit."""


def group_problem(
    model: Model | str | Path,
    platform: ClusterPlatform | str | Path,
    *,
    groups: str | int = "all",
    axis: str = "rows",
    interstage: bool = True,
    overlap: bool | None = None,
    over_graph: bool = False,
    batch: int = 1,
    shapes: Shapes | None = None,
    devices: Mapping[str, int] | None = None,
) -> Problem:
    """Return the problem of running a network over groups of devices that split feature maps (PICO).

    The layers of the network are its pieces: sets of operators in a chain, cut where halos are least. What
    they cost is estimated from operations and bytes, and marked so.

    Parameters
    ----------
    model
        An opened model with the granularity "piece", the path of an ONNX file, or the name of a built-in
        network.
    platform
        The devices: a cluster, as for `cluster_problem`.
    groups
        Most devices of a group: "all" or a number.
    axis
        "rows" or "columns": along which side maps are split.
    interstage
        Whether sending the result of a chunk to the next group takes time (PICO leaves it out).
    overlap
        Whether a group sends one result while it computes the next, as our runtime does; PICO's Eq. 11 adds
        both. None: as the cluster says.
    over_graph
        Whether chunks may begin and end anywhere in the graph, where that can be compared
        (`chunks_over_graph`), and not only between the pieces.
    batch, shapes, devices
        As for `cluster_problem`.

    Returns
    -------
    Problem
        Its objective is the period.

    Raises
    ------
    InvalidInputError
        There is no such model or cluster, one of them is not valid, or the model is no ONNX model in pieces.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.clusters.group_problem("squeezenet", "raspberry-pis")
    >>> problem.formulation.name, len(problem.platform.units)
    ('cooperation', 6)
    """
    opened, cluster = _opened(model, shapes), cluster_named(platform, devices)
    problem = cluster_problem(opened.network, cluster, batch=batch, pipelines="one")
    grouped = with_groups(
        problem, opened, groups=groups, axis=axis, interstage=interstage, overlap=overlap, batch=batch
    )
    found = replace(grouped, data=replace(grouped.data, idle_mw=cluster.idle_mw))
    return chunks_over_graph(found, opened) if over_graph else found


def with_groups(
    problem: Problem,
    model: Model,
    *,
    groups: str | int = "all",
    axis: str = "rows",
    interstage: bool = True,
    overlap: bool | None = None,
    batch: int = 1,
    fixed_shares: FixedShares | None = None,
) -> Problem:
    """Return a problem of one network with groups of its units, or devices, that serve chunks together.

    Units of one board (without links) may compute a chunk in steps, one after the other.

    Parameters
    ----------
    problem
        Of the pieces of the model on units or devices, measured or estimated.
    model
        The model, opened with the granularity "piece".
    groups, axis, interstage, overlap
        As for `group_problem`.
    batch
        For how many inferences at once the costs of the problem are.
    fixed_shares
        By unit and layer, which share of its time does not depend on how many rows are computed; None: none.

    Raises
    ------
    InvalidInputError
        The problem is of another kind or another network, has rules, or the model is not in pieces.
    """
    own = pipelines_of(problem, "groups")
    if problem.network.layer_names != model.network.layer_names:
        raise InvalidInputError(
            f"the problem is about other layers than the pieces of {model.network.name!r}: open the model "
            "with the granularity piece, and take its network for the problem"
        )
    divided = _opened(model)
    layers = (next(divided.makers[name] for name in op.outputs) for op in divided.graph.operators)
    pieces = (*(-1 for _ in divided.graph.inputs), *layers)
    given = own or Pipelines(overlap=False)
    devices = replace(
        given,
        overlap=given.overlap if overlap is None else overlap,
        most=None,
        switch_bytes_per_second=None,
    )
    data = Cooperation(
        spatial=divided.spatial().batched(batch),
        pieces=pieces,
        axis=axis,
        devices=devices,
        interstage=interstage,
        most_group=parse_groups(groups),
        fixed_us=() if fixed_shares is None else _fixed_us(problem, fixed_shares),
        steps=not devices.links,
    )
    return replace(problem, data=data, objective=Objective(terms=("period",)))


def chunks_over_graph(
    problem: Problem, model: Model, *, most_sets: int | None = None, time_limit_s: float | None = None
) -> Problem:
    """Return a problem of groups whose layers are the chunks of the best plan over the graph of a model.

    Plans are otherwise the best given the pieces of the network. Where its graph has few down-sets, all
    chains of them are compared; `problem.data.over_graph` says by how much the pieces lengthen the period.

    Parameters
    ----------
    problem
        From `group_problem` or `with_groups`: without rules, the period being the only objective.
    model
        The model that it is about.
    most_sets
        Most down-sets; None: a few hundred.
    time_limit_s
        When to give up.

    Raises
    ------
    InvalidInputError
        The graph has more down-sets, the time was up, or costs are not of a kind that can be shared out.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.clusters.group_problem("squeezenet", "raspberry-pis", over_graph=True)
    >>> found = problem.data.over_graph
    >>> gapless.plan(problem).objective == found.period_us <= found.given_pieces_us
    True
    """
    from ..solvers.families import search_of
    from ..solvers.protocol import Deadline, TimeIsUpError
    from .models import divided_by

    search = search_of(problem)
    if search is None or search.over_graph is None:
        raise InvalidInputError(
            f"{problem.formulation.label} have no plans over the graph: they are of groups"
        )
    try:
        chunks = search.over_graph(problem, most_sets, Deadline(time_limit_s))[0]
    except TimeIsUpError:
        raise InvalidInputError(
            f"the chunks of network {problem.network.name!r} were not compared in {time_limit_s:g} s: give "
            "more time, or plan given its pieces"
        ) from None
    network = divided_by(_opened(model), chunks.data.pieces).network
    if len(network.layers) != len(chunks.network.layers):
        raise InvalidInputError(
            f"the chunks of network {network.name!r} over the graph cannot be run one by one: plan given its "
            "pieces"
        )
    return replace(chunks, networks=(network,))


def parse_groups(groups: str | int) -> int | None:
    """Return the most units of a group from "all" (None) or a number."""
    return parse_most("groups", groups, {"all": None}, most=10**6)


def groupable(platform: Platform) -> tuple[str, ...]:
    """Return the units that can be in a group with another one."""
    names, conflicts = platform.unit_names, set(platform.conflicts)
    pairs = (pair for pair in combinations(range(len(names)), 2) if pair not in conflicts)
    able = sorted({unit for pair in pairs for unit in pair})
    if not able:
        raise InvalidInputError(
            f"no two of the units {', '.join(names)} can be in one group: each shares cores with all others; "
            "choose others with --units, or leave the groups out"
        )
    return tuple(names[unit] for unit in able)


def check_in_pieces(model: Model) -> None:
    """Refuse a model that cannot be planned for groups."""
    for ref in _opened(model).network.models:
        if ref.granularity != Granularity.PIECE:
            raise InvalidInputError(
                f"the layers of {model.network.name!r} are {ref.granularity}s, groups need pieces: open the "
                "model with granularity piece"
            )


def tables_of_groups(
    tables: Mapping[str, Problem],
    taken: Profile,
    model: Model,
    engine: Engine,
    groups: str | int,
    *,
    ledger: Ledger,
    report: Report,
) -> dict[str, Problem]:
    """Return the problem with each table of costs for groups of units; tiles are measured for it.

    `tables`, `taken`: the problem with each table, and the profile that these are from. Tables that tell the
    number of units in use apart are left out: groups know none.
    Raises ProfilingError, ExecutionError: a tile could not be measured.
    """
    usable = {name: problem for name, problem in tables.items() if problem.co_run_costs is None}
    if not usable or next(iter(tables)) not in usable:
        raise InvalidInputError(
            f"groups take one table of costs: plan with heavy or isolated, not with {next(iter(tables))}"
        )
    shares = _measured_shares(taken, model, engine, ledger=ledger, report=report)
    return {
        name: with_groups(problem, model, groups=groups, fixed_shares=shares)
        for name, problem in usable.items()
    }


def _measured_shares(
    taken: Profile, model: Model, engine: Engine, *, ledger: Ledger, report: Report
) -> FixedShares:
    """Measure tiles of every piece that splits, on every unit that another one can be in a group with."""
    platform, network = taken.platform, taken.network
    tiler, table = Tiler(model), taken.tables[0].of(network.name).layer_us
    bounds = pairwise([0, *network.legal_cuts, len(network.layers)])
    spans = [(start, stop) for start, stop in bounds if _splits(tiler, start, stop)]
    overhead_us = {fit.unit: fit.overhead_us for fit in taken.fits if fit.method is Method.ISOLATED}
    found: dict[tuple[str, int], float] = {}
    for unit in groupable(platform):
        at = platform.unit_names.index(unit)
        own = [span for span in spans if all(table[layer][at] is not None for layer in range(*span))]
        times = measure_tiles(
            model, platform, engine, own, units=[unit], effort=TILES, ledger=ledger, report=report
        )
        for each in times:
            share = each.fixed_share(overhead_us.get(each.unit, 0.0))
            found |= {(each.unit, layer): share for layer in range(*each.span)}
    return found


def _splits(tiler: Tiler, start: int, stop: int) -> bool:
    try:
        return tiler.rows(start, stop, Axis.ROWS) > 1
    except InvalidPlanError:
        return False


def _fixed_us(problem: Problem, shares: FixedShares) -> tuple[tuple[int, ...], ...]:
    names = problem.platform.unit_names
    rows = problem.costs.of(problem.network.name).layer_us
    return tuple(
        tuple(
            round((time_us or 0) * shares.get((unit, layer), 0.0))
            for unit, time_us in zip(names, row, strict=True)
        )
        for layer, row in enumerate(rows)
    )


def _opened(model: Model | str | Path, shapes: Shapes | None = None) -> OnnxModel:
    from ..executor.graph.onnx_model import OnnxModel
    from .models import open_model

    opened = open_model(model, shapes=shapes, granularity="piece") if isinstance(model, str | Path) else model
    if not isinstance(opened, OnnxModel):
        raise InvalidInputError("groups split feature maps of ONNX models; this model is of another kind")
    return opened

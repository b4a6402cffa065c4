"""Problems of the graph of a network: convex parts on units, and layers side by side for one request."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from math import isfinite

from ..formulations.branches import runs_of
from ..formulations.cluster import Pipelines
from ..formulations.costs import NetworkCosts, Provenance
from ..formulations.errors import InvalidInputError, InvalidProblemError
from ..formulations.hardware import ProcessingUnit
from ..formulations.network import Network, Tensor
from ..formulations.partitions import GraphNode, Partition, graph_problem
from ..formulations.problem import Problem
from ..formulations.task_graphs import TaskGraph
from ..formulations.terms import Objective
from ..formulations.validation import Defects
from .problems import Millis, pipelines_of


class Segments(StrEnum):
    """What is one task: each layer, or each run of layers between which no branch begins or ends."""

    LAYERS = "layers"
    BRANCHES = "branches"


def _begun(
    times_ms: Mapping[str, Sequence[Millis]],
    units: Sequence[str | ProcessingUnit],
    **more: Mapping[str, object],
) -> tuple[tuple[ProcessingUnit, ...], Defects]:
    """Return the units of a table of layers, and what is wrong with the names of other tables by layer."""
    defects = Defects("the layer graph")
    for field, named in more.items():
        for name in named:
            if name not in times_ms:
                defects.add(f"{field} names {name!r}, which is no layer")
    return tuple(u if isinstance(u, ProcessingUnit) else ProcessingUnit(name=u) for u in units), defects


def _graph_of(problem: Problem, plans: str) -> Pipelines | None:
    """Return the devices of a problem of one network whose graph is planned; None: it is of units.

    Raises InvalidInputError: as for `pipelines_of`; it has several tables of costs, or no graph.
    """
    devices, network = pipelines_of(problem, plans), problem.network
    if problem.co_run_costs is not None:
        raise InvalidInputError(f"{plans} take one table of costs: choose heavy or isolated with --costs")
    if not network.tensors and len(network.layers) > 1:
        raise InvalidInputError(
            f"network {network.name!r} does not say which layer reads from which: it has no tensors, and so "
            "one order only"
        )
    return devices


def layer_graph(
    times_ms: Mapping[str, Sequence[Millis]],
    edges: Iterable[tuple[str, str]],
    units: Sequence[str | ProcessingUnit],
    *,
    transfers_ms: Mapping[str, float | Sequence[float]] | None = None,
    sizes: Mapping[str, int] | None = None,
    colours: Mapping[str, Hashable] | None = None,
    backward: Collection[str] = (),
    network: str = "network",
    platform: str = "platform",
    source: str = "",
) -> Problem:
    """Return the problem of cutting a graph of layers into convex parts, at most one for each unit.

    The period is the largest load of a unit: its layers, and each tensor once of which it holds some ends but
    not all.

    Parameters
    ----------
    times_ms
        By layer the time on each unit, milliseconds; None: the unit cannot run it; 0 on all units: it takes
        no time.
    edges
        (maker, reader) by name.
    units
        Names of the columns, or `ProcessingUnit`s; those with `memory_bytes` hold no more layers than fit.
    transfers_ms
        What it takes a unit to send or receive what a layer makes: one number for all units, or one each.
        Layers that are not named send at no cost.
    sizes
        Bytes that a layer takes of the memory of its unit.
    colours
        Layers of one colour are in one part.
    backward
        Layers of the backward pass: they are where the forward layers of their colours are.
    network, platform
        Names.
    source
        Where the times come from.

    Raises
    ------
    InvalidProblemError
        A name is not there, edges make a circle, or a number is not valid; all are named.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.graphs.layer_graph(
    ...     {"a1": [3, 3], "b1": [3, 3], "a2": [3, 3], "b2": [3, 3]},
    ...     [("a1", "a2"), ("b1", "b2")],
    ...     ["gpu", "npu"],
    ...     transfers_ms={"a1": 1, "b1": 1},
    ... )
    >>> gapless.plan(problem).objective
    6000
    """
    sends, sizes, colours = transfers_ms or {}, sizes or {}, colours or {}
    built, defects = _begun(times_ms, units, transfers_ms=sends, sizes=sizes, colours=colours)
    for name in set(backward) - set(times_ms):
        defects.add(f"backward names {name!r}, which is no layer")
    nodes = [
        GraphNode(
            name=name,
            times_us=row_us(f"layer {name!r}", row, len(built), defects),
            sends_us=tuple(us or 0 for us in _sends_us(name, sends.get(name, 0), len(built), defects)),
            bytes=sizes.get(name, 0),
            colour=colours.get(name),
            backward=name in backward,
        )
        for name, row in times_ms.items()
    ]
    defects.raise_as(InvalidProblemError)
    return graph_problem(
        nodes,
        edges,
        built,
        network=network,
        platform=platform,
        provenance=Provenance(source=source, method="table of milliseconds"),
    )


def _sends_us(
    name: str, given: float | Sequence[float], width: int, defects: Defects
) -> tuple[int | None, ...]:
    row = (given,) * width if isinstance(given, int | float) else given
    return row_us(f"transfers_ms of {name!r}", row, width, defects)


def row_us(field: str, row: Sequence[Millis], width: int, defects: Defects) -> tuple[int | None, ...]:
    """Return milliseconds by unit in microseconds, at least 1 unless 0; adds what is wrong to `defects`."""
    if len(row) != width:
        defects.add(f"{field} has {len(row)} times, needs one for each of the {width} units")
    found: list[int | None] = []
    for time in row:
        right = time is None or (isinstance(time, int | float) and isfinite(time) and time >= 0)
        if not right:
            defects.add(f"{field}: {time!r} ms; a time is a number of at least 0, or None")
        found.append(None if time is None or not right else max(1, round(time * 1000)) if time else 0)
    return tuple(found)


def with_parts(problem: Problem) -> Problem:
    """Return a problem of one network with its graph in convex parts in place of chunks of one order.

    What a tensor costs a unit follows from the table of costs: the bytes of the tensor at the rate of the
    copies in it; over devices, at the speed of the slowest link of the device. The memory of a unit holds
    weights.
    Layers around a forbidden cut stay together.

    Parameters
    ----------
    problem
        Of one network on units or devices, with one table of costs.

    Raises
    ------
    InvalidInputError
        It is of another kind, has rules, several tables of costs, or a network without tensors.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.graphs.with_parts(gapless.load_problem("pixel7a/alexnet-sparse"))
    >>> problem.formulation.name
    'partition'
    """
    devices, network = _graph_of(problem, "convex parts"), problem.network
    costs = problem.costs.of(network.name)
    if devices is not None and devices.links:
        rates = _link_rates(devices, problem.platform.unit_names)
    else:
        rates = _copy_rates(costs, network.boundary_bytes)
    rows = tuple(tuple(round(tensor.bytes * rate) for rate in rates) for tensor in network.tensors)
    return replace(
        problem,
        data=Partition(
            tensor_us=rows if any(map(any, rows)) else (),
            over_links=devices is not None and bool(devices.links or devices.inner),
        ),
        objective=Objective(terms=("period",)),
    )


def _copy_rates(costs: NetworkCosts, boundary_bytes: Sequence[int]) -> tuple[float, ...]:
    """Return microseconds a byte of each unit, from what copying takes at all boundaries together."""
    tables = [rows for rows in (costs.transfer_in_us, costs.transfer_out_us) if rows]
    total = max(1, sum(boundary_bytes)) * max(1, len(tables))
    units = range(len(costs.layer_us[0]))
    return tuple(sum(row[unit] for rows in tables for row in rows) / total for unit in units)


def _link_rates(devices: Pipelines, names: Sequence[str]) -> tuple[float, ...]:
    """Return microseconds a byte of the slowest link of each device."""
    link = devices.linker(names)
    slowest = []
    for name in names:
        found = [link(*ends) for other in names if other != name for ends in ((name, other), (other, name))]
        speeds = [each.bytes_per_second for each in found if each is not None]
        slowest.append(1e6 / min(speeds) if speeds else 0.0)
    return tuple(slowest)


def latency_graph(
    times_ms: Mapping[str, Sequence[Millis]],
    edges: Iterable[tuple[str, str]],
    units: Sequence[str | ProcessingUnit],
    *,
    transfers_ms: Mapping[str, float | Mapping[tuple[str, str], float]] | None = None,
    sizes: Mapping[str, int] | None = None,
    network: str = "network",
    platform: str = "platform",
    source: str = "",
) -> Problem:
    """Return the problem of running a graph of layers once, side by side, as soon as possible.

    Parameters
    ----------
    times_ms
        By layer the time on each unit, milliseconds, more than 0; None: the unit cannot run it.
    edges
        (maker, reader) by name.
    units
        Names of the columns, or `ProcessingUnit`s. Units that share cores take turns; those with
        `memory_bytes` hold no more layers than fit.
    transfers_ms
        What it takes from the end of a layer until what it makes is on another unit: one number for all
        pairs of units, or by (from, to); pairs and layers that are not named send at no cost.
    sizes
        Bytes that a layer takes of the memory of its unit.
    network, platform
        Names.
    source
        Where the times come from.

    Raises
    ------
    InvalidProblemError
        A name is not there, edges make a circle, or a number is not valid; all are named.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.graphs.latency_graph(
    ...     {"stem": [4, 2], "left": [6, 3], "right": [5, 9], "head": [2, 1]},
    ...     [("stem", "left"), ("stem", "right"), ("left", "head"), ("right", "head")],
    ...     ["cpu", "gpu"],
    ...     transfers_ms={"stem": 1, "left": 1, "right": {("cpu", "gpu"): 0.5}},
    ... )
    >>> gapless.plan(problem).objective
    9500
    """
    sends, sizes = transfers_ms or {}, sizes or {}
    built, defects = _begun(times_ms, units, transfers_ms=sends, sizes=sizes)
    nodes = []
    for name, row in times_ms.items():
        times = row_us(f"layer {name!r}", row, len(built), defects)
        if 0 in times:
            defects.add(f"layer {name!r} takes 0 ms; a time is more than 0, or None")
        nodes.append(GraphNode(name=name, times_us=times, bytes=sizes.get(name, 0)))
    names = tuple(unit.name for unit in built)
    squares = {name: _square_us(name, given, names, defects) for name, given in sends.items()}
    defects.raise_as(InvalidProblemError)
    provenance = Provenance(source=source, method="table of milliseconds")
    problem = graph_problem(nodes, edges, built, network=network, platform=platform, provenance=provenance)
    nothing = ((0,) * len(names),) * len(names)
    rows = tuple(squares.get(tensor.name, nothing) for tensor in problem.network.tensors)
    return _timed(problem, TaskGraph(transfer_us=rows if any(row != nothing for row in rows) else ()))


def _square_us(
    name: str, given: float | Mapping[tuple[str, str], float], units: Sequence[str], defects: Defects
) -> tuple[tuple[int, ...], ...]:
    if isinstance(given, Mapping):
        for pair in given:
            if not (isinstance(pair, tuple) and len(pair) == 2 and {*pair} <= {*units}):
                defects.add(f"transfers_ms of {name!r} names {pair!r}; pairs are of {', '.join(units)}")
    pairs = given if isinstance(given, Mapping) else {(u, v): given for u in units for v in units}
    return tuple(
        tuple(
            us or 0
            for us in row_us(
                f"transfers_ms of {name!r}",
                [0 if source == target else pairs.get((source, target), 0) for target in units],
                len(units),
                defects,
            )
        )
        for source in units
    )


def with_side_by_side(problem: Problem, *, segments: str = Segments.LAYERS) -> Problem:
    """Return a problem of one network with its layers side by side for one request, in place of chunks.

    What a tensor takes from one unit to another follows from the table of costs: its bytes at the rates of
    the copies out of one and into the other; over devices, the time of the link. Layers around a forbidden
    cut stay together. Units that share cores take turns.

    Parameters
    ----------
    problem
        Of one network on units or devices, with one table of costs.
    segments
        "layers", or "branches": runs of layers that each read from the one before alone, which nobody else
        reads from, are one task. That makes the problem smaller, and its best plan may be worse: such a run
        neither changes units nor lets another task in between. The bound of the problem of layers says what
        that loses at most.

    Raises
    ------
    InvalidInputError
        It is of another kind, has rules, several tables of costs, or says nothing of its tensors; two devices
        have no link; `segments` is something else.

    Examples
    --------
    >>> import gapless
    >>> problem = gapless.graphs.with_side_by_side(gapless.load_problem("pixel7a/alexnet-sparse"))
    >>> problem.objective.terms
    ('latency',)
    """
    devices, network = _graph_of(problem, "layers side by side"), problem.network
    if segments not in tuple(Segments):
        raise InvalidInputError(f"segments is {segments!r}, must be {' or '.join(Segments)}")
    if devices is not None and devices.links:
        data = _over_links(network, devices, problem.platform.unit_names)
    else:
        data = _by_copies(network, problem.costs.of(network.name))
    if segments == Segments.BRANCHES:
        data = replace(data, segments=tuple(run for run in runs_of(network) if len(run) > 1))
    return _timed(problem, data)


def _timed(problem: Problem, data: TaskGraph) -> Problem:
    return replace(problem, data=data, objective=Objective(terms=("latency",)))


def _by_copies(network: Network, costs: NetworkCosts) -> TaskGraph:
    """Return what tensors take at the rates of the copies in a table: out of one unit, into the other."""
    total, units = max(1, sum(network.boundary_bytes)), range(len(costs.layer_us[0]))

    def rates(rows: Sequence[Sequence[int]]) -> list[float]:
        return [sum(row[unit] for row in rows) / total if rows else 0.0 for unit in units]

    into, out = rates(costs.transfer_in_us), rates(costs.transfer_out_us)
    if not any(into) and not any(out):
        return TaskGraph()
    return TaskGraph(
        transfer_us=tuple(
            tuple(
                tuple(0 if u == v else round(tensor.bytes * (out[u] + into[v])) for v in units) for u in units
            )
            for tensor in network.tensors
        ),
        outside_us=tuple(
            tuple(round(tensor.bytes * rate) for rate in (into if tensor.source < 0 else out))
            for tensor in network.tensors
        ),
    )


def _over_links(network: Network, devices: Pipelines, names: Sequence[str]) -> TaskGraph:
    """Return what tensors take over links; what comes in and leaves goes from and to the host."""
    link = devices.linker(names)

    def time_us(tensor: Tensor, source: str, target: str) -> int:
        if source == target:
            return 0
        found = link(source, target)
        if found is None:
            raise InvalidInputError(
                f"{source!r} has no link to {target!r}: side by side, each device sends to each other one"
            )
        return found.time_us(tensor.bytes)

    host = devices.host
    return TaskGraph(
        transfer_us=tuple(
            tuple(tuple(time_us(tensor, u, v) for v in names) for u in names) for tensor in network.tensors
        ),
        outside_us=tuple(
            tuple(time_us(tensor, *((host, unit) if tensor.source < 0 else (unit, host))) for unit in names)
            for tensor in network.tensors
        )
        if host
        else (),
        over_links=True,
    )

"""Problems of convex parts: a network whose graph is cut, not one order of its layers."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite

from ..formulations.cluster import Pipelines
from ..formulations.costs import NetworkCosts, Provenance
from ..formulations.errors import InvalidInputError, InvalidProblemError
from ..formulations.hardware import ProcessingUnit
from ..formulations.layer_graphs import GraphNode, graph_problem
from ..formulations.objective import Objective
from ..formulations.partitions import Partition
from ..formulations.problem import Problem
from ..formulations.validation import Defects
from .problems import Millis, refuse_rules


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
    built = tuple(u if isinstance(u, ProcessingUnit) else ProcessingUnit(name=u) for u in units)
    sends, sizes, colours = transfers_ms or {}, sizes or {}, colours or {}
    defects = Defects("the layer graph")
    for field, named in (("transfers_ms", sends), ("sizes", sizes), ("colours", colours)):
        for name in named:
            if name not in times_ms:
                defects.add(f"{field} names {name!r}, which is no layer")
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
    devices = problem.data if isinstance(problem.data, Pipelines) else None
    if problem.data is not None and devices is None:
        raise InvalidInputError(
            f"parts are of one network; {problem.formulation.label} are about something else"
        )
    refuse_rules(problem, "convex parts")
    if problem.co_run_costs is not None:
        raise InvalidInputError("parts take one table of costs: choose heavy or isolated with --costs")
    network = problem.network
    if not network.tensors and len(network.layers) > 1:
        raise InvalidInputError(
            f"network {network.name!r} does not say which layer reads from which: it has no tensors, and so "
            "one order only"
        )
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

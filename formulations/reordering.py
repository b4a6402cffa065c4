"""Problems of one network with its layers in another order: the same layers, costs and units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from statistics import fmean

from .cluster import Pipelines
from .costs import CostTable, NetworkCosts, TransferRows
from .errors import InvalidInputError
from .network import Network
from .problem import Problem
from .validation import shown


def reordered(problem: Problem, order: Sequence[int]) -> Problem:
    """Return a problem of one network with its layers in another topological order.

    What copying takes at a boundary that is new follows from the bytes that are alive there: by the line
    through what it takes at the boundaries of the table. Where the same layers are before a boundary as
    before, it is what was measured.

    `problem`: of chunks of one network, on the units of a device or over devices; without rules. `order`: the
    index of each layer, in their new order.
    Raises InvalidProblemError: a layer would stand before one that it reads from.
    """
    network = problem.network
    moved = network.reordered(order)

    def table(costs: CostTable) -> CostTable:
        return replace(costs, networks=(_costs(costs.of(network.name), order, network, moved),))

    data = problem.data
    if isinstance(data, Pipelines):
        inner = (replace(one, costs=_costs(one.costs, order, network, moved)) for one in data.inner)
        data = replace(data, inner=tuple(inner))
    return replace(
        problem,
        networks=(moved,),
        costs=table(problem.costs),
        co_run_costs=None if problem.co_run_costs is None else tuple(map(table, problem.co_run_costs)),
        data=data,
    )


def _costs(costs: NetworkCosts, order: Sequence[int], network: Network, moved: Network) -> NetworkCosts:
    return replace(
        costs,
        layer_us=tuple(costs.layer_us[layer] for layer in order),
        transfer_in_us=_transfers(costs.transfer_in_us, order, network, moved),
        transfer_out_us=_transfers(costs.transfer_out_us, order, network, moved),
    )


def _transfers(rows: TransferRows, order: Sequence[int], network: Network, moved: Network) -> TransferRows:
    """Return what copying takes at each boundary of the new order."""
    if not rows:
        return ()
    lines = [_line(network.boundary_bytes, column) for column in zip(*rows, strict=True)]
    found, last, sizes = [rows[0]], -1, moved.boundary_bytes
    for boundary, layer in enumerate(order, start=1):
        last = max(last, layer)
        new = tuple(round(base + sizes[boundary] * rate) for base, rate in lines)
        found.append(rows[boundary] if last == boundary - 1 else new)
    return tuple(found)


def _line(sizes: Sequence[int], times: Sequence[int]) -> tuple[float, float]:
    """Return (a, b), none negative, of the line a + b size that is nearest to some times: least squares."""
    mean_size, mean_time = fmean(sizes), fmean(times)
    spread = sum((size - mean_size) ** 2 for size in sizes)
    together = sum((size - mean_size) * time for size, time in zip(sizes, times, strict=True))
    slope = max(0.0, together / spread) if spread else 0.0
    if mean_time < slope * mean_size:
        return 0.0, mean_time / mean_size
    return mean_time - slope * mean_size, slope


def order_words(order: Sequence[int]) -> str:
    """Return an order of layers in words, such as "0-2,5,3-4"."""
    runs = groupby(enumerate(order), key=lambda place: place[1] - place[0])
    found = ([layer for _, layer in run] for _, run in runs)
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in found)


def parse_order(text: str, network: Network) -> tuple[int, ...]:
    """Return an order of the layers of a network that is given in words.

    `text`: as `order_words` writes it: numbers as in the model or the table that the network was first.
    The result has the layers as they are numbered now, in that order.
    """
    count = len(network.layers)
    given: list[int] = []
    for run in text.split(","):
        first, _, last = run.strip().partition("-")
        if not all(end.isdecimal() and len(end) < 7 for end in (first, last or first)):
            raise InvalidInputError(
                f"an order of layers is {shown(text)}, must be numbers and ranges such as 0-2,5,3-4"
            )
        given += range(int(first), min(int(last or first), count) + 1)
    if sorted(given) != [*range(count)]:
        raise InvalidInputError(
            f"an order of layers is {shown(text)}, must name each of the layers 0 to {count - 1} of "
            f"{network.name!r} once"
        )
    now, names = network.order or range(count), network.layer_names
    numbers = {number: layer for layer, number in enumerate(now)}
    order = tuple(numbers[number] for number in given)
    place = {layer: position for position, layer in enumerate(order)}
    for tensor in network.tensors:
        for target in tensor.targets if tensor.source >= 0 else ():
            if target < count and place[target] < place[tensor.source]:
                raise InvalidInputError(
                    f"an order of layers has layer {now[target]} ({names[target]}) before layer "
                    f"{now[tensor.source]} ({names[tensor.source]}), from which it reads"
                )
    return order

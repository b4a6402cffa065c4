"""Whose time is it: times of an engine's operators, given to the layers of the network."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..executor.engine import OperatorTime

MAX_CALLBACK_US = 10.0
"""Most that a callback into Python can take; 1 to 2 us were measured on a fast core."""

_APPENDED = re.compile(r"(_raster_\d+|__matmul_converted)+$")
"""What MNN appends to the name of a tensor for the operators that it makes of one operator."""

LayerOf = Callable[[str], int | None]
"""From the name of a tensor to the index of the layer that makes it."""


def without_callbacks(operators: Sequence[OperatorTime], whole_us: float) -> tuple[OperatorTime, ...]:
    """Take the cost of the engine's callbacks out of the times of operators.

    It is the same for each operator, so it counts most in the shortest ones. It is what all operators take
    more in sum than the undisturbed run, within `MAX_CALLBACK_US`: what is beyond has other causes, and is
    left to the factor that fits layers to the whole.
    """
    excess_us = (sum(operator.time_us for operator in operators) - whole_us) / len(operators)
    callback_us = min(max(0.0, excess_us), MAX_CALLBACK_US)
    return tuple(
        replace(operator, time_us=max(0.0, operator.time_us - callback_us)) for operator in operators
    )


def attribute(
    operators: Sequence[OperatorTime], layer_of: LayerOf, *, layers: range, prefix: str = ""
) -> list[float] | None:
    """Return the time of each layer, microseconds, in the order of `layers`; None: no operator is known.

    Engines fuse operators (only the last output keeps its name) and add some of their own (conversions
    of layout), whose names are those of a tensor with something appended, or are made up. Operators run in
    order, so one whose output is unknown belongs to the layer of the next one that is known: it prepares
    it. Those after the last known one belong to that.

    `operators`: in the order in which they ran; `prefix`: what precedes the names of the engine's tensors in
    the network.
    """
    times = [0.0] * len(layers)
    unknown = 0.0
    last = None
    for operator in operators:
        layer = layer_of(prefix + operator.output)
        if layer is None:
            layer = layer_of(prefix + _APPENDED.sub("", operator.output))
        if layer is None or layer not in layers:
            unknown += operator.time_us
            continue
        last = layer - layers.start
        times[last] += operator.time_us + unknown
        unknown = 0.0
    if last is None:
        return None
    times[last] += unknown
    return times

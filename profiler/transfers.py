"""What it costs to cross a boundary: copies by bytes and number of tensors, fitted to measured copies.

The cost table has one number a boundary and unit, but a chunk copies in only those tensors alive at its
start that it uses itself, and copies out only those alive at its end that it makes itself; the rest
passes by in the task slot. So a tensor counts with the share of the chunks between legal cuts that start
(or end) at the boundary and do copy it: one that is used at once counts in full, one that skips far ahead
counts little. A chunk that reaches further than most pays a little too little, a short one too much.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ..formulations.network import Network
from ..formulations.validation import FileContent

LEAST_US = 5.0
"""Copies shorter than this count as this long when errors are weighted: they are mostly clock and noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is copied at a boundary; fractions where only some chunks copy a tensor."""

    tensors: float
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyModel(FileContent):
    """Time of a copy: `per_tensor_us` for each tensor and `per_mebibyte_us` for each 2^20 bytes."""

    per_tensor_us: float
    per_mebibyte_us: float
    """Fitted coefficients, never negative."""
    error: float
    """Mean relative error over the measured copies (shorter ones than `LEAST_US` count as that long)."""
    copies: int
    """How many copies it was fitted to."""

    def time_us(self, load: Load) -> float:
        """Return the time of a copy in microseconds."""
        return self.per_tensor_us * load.tensors + self.per_mebibyte_us * load.bytes / 2**20

    def scaled(self, ratio: float) -> CopyModel:
        """Return the model of copies that take `ratio` times as long."""
        return replace(
            self,
            per_tensor_us=self.per_tensor_us * ratio,
            per_mebibyte_us=self.per_mebibyte_us * ratio,
        )


def fit_copies(copies: Sequence[tuple[Load, float]]) -> CopyModel:
    """Fit the copy model to measured copies (what, microseconds): least relative squares, none negative.

    With two coefficients, the best non-negative ones are the best of the fits that use both, one or none.
    """
    if not copies:
        return CopyModel(per_tensor_us=0.0, per_mebibyte_us=0.0, error=0.0, copies=0)
    import numpy as np

    loads = np.array([(load.tensors, load.bytes / 2**20) for load, _ in copies])
    times = np.array([time_us for _, time_us in copies])
    weights = 1.0 / np.maximum(times, LEAST_US)
    best, least = np.zeros(2), float("inf")
    for columns in [columns for count in (2, 1, 0) for columns in combinations((0, 1), count)]:
        found = np.zeros(2)
        if columns:
            found[list(columns)] = np.linalg.lstsq(
                loads[:, columns] * weights[:, None], times * weights, rcond=None
            )[0]
        loss = float(np.sum(((loads @ found - times) * weights) ** 2))
        if (found >= 0).all() and loss < least:
            best, least = found, loss
    errors = np.abs(loads @ best - times) * weights
    return CopyModel(
        per_tensor_us=float(best[0]),
        per_mebibyte_us=float(best[1]),
        error=float(errors.mean()),
        copies=len(copies),
    )


def loads_in(network: Network, models: Sequence[range]) -> tuple[Load, ...]:
    """Return what a chunk copies in on average, by boundary 0..n at which it starts.

    `models`: the layers of each model that the network consists of: copies belong to one model.
    """
    found = []
    for boundary in range(len(network.layers)):
        model = next(model for model in models if boundary in model)
        stops = [c for c in (*network.legal_cuts, model.stop) if boundary < c <= model.stop]
        alive = (
            (tensor.bytes, min(t for t in tensor.targets if t >= boundary))
            for tensor in network.tensors
            if tensor.source < boundary <= max(tensor.targets)
        )
        # a chunk copies in what it uses before its stop
        found.append(_weighted((size, 1 - bisect_right(stops, used) / len(stops)) for size, used in alive))
    return (*found, Load(tensors=0.0, bytes=0.0))


def loads_out(network: Network, models: Sequence[range]) -> tuple[Load, ...]:
    """Return what a chunk copies out on average, by boundary 0..n at which it stops; see `loads_in`."""
    found = [Load(tensors=0.0, bytes=0.0)]
    for boundary in range(1, len(network.layers) + 1):
        model = next(model for model in models if boundary - 1 in model)
        starts = [c for c in (model.start, *network.legal_cuts) if model.start <= c < boundary]
        alive = (
            (tensor.bytes, tensor.source)
            for tensor in network.tensors
            if 0 <= tensor.source < boundary <= max(tensor.targets)
        )
        # a chunk copies out what it makes at or after its start
        found.append(_weighted((size, bisect_right(starts, made) / len(starts)) for size, made in alive))
    return tuple(found)


def _weighted(alive: Iterable[tuple[int, float]]) -> Load:
    shares = [(size, share) for size, share in alive if share > 0]
    return Load(tensors=sum(share for _, share in shares), bytes=sum(size * share for size, share in shares))

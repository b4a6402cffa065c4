"""What was measured of a device, and the few numbers that stand for it.

A description holds the times of some whole networks, and of some of their shards (consecutive layers), on
each unit of a device. The embedding of a unit is the linear regression of these times on sums of features:

    time = sum_k w_k s_k + w_session,

least squares of relative errors, no w negative, drawn gently to the unit's overall speed times `REFERENCE`,
so that it is well-conditioned however few networks were measured. EPipe (3.1.1) regresses likewise, and uses
w as the embedding of the device; the predictors read logarithms of it (`Embedding.vector`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...formulations.errors import InvalidInputError
from ...formulations.files import Schema
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.validation import Defects, FileContent
from ..transfers import CopyModel, Load, fit_copies
from .features import STATISTICS, NetworkFeatures

if TYPE_CHECKING:
    from numpy.typing import NDArray

REFERENCE = (30e-6, 150e-6, 30e-6, 250e-6, 150e-6, 1.0, 10.0)
"""Microseconds for each of `STATISTICS` (a MAC, a byte, an operator) and for a session, of a usual core: only
a scale, and what a unit is drawn to where nothing was measured that would tell."""

RIDGE = 0.02
"""How strongly it is drawn there: weight of one coefficient beside that of one measured time."""

_FARTHEST = 8.0
"""How far a weight may be from the usual ones: what is beyond is a regression that could not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTime(FileContent):
    """Layers [start, stop) that ran in a session of their own, microseconds."""

    start: int
    stop: int
    """Which layers."""
    run_us: float
    """Without copies."""
    copy_in_us: float
    copy_out_us: float
    """The copies."""
    load_in: tuple[float, float]
    load_out: tuple[float, float]
    """What was copied: (tensors, bytes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTimes(FileContent):
    """One network on one unit."""

    unit: str
    network: str
    """Where, and what."""
    spans: tuple[SpanTime, ...]
    """The whole, and shards."""
    layer_us: tuple[float, ...] = ()
    """Each layer as a part of the whole; empty: not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding(FileContent):
    """What stands for a unit."""

    unit: str
    """Its name."""
    weights: tuple[float, ...]
    """Microseconds for each of `STATISTICS`, and for a session."""
    macs_weight: float
    """Microseconds a MAC, where nothing but MACs counts (PICO)."""
    error: float
    """Mean relative error of the regression over the times that it was fitted to."""
    copy_in: CopyModel
    copy_out: CopyModel
    """Cost of copies."""

    def linear_us(self, features: NetworkFeatures) -> NDArray[Any]:
        """Return the time of each layer as the regression says it."""
        import numpy as np

        found: NDArray[Any] = features.statistics() @ np.array(self.weights[: len(STATISTICS)])
        return found

    @property
    def session_us(self) -> float:
        """What a session takes on top of its layers."""
        return self.weights[-1]

    def vector(self) -> NDArray[Any]:
        """Return what predictors read: logarithms of weights relative to `REFERENCE` and overall speed.

        A device that is slower throughout has the same vector: what is learned holds for it, too.
        """
        import numpy as np

        ratios = np.array(self.weights) / np.array(REFERENCE)
        usual = np.exp(np.log(np.maximum(ratios, 1e-9))[: len(STATISTICS)].mean())
        logs = np.log(np.clip(ratios / usual, 1 / _FARTHEST, _FARTHEST))
        found: NDArray[Any] = logs.round(3).astype(np.float32)  # no tree tells rounding errors apart
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDescription(FileContent):
    """Measured times of some networks on the units of a device."""

    platform: Platform
    """Its units."""
    engine: str
    device: str
    taken_at: str
    """Who ran the networks (with its version), on what, and when."""
    networks: tuple[NetworkFeatures, ...]
    """Features of the networks that were run."""
    times: tuple[NetworkTimes, ...]
    """By network and unit."""
    embeddings: tuple[Embedding, ...] = ()
    """By unit; empty in files of a data set, from which predictors are trained."""
    notes: tuple[str, ...] = ()
    """What a reader should know: emulated units, networks that could not be run."""

    def __post_init__(self) -> None:
        defects = Defects(f"description of device {self.platform.name!r}")
        layers = {one.network: len(one.kinds) for one in self.networks}
        for entry in self.times:
            where = f"times of {entry.network!r} on {entry.unit!r}"
            if entry.network not in layers or entry.unit not in self.platform.unit_names:
                defects.add(f"{where}: the network or the unit is not described")
            elif any(not 0 <= one.start < one.stop <= layers[entry.network] for one in entry.spans):
                defects.add(f"{where}: a span lies outside of its {layers[entry.network]} layers")
            if any(not one.run_us > 0 for one in entry.spans):
                defects.add(f"{where}: a time is not above 0")
        known = {one.unit for one in self.embeddings}
        if self.embeddings and known != set(self.platform.unit_names):
            defects.add(f"the embeddings are of {sorted(known)}, the units are {self.platform.unit_names}")
        if any(len(one.weights) != len(REFERENCE) or min(one.weights) < 0 for one in self.embeddings):
            defects.add(f"an embedding has not {len(REFERENCE)} weights, none negative")
        defects.raise_as(InvalidInputError)

    def unit(self, name: str) -> ProcessingUnit:
        """Return a unit by its name."""
        return next(unit for unit in self.platform.units if unit.name == name)

    def embedding(self, unit: str) -> Embedding:
        """Return the embedding of a unit, fitted to all of its times where there is none yet."""
        kept = next((one for one in self.embeddings if one.unit == unit), None)
        return kept or embed(unit, self.networks, [one for one in self.times if one.unit == unit])


DEVICE = Schema(format="gapless.device", version=1, content=DeviceDescription)


def embed(unit: str, networks: Sequence[NetworkFeatures], times: Sequence[NetworkTimes]) -> Embedding:
    """Return the embedding of a unit from the times of some networks on it."""
    import numpy as np
    from scipy.optimize import nnls

    spans = [(entry.network, span) for entry in times for span in entry.spans]
    if not spans:
        raise InvalidInputError(f"no network has run on unit {unit!r}: describe the device again")
    statistics = {one.network: one.statistics() for one in networks}
    rows = np.array([[*statistics[name][one.start : one.stop].sum(axis=0), 1.0] for name, one in spans])
    run_us = np.array([span.run_us for _, span in spans])
    relative = rows * np.array(REFERENCE) / run_us[:, None]
    speed = float(np.exp(-np.log(relative.sum(axis=1)).mean()))
    pull = np.sqrt(RIDGE) * np.eye(len(REFERENCE)) / speed
    found, _ = nnls(
        np.vstack([relative, pull]), np.r_[np.ones(len(spans)), np.full(len(REFERENCE), RIDGE**0.5)]
    )
    macs = rows[:, :3].sum(axis=1)
    usable = macs > 0
    return Embedding(
        unit=unit,
        weights=tuple(float(weight) for weight in found * np.array(REFERENCE)),
        macs_weight=float(np.exp(np.log(run_us[usable] / macs[usable]).mean())) if usable.any() else 0.0,
        error=float(np.abs(relative @ found - 1).mean()),
        copy_in=fit_copies([(_load(one.load_in), one.copy_in_us) for _, one in spans]),
        copy_out=fit_copies([(_load(one.load_out), one.copy_out_us) for _, one in spans]),
    )


def _load(entry: tuple[float, float]) -> Load:
    return Load(tensors=entry[0], bytes=entry[1])

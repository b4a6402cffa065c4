"""Predicted times as a table of costs, marked as estimated; and how far it is from a measured one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...formulations.costs import CostTable, Provenance
from ...formulations.errors import InvalidInputError
from ...formulations.network import Network
from ...formulations.problem import Problem
from ...formulations.validation import FileContent
from ..isolated import UnitCosts
from ..reduce import reduce
from .device import DeviceDescription, Embedding
from .features import NetworkFeatures
from .predictors import PredictionMethod, Predictor


def predicted_costs(
    network: Network,
    features: NetworkFeatures,
    device: DeviceDescription,
    predictor: Predictor,
    method: PredictionMethod | None = None,
) -> CostTable:
    """Return the predicted costs of a network on the units of a device."""
    chosen = predictor.card.default if method is None else method
    embeddings = [device.embedding(unit) for unit in device.platform.unit_names]
    columns = predictor.layer_us(features, embeddings, chosen).tolist()
    provenance = Provenance(
        source=f"predicted for {device.platform.name}, which {len(device.networks)} networks describe",
        method=str(chosen),
        estimated=True,
        notes=_notes(device, predictor, chosen),
        engine=device.engine,
        device=device.device,
        taken_at=device.taken_at,
    )
    return costs_of(network, embeddings, columns, provenance)


def costs_of(
    network: Network,
    embeddings: Sequence[Embedding],
    columns: Sequence[Sequence[float]],
    provenance: Provenance,
) -> CostTable:
    """Return a table from the times of layers by device; sessions and copies cost what the embeddings say."""
    costs = [
        UnitCosts(
            unit=embedding.unit,
            layer_us=tuple(column),
            overhead_us=embedding.session_us,
            copy_in=embedding.copy_in,
            copy_out=embedding.copy_out,
            factor=1.0,
        )
        for embedding, column in zip(embeddings, columns, strict=True)
    ]
    return reduce(network, costs, [range(len(network.layers))], provenance)


def _notes(device: DeviceDescription, predictor: Predictor, method: PredictionMethod) -> str:
    card = predictor.card
    errors = [
        f"{row.what} {row.median:.0%} (p90 {row.p90:.0%})"
        for row in card.errors
        if row.method == method and row.split == "networks held out"
    ]
    return "; ".join(
        [
            f"{method}, trained {card.trained_at[:10]} on {len(card.networks)} networks and "
            f"{len(card.devices)} device types",
            f"its median errors on networks that it did not know: {', '.join(errors) or 'not known'}",
            *device.notes,
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitError(FileContent):
    """Predicted against measured times of one unit."""

    unit: str
    """Its name."""
    predicted_us: int
    measured_us: int
    """All layers together."""
    median: float
    p90: float
    """Of the absolute relative errors of the layers."""

    @property
    def error(self) -> float:
        """Of the whole: predicted minus measured, relative to measured."""
        return self.predicted_us / self.measured_us - 1


def unit_errors(predicted: Problem, measured: Problem) -> tuple[UnitError, ...]:
    """Return how far predicted costs are from measured ones, by unit."""
    import numpy as np

    if predicted.network.layer_names != measured.network.layer_names:
        raise InvalidInputError(
            f"the measured problem is of {measured.network.name!r} with {len(measured.network.layers)} "
            f"layers, the predicted one of {predicted.network.name!r} with {len(predicted.network.layers)}, "
            "or their names differ: measure the same model, with the same --granularity and --shape"
        )
    if predicted.platform.unit_names != measured.platform.unit_names:
        raise InvalidInputError(
            f"the measured problem has the units {', '.join(measured.platform.unit_names)}, the described "
            f"device {', '.join(predicted.platform.unit_names)}: describe and measure the same --units"
        )
    found = []
    rows, true = (problem.costs.of(problem.network.name).layer_us for problem in (predicted, measured))
    for column, unit in enumerate(predicted.platform.unit_names):
        pairs = [
            (float(row[column] or 0), float(other[column] or 0))
            for row, other in zip(rows, true, strict=True)
            if row[column] is not None and other[column] is not None
        ]
        if pairs:
            guess, truth = np.array(pairs).T
            errors = np.abs(guess / truth - 1)
            found.append(
                UnitError(
                    unit=unit,
                    predicted_us=round(guess.sum()),
                    measured_us=round(truth.sum()),
                    median=float(np.median(errors)),
                    p90=float(np.percentile(errors, 90)),
                )
            )
    return tuple(found)

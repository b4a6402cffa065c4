"""Ways to foretell the times of layers on a device that did not run them, behind one function.

All but `FLOPS` multiply what the linear regression of the device says by a factor for each layer. Trained
ones are ONNX files, which ONNX Runtime runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...formulations.errors import EngineUnavailableError, InvalidInputError
from ...formulations.files import Schema, load
from ...formulations.validation import FileContent
from .device import Embedding
from .features import NetworkFeatures
from .nearest import Nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray


class PredictionMethod(StrEnum):
    """How times are predicted.

    TRANSFORMER
        EPipe's transformer over the layers of the network.
    TREES
        Gradient-boosted trees on single layers (AP2).
    NEAREST
        The most similar layer that was measured, on the most similar device.
    REGRESSION
        The linear regression of the device alone.
    FLOPS
        In proportion to multiplications (PICO).
    """

    TRANSFORMER = "transformer"
    TREES = "trees"
    NEAREST = "nearest"
    REGRESSION = "regression"
    FLOPS = "flops"


TRAINED = {
    PredictionMethod.TRANSFORMER: "transformer.onnx",
    PredictionMethod.TREES: "trees.onnx",
    PredictionMethod.NEAREST: "nearest.npz",
}
"""Files in the folder of a predictor."""

CARD_FILE = "card.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow(FileContent):
    """How far predictions were from measurements that had no part in the training.

    Attributes
    ----------
    method, split, what
        Which predictor; what was held out; of what: "layers", "shards" or "networks".
    count
        How many of them.
    median, p90
        Of the absolute relative errors.
    above_20
        Share of those that are above 20 %.
    """

    method: str
    split: str
    what: str
    count: int
    median: float
    p90: float
    above_20: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorCard(FileContent):
    """How a predictor came about.

    Attributes
    ----------
    default
        The method that is best on what was held out: the usual one.
    trained_at, seconds
        When, and how long it took.
    networks, devices
        What it was trained on.
    shards, layers
        How many measured times of each.
    errors
        How good the methods are: of predictors that were trained on the other part.
    """

    default: PredictionMethod
    trained_at: str
    seconds: float
    networks: tuple[str, ...]
    devices: tuple[str, ...]
    shards: int
    layers: int
    errors: tuple[ErrorRow, ...]


CARD = Schema(format="gapless.predictor", version=1, content=PredictorCard)


class Predictor:
    """A trained predictor.

    `folder`: where `gapless costs learn` wrote it; None: the one that is shipped. `extended`: whether it was
    trained on more than Table 1.
    """

    def __init__(self, folder: Path | None = None, *, extended: bool = True) -> None:
        self._folder = folder
        self._extended = extended

    @cached_property
    def card(self) -> PredictorCard:
        """How it came about."""
        if self._folder is not None and not (self._folder / CARD_FILE).is_file():
            raise InvalidInputError(
                f"{self._folder} holds no predictor ({CARD_FILE} is missing): `gapless costs learn` makes one"
            )
        with self._path(CARD_FILE) as path:
            return load(path, CARD)

    def layer_us(
        self,
        features: NetworkFeatures,
        embeddings: Sequence[Embedding],
        method: PredictionMethod | None = None,
    ) -> NDArray[Any]:
        """Return the times of layers in microseconds, by [device][layer].

        `method`: how; None: the default of the card.
        Raises InvalidInputError: the predictor is not there, or was trained by another version of gapless on
        other features; EngineUnavailableError: it needs ONNX Runtime, which is not installed.
        """
        import numpy as np

        chosen = self.card.default if method is None else method
        if chosen is PredictionMethod.FLOPS:
            macs = np.array(features.macs, dtype=np.float64)
            return np.stack([embedding.macs_weight * macs for embedding in embeddings])
        linear_us = np.stack([embedding.linear_us(features) for embedding in embeddings])
        if chosen is PredictionMethod.REGRESSION:
            return linear_us
        inputs = features.inputs(extended=self._extended)
        vectors = np.stack([embedding.vector() for embedding in embeddings])
        found: NDArray[Any] = linear_us * np.exp(self._log_ratios(chosen, inputs, vectors))
        return found

    def _log_ratios(
        self, method: PredictionMethod, inputs: NDArray[Any], vectors: NDArray[Any]
    ) -> NDArray[Any]:
        with self._path(TRAINED[method]) as path:
            if method is PredictionMethod.NEAREST:
                return Nearest.read(path).log_ratios(inputs, vectors)
            return run_trained(path, inputs, vectors)

    def _path(self, name: str) -> Any:
        root = files(__package__).joinpath("shipped") if self._folder is None else self._folder
        return as_file(root.joinpath(name))


def run_trained(path: Path, inputs: NDArray[Any], vectors: NDArray[Any]) -> NDArray[Any]:
    """Run a trained ONNX file; errors as for `Predictor.layer_us`."""
    from ...executor.engines.ort_engine import OrtEngine

    found = OrtEngine().availability()
    if not found.ok:
        raise EngineUnavailableError(f"{found.reason} (or predict with --model regression or flops)")
    from ...executor.engines.ort_session import reference_outputs

    try:
        model = path.read_bytes()
    except OSError as error:
        raise InvalidInputError(
            f"{path} cannot be read ({error.strerror}): train the predictor again"
        ) from error
    return reference_outputs(model, {"layers": inputs, "devices": vectors})["log_ratio"]

"""Ways to predict the times of layers on a device that did not run them, behind one function.

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
from typing import TYPE_CHECKING, Any, Self

from ...formulations.errors import EngineUnavailableError, InvalidInputError
from ...formulations.files import Schema, load
from ...formulations.validation import FileContent
from .device import Embedding
from .examples import LEAST_US, Dataset
from .features import NetworkFeatures

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Nearest:
    """Measured layers.

    `inputs`: their features, by [layer][input]. `ratios`: logarithms of their times relative to the
    regression, by [layer][device type]; not a number where a layer was not measured.
    """

    def __init__(self, inputs: NDArray[Any], ratios: NDArray[Any], vectors: NDArray[Any]) -> None:
        self._inputs, self._ratios, self._vectors = inputs, ratios, vectors

    @classmethod
    def of(cls, data: Dataset, *, extended: bool = True) -> Self:
        """Return the measured layers of a data set; equal ones once, with the mean of their ratios."""
        import numpy as np

        types = [kind for kind in data.types if any(entry.layer_us for entry in kind.times)]
        every = np.concatenate([one.inputs(extended=extended) for one in data.networks.values()])
        rows, home = np.unique(every, axis=0, return_inverse=True)
        starts, at = {}, 0
        for name, one in data.networks.items():
            starts[name], at = at, at + len(one.kinds)
        sums, counts = np.zeros((2, len(rows), len(types)))
        for column, kind in enumerate(types):
            for entry in kind.times:
                if not entry.layer_us:
                    continue
                linear_us = kind.embedding.linear_us(data.networks[entry.network])
                measured = np.array(entry.layer_us)
                kept = np.flatnonzero((measured >= LEAST_US) & (linear_us > 0))
                found = home.reshape(-1)[starts[entry.network] + kept]
                np.add.at(sums[:, column], found, np.log(measured[kept] / linear_us[kept]))
                np.add.at(counts[:, column], found, 1)
        known = counts.sum(axis=1) > 0
        with np.errstate(invalid="ignore"):
            ratios = np.where(counts > 0, sums / counts, np.nan)[known]
        return cls(rows[known], ratios, np.stack([kind.embedding.vector() for kind in types]))

    def log_ratios(self, inputs: NDArray[Any], vectors: NDArray[Any]) -> NDArray[Any]:
        """Return logarithms of times relative to the regression, by [device][layer]."""
        import numpy as np

        distances = np.square(inputs[:, None, :] - self._inputs[None]).sum(axis=2)
        found = []
        for vector in vectors:
            alike = np.square(_profile(self._vectors) - _profile(vector)).sum(axis=1)
            ratios = self._ratios[:, int(alike.argmin())]
            found.append(ratios[np.where(np.isnan(ratios), np.inf, distances).argmin(axis=1)])
        return np.stack(found)

    def write(self, path: Path) -> None:
        """Write them to a file of arrays."""
        import numpy as np

        with path.open("wb") as file:
            np.savez_compressed(
                file,
                inputs=self._inputs.astype(np.float16),
                ratios=self._ratios.astype(np.float16),
                vectors=self._vectors.astype(np.float32),
            )

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        import numpy as np

        try:
            with np.load(path, allow_pickle=False) as found:
                arrays = [found[name].astype(np.float32) for name in ("inputs", "ratios", "vectors")]
        except (OSError, ValueError, KeyError) as error:
            raise InvalidInputError(f"{path} holds no measured layers: {error}") from error
        return cls(*arrays)


def _profile(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return what an embedding says besides the overall speed."""
    found: NDArray[Any] = vectors - vectors.mean(axis=-1, keepdims=True)
    return found


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
    """How far predictions were from measurements that had no part in the training."""

    method: str
    split: str
    what: str
    """Which predictor; what was held out; of what: "layers", "shards" or "networks"."""
    count: int
    """How many of them."""
    median: float
    p90: float
    """Of the absolute relative errors."""
    above_20: float
    """Share of those that are above 20 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorCard(FileContent):
    """How a predictor came about."""

    default: PredictionMethod
    """The method that is best on what was held out: the usual one."""
    trained_at: str
    seconds: float
    """When, and how long it took."""
    networks: tuple[str, ...]
    devices: tuple[str, ...]
    """What it was trained on."""
    shards: int
    layers: int
    """How many measured times of each."""
    errors: tuple[ErrorRow, ...]
    """How good the methods are: of predictors that were trained on the other part."""


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

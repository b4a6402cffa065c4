"""The most similar layer that was measured, on the most similar device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ...formulations.errors import InvalidInputError
from .examples import LEAST_US, Dataset

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

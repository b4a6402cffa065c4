"""Convolutions of 3 x 3 with rectification, four ways: two for dense filters, two for pruned ones.

Each is an object that is called with images, float32 (images, channels, height, width), and returns as many
of the same height and width: stride 1, padding 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseRows:
    """A matrix as compressed sparse rows."""

    values: Array
    columns: Array
    starts: Array  # where in them each row begins; their length at the end
    shape: tuple[int, int]  # rows and columns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatrixProduct:
    """One product of the filters with all windows side by side (im2col)."""

    weights: Array
    biases: Array

    def __call__(self, images: Array) -> Array:
        """Convolve and rectify."""
        return _images_of(self.weights.reshape(len(self.weights), -1) @ _windows(images), self.biases, images)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftedSum:
    """One product for each of the nine places in a window: no copy of all windows is made."""

    weights: Array
    biases: Array

    def __call__(self, images: Array) -> Array:
        """Convolve and rectify."""
        total = np.zeros((len(self.weights), images[:, 0].size), dtype=np.float32)
        for place, pixels in enumerate(_shifted(images)):
            total += self.weights[:, :, place // 3, place % 3] @ pixels.reshape(len(pixels), -1)
        return _images_of(total, self.biases, images)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseProduct:
    """The product of scipy: each weight times the row of windows that it stands for, added up."""

    rows: SparseRows
    biases: Array

    def __call__(self, images: Array) -> Array:
        """Convolve and rectify."""
        from scipy.sparse import csr_array  # slow to load, for this kernel only

        rows = self.rows
        filters = csr_array((rows.values, rows.columns, rows.starts), shape=rows.shape)
        return _images_of(filters @ _windows(images), self.biases, images)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatheredRows:
    """A dense product for each filter, with what it needs of the windows gathered before."""

    rows: SparseRows
    biases: Array

    def __call__(self, images: Array) -> Array:
        """Convolve and rectify."""
        windows, rows = _windows(images), self.rows
        total = np.empty((rows.shape[0], windows.shape[1]), dtype=np.float32)
        for index, (start, stop) in enumerate(zip(rows.starts[:-1], rows.starts[1:], strict=True)):
            np.matmul(rows.values[start:stop], windows[rows.columns[start:stop]], out=total[index])
        return _images_of(total, self.biases, images)


def pruned(weights: Array, density: float) -> SparseRows:
    """Return filters with a share of their weights, rounded up: in each of them, those of largest magnitude.

    `weights`: (filters, channels, 3, 3); `density`: above 0, at most 1.
    """
    if not 0 < density <= 1:
        raise InvalidInputError(f"density is {density:g}, must be above 0 and at most 1")
    matrix = weights.reshape(len(weights), -1)
    kept = ceil(density * matrix.shape[1])
    order = np.argsort(-np.abs(matrix), axis=1, kind="stable")
    columns = np.sort(order[:, :kept], axis=1).astype(np.int32)
    return SparseRows(
        values=np.take_along_axis(matrix, columns, axis=1).ravel(),
        columns=columns.ravel(),
        starts=np.arange(len(matrix) + 1, dtype=np.int32) * kept,
        shape=(matrix.shape[0], matrix.shape[1]),
    )


def _shifted(images: Array) -> Iterator[Array]:
    """Yield (channels, images, height, width) for each of the nine places in a window."""
    height, width = images.shape[2:]
    edged = np.pad(images.swapaxes(0, 1), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for down in range(3):
        for right in range(3):
            yield edged[:, :, down : down + height, right : right + width]


def _windows(images: Array) -> Array:
    """Return the windows around all pixels: a row for each channel and place, a column for each pixel."""
    count, channels, height, width = images.shape
    windows = np.empty((channels, 9, count, height, width), dtype=images.dtype)
    for place, pixels in enumerate(_shifted(images)):
        windows[:, place] = pixels
    return windows.reshape(9 * channels, -1)


def _images_of(products: Array, biases: Array, images: Array) -> Array:
    """Return the products (filters, pixels) as images, with biases added, rectified."""
    count, _, height, width = images.shape
    rectified = np.maximum(products + biases[:, None], 0)
    return np.ascontiguousarray(rectified.reshape(-1, count, height, width).swapaxes(0, 1))

"""Edges of a grey image, as a pipeline of numpy functions.

    gapless tune docs/examples/edges.py:EDGES

measures the five layers on the units of this machine, and finds the best way to share them out.
"""

import numpy as np
from numpy.typing import NDArray

from gapless.running import CallableLayer, CallableModel, TensorSpec

HEIGHT, WIDTH = 480, 640
MOST_EDGES = 20_000
BINOMIAL = np.array([1, 4, 6, 4, 1], dtype=np.float32) / np.float32(16)

Image = NDArray[np.float32]


def to_grey(photo: NDArray[np.uint8]) -> Image:
    """Return the brightness of each pixel, 0 to 1."""
    weights = np.array([0.299, 0.587, 0.114], dtype=np.float32) / np.float32(255)
    return photo @ weights


def blur(grey: Image) -> Image:
    """Smooth with a binomial filter of 5 x 5."""
    padded = np.pad(grey, 2, mode="edge")
    rows = sum(weight * padded[i : i + HEIGHT] for i, weight in enumerate(BINOMIAL))
    return np.asarray(sum(weight * rows[:, i : i + WIDTH] for i, weight in enumerate(BINOMIAL)))


def gradient(smooth: Image) -> tuple[Image, NDArray[np.uint8]]:
    """Return the strength of the gradient, and its direction in steps of 45 degrees (0 to 3)."""
    down, right = np.gradient(smooth)
    angle = np.arctan2(down, right) * np.float32(4 / np.pi)
    return np.hypot(down, right), (np.rint(angle).astype(np.int8) % 4).astype(np.uint8)


def thin(strength: Image, direction: NDArray[np.uint8]) -> Image:
    """Keep what is strongest along its gradient."""
    padded = np.pad(strength, 1)
    best = np.zeros_like(strength)
    for number, (down, right) in enumerate([(0, 1), (1, 1), (1, 0), (1, -1)]):
        ahead = padded[1 + down : 1 + down + HEIGHT, 1 + right : 1 + right + WIDTH]
        behind = padded[1 - down : 1 - down + HEIGHT, 1 - right : 1 - right + WIDTH]
        kept = (direction == number) & (strength >= ahead) & (strength >= behind)
        best[kept] = strength[kept]
    return best


def strongest(thinned: Image) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (row, column) of the strongest 5 % of the edges, padded with -1, and how many there are."""
    edges = thinned[thinned > 0]
    limit = np.quantile(edges, 0.95) if edges.size else np.inf
    found = np.argwhere(thinned >= limit)[:MOST_EDGES]
    points = np.full((MOST_EDGES, 2), -1, dtype=np.int32)
    points[: len(found)] = found
    return points, np.array([len(found)], dtype=np.int32)


def photo(seed: int) -> dict[str, NDArray[np.uint8]]:
    """Return a picture of bright discs on a dark, noisy ground."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    picture = random.normal(60, 5, (HEIGHT, WIDTH, 3))
    for _ in range(12):
        row, column, radius = random.integers(0, (HEIGHT, WIDTH, 80))
        disc = (rows - row) ** 2 + (columns - column) ** 2 < radius**2
        picture[disc] += random.uniform(20, 120, 3)
    return {"photo": picture.clip(0, 255).astype(np.uint8)}


EDGES = CallableModel(
    name="edges",
    inputs=(TensorSpec(name="photo", shape=(HEIGHT, WIDTH, 3), dtype="uint8"),),
    layers=(
        CallableLayer(name="grey", variants={"*": to_grey}),
        CallableLayer(name="smooth", variants={"*": blur}),
        CallableLayer(name="gradient", variants={"*": gradient}, outputs=("strength", "direction")),
        CallableLayer(name="thinned", variants={"*": thin}),
        CallableLayer(
            name="strongest",
            variants={"*": strongest},
            outputs=(
                TensorSpec(name="points", shape=(MOST_EDGES, 2), dtype="int32"),
                TensorSpec(name="count", shape=(1,), dtype="int32"),
            ),
        ),
    ),
    sample=photo,
)

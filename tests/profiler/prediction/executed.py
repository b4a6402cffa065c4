"""Executed plans of a made-up device, in the form in which measurements are shared."""

from __future__ import annotations

import json
import random
from itertools import permutations
from pathlib import Path
from typing import Any

from gapless.profiler.prediction.executions import Executions
from gapless.profiler.prediction.published import load_published

UNITS = ("big", "little", "gpu")
LAYERS = 5

Document = dict[str, Any]
Factors = list[list[float]]
"""By [layer][unit]: what a layer really takes, as a multiple of the interpolated time."""


def document(factors: Factors | None = None, *, plans: int = 24, seed: int = 0) -> Document:
    """Return plans of two and three chunks that take what the interpolated model says, times factors."""
    rng = random.Random(seed)
    isolated = [[rng.uniform(2, 9) for _ in UNITS] for _ in range(LAYERS)]
    heavy = [[time * rng.uniform(0.6, 1.8) for time in row] for row in isolated]
    truth = factors or [[1.0] * len(UNITS)] * LAYERS
    paths = [
        (cuts, units)
        for count in (2, 3)
        for units in permutations(range(len(UNITS)), count)
        for cuts in _cuts(count)
    ]
    schedules = []
    for cuts, units in rng.sample(paths, plans):
        weight = (len(units) - 1) / (len(UNITS) - 1)
        bounds = [0, *cuts, LAYERS]
        times = [
            sum(
                truth[layer][unit] * isolated[layer][unit] ** (1 - weight) * heavy[layer][unit] ** weight
                for layer in range(bounds[index], bounds[index + 1])
            )
            for index, unit in enumerate(units)
        ]
        chunks = [
            {"unit": UNITS[unit], "layers": list(range(bounds[index] + 1, bounds[index + 1] + 1))}
            for index, unit in enumerate(units)
        ]
        schedules.append({"chunks": chunks, "runs": 1, "interval_ms": max(times), "chunk_mean_ms": times})
    return {
        "source": "made up",
        "units": "milliseconds",
        "columns": list(UNITS),
        "isolated_ms": isolated,
        "heavy_ms": heavy,
        "schedules": schedules,
    }


def written(found: Document, folder: Path, name: str = "made_up.json") -> Path:
    """Write a document, and return where."""
    path = folder / name
    path.write_text(json.dumps(found))
    return path


def executions(found: Document, folder: Path) -> Executions:
    """Return a document as executed plans."""
    return load_published(written(found, folder))


def _cuts(count: int) -> list[tuple[int, ...]]:
    inner = range(1, LAYERS)
    return [(a,) for a in inner] if count == 2 else [(a, b) for a in inner for b in inner if a < b]

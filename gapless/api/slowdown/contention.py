"""Contention: measure how much networks slow each other down on this device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...executor.engine import Engine
from ...executor.model import Model
from ...executor.progress import Report, silent
from ...formulations.hardware import Platform
from ...profiler.slowdown.contention.measure import measure_contention as measure
from ...profiler.slowdown.contention.result import Contention, ContentionOptions
from ..execution import resolve_all


def measure_contention(
    models: Sequence[Model | str | Path],
    *,
    platform: Platform | None = None,
    engine: str | Engine | None = None,
    options: ContentionOptions = ContentionOptions(),
    report: Report = silent,
) -> Contention:
    """Measure how much networks on different units slow each other down, and how they press on memory.

    Parameters
    ----------
    models
        The networks, as `open_model` returns them, or their locators.
    platform
        The units; None: this device, as `this_device` finds it.
    engine
        Who runs the layers; None: MNN for ONNX files, "callable" for Python functions.
    options
        How long to measure, and what.
    report
        Told of each step.

    Returns
    -------
    Contention
        Its `interference` belongs to a problem with several networks.

    Raises
    ------
    InvalidInputError
        A model, unit or option is not valid, or no two units can run at once.
    ProfilingError, ExecutionError
        It could not be measured.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.measure_contention(["squeezenet", "resnet18"])  # doctest: +SKIP
    >>> found.interference.slowdown_permille  # doctest: +SKIP
    ((0, 42, 0), (36, 0, 0), (0, 0, 0))
    """
    opened, found, units = resolve_all(models, engine, platform)
    return measure(opened, units, found, options=options, report=report)

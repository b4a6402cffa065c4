"""Numbers of a plan over devices against those of the uncut model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...formulations.errors import OutputMismatchError
from ..model import TensorPart, allowed_error, largest_magnitude, relative_error
from ..pipeline.verify import (
    REQUESTS,
    References,
    error_words,
    part_error,
    receipt_words,
    unverified_words,
)
from ..runner import Verification
from .driver import Result
from .pipeline import ClusterPipeline
from .routes import Route

if TYPE_CHECKING:
    from numpy.typing import NDArray


def verify_on_cluster(pipeline: ClusterPipeline, references: References) -> Verification:
    """Send different inputs through all streams, and compare all outputs.

    Parameters
    ----------
    pipeline
        Open, and not running.
    references
        The right numbers.

    Raises
    ------
    OutputMismatchError
        Numbers differ; the message names the first chunk that is wrong, and its device.
    UnitLostError, ExecutionError
        As for `ClusterPipeline.measure`.
    """
    network = pipeline.deployment.networks[0]
    precisions = [receipt.precision for receipt in pipeline.receipts]
    allowed = allowed_error(references.network(network), precisions)
    seeds = range(1, 1 + REQUESTS * len(pipeline.deployment.streams))
    jobs = [references.inputs(network, seed) for seed in seeds]
    right = {seed: references.outputs(network, seed) for seed in seeds}
    names = right[seeds[0]].keys()
    magnitudes = {name: max(largest_magnitude(right[seed][name]) for seed in seeds) for name in names}
    blind = references.unverifiable(network, seeds)
    errors = []
    for seed, result in zip(seeds, list(pipeline.play(jobs, wanted=True)), strict=True):
        for name, array in result.outputs.items():
            if name in blind:
                continue
            error = relative_error(array, right[seed][name], magnitude=magnitudes[name])
            errors.append(error)
            if not error <= allowed:
                what = f"request {result.number}, output {name!r}: {error_words(error, allowed)}"
                _blame(pipeline, references, result, seed, what=what, allowed=allowed)
    return Verification(
        requests=len(jobs),
        worst_error=max(errors, default=None),
        tolerance=allowed,
        problem=unverified_words(blind),
    )


def _blame(
    pipeline: ClusterPipeline,
    references: References,
    result: Result,
    seed: int,
    *,
    what: str,
    allowed: float,
) -> None:
    """Give each group of chunks the right inputs, alone, and name the first tile that is wrong."""
    stream = pipeline.deployment.streams[result.passed.stream]
    network = stream.network
    inputs = references.inputs(network, seed)
    for index in range(len(stream.groups)):
        with pipeline.alone(result.passed.stream, index) as single:
            taken, made = single.route.takes, list(_made(single.route))
            names = {*taken, *(name for _, _, name, _ in made)} - {*inputs}
            right = {**inputs, **references.tensors(network, seed, names)}
            (found,) = single.play([{name: _array(right[name]) for name in taken}], wanted=True)
            receipts = single.receipts
        for device, where, name, part in made:
            error = part_error(found.outputs[name], right[name], part)
            if not error <= allowed:
                granted = "; ".join(receipt_words(one) for one in receipts if one.unit == device)
                raise OutputMismatchError(
                    f"stream {stream.name!r} gives wrong numbers ({what}). The first wrong tensor is "
                    f"{name!r}, made by {where} on device {device!r}: {error_words(error, allowed)}. "
                    f"What that device was granted: {granted}"
                )
    raise OutputMismatchError(
        f"stream {stream.name!r} gives wrong numbers ({what}), but each chunk alone is right: tensors are "
        "changed on their way, or the engine is not repeatable"
    )


def _made(route: Route) -> Iterator[tuple[str, str, str, TensorPart | None]]:
    """Yield (device, tile in words, tensor, which part of it) of everything that a group makes."""
    where = {device: station.where for device, station in zip(route.devices, route.stations, strict=True)}
    leading = route.stations[route.stream.led_by[0]]
    for share in leading.shares:
        yield from ((share.device, where[share.device], part.whole.name, part) for part in share.makes)
    if not leading.shares:
        yield from ((route.entry, leading.where, name, None) for name in leading.sends)


def _array(array: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.ascontiguousarray(array)

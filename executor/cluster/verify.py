"""Numbers of a plan over devices against those of the uncut model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...formulations.errors import OutputMismatchError
from ..comparing import Allowed
from ..gathering import Gathered
from ..model import TensorPart, allowed_of
from ..pipeline.verify import REQUESTS, References, receipt_words
from ..runner import Verification
from .driver import Result
from .pipeline import ClusterPipeline
from .routes import Route

if TYPE_CHECKING:
    from numpy.typing import NDArray


def verify_on_cluster(pipeline: ClusterPipeline, references: References) -> Verification:
    """Send different inputs through all streams, and compare all outputs.

    Raises OutputMismatchError: numbers differ; the message names the first chunk that is wrong, and its
    device.
    """
    network = pipeline.deployment.networks[0]
    precisions = [receipt.precision for receipt in pipeline.receipts]
    allowed = allowed_of(references.network(network), precisions)
    seeds = range(1, 1 + REQUESTS * len(pipeline.deployment.streams))
    jobs = [references.inputs(network, seed) for seed in seeds]
    right = references.outputs(network, seeds)
    gathered = Gathered("output")
    for sample, result in enumerate(list(pipeline.play(jobs, wanted=True))):
        for name, array in result.outputs.items():
            difference = right[name].compare(array, sample, allowed)
            gathered.add(difference, name)
            if not difference.agrees:
                what = f"request {result.number}, {difference.said_of(f'output {name!r}')}"
                _blame(pipeline, references, result, sample, seeds=seeds, what=what, allowed=allowed)
    return gathered.verification(len(jobs))


def _blame(
    pipeline: ClusterPipeline,
    references: References,
    result: Result,
    sample: int,
    *,
    seeds: Sequence[int],
    what: str,
    allowed: Allowed,
) -> None:
    """Give each group of chunks the right inputs, alone, and name the first tile that is wrong."""
    stream = pipeline.deployment.streams[result.passed.stream]
    network = stream.network
    inputs = references.inputs(network, seeds[sample])
    for index in range(len(stream.groups)):
        with pipeline.alone(result.passed.stream, index) as single:
            taken, made = single.route.takes, list(_made(single.route))
            names = {*taken, *(name for _, _, name, _ in made)} - {*inputs}
            right = references.tensors(network, seeds, names)
            given = {**inputs, **{name: each.arrays[sample] for name, each in right.items()}}
            (found,) = single.play([{name: _array(given[name]) for name in taken}], wanted=True)
            receipts = single.receipts
        for device, where, name, part in made:
            difference = right[name].compare(found.outputs[name], sample, allowed, part=part)
            if not difference.agrees:
                granted = "; ".join(receipt_words(one) for one in receipts if one.unit == device)
                raise OutputMismatchError(
                    f"stream {stream.name!r} gives wrong numbers ({what}). The first wrong tensor is "
                    f"{name!r}, made by {where} on device {device!r}: {difference.details}. "
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

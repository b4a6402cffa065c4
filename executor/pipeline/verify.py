"""Numbers of a pipeline against those of the uncut model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...formulations.errors import OutputMismatchError
from ...formulations.network import Network
from ..comparing import is_mostly_finite
from ..engine import PlacementReceipt
from ..model import Model, TensorPart, allowed_error, largest_magnitude, relative_error
from ..runner import Verification
from .pipeline import Pipeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

REQUESTS = 3
"""Different inputs that each stream is tried with, on their way at once."""


class References:
    """Sample inputs and right outputs, computed once for each network and seed.

    Parameters
    ----------
    models
        The networks, by name.
    """

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = models
        self._outputs: dict[tuple[str, int], Tensors] = {}

    def network(self, name: str) -> Network:
        """Return a network by its name."""
        return self._models[name].network

    def inputs(self, network: str, seed: int) -> Tensors:
        """Return sample inputs of a network."""
        return self._models[network].sample_inputs(seed)

    def outputs(self, network: str, seed: int) -> Tensors:
        """Return the right outputs for these inputs."""
        if (network, seed) not in self._outputs:
            self._outputs[network, seed] = self._models[network].reference(self.inputs(network, seed))
        return self._outputs[network, seed]

    def unverifiable(self, network: str, seeds: Sequence[int]) -> list[str]:
        """Return the outputs that are mostly not finite, over the right outputs of some seeds."""
        right = [self.outputs(network, seed) for seed in seeds]
        return [name for name in right[0] if not is_mostly_finite(each[name] for each in right)]

    def tensors(self, network: str, seed: int, names: set[str]) -> Tensors:
        """Return the right values of any tensors that cross a cut."""
        return self._models[network].reference(self.inputs(network, seed), also=sorted(names))


def verify(pipeline: Pipeline, references: References) -> Verification:
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
        Numbers differ; the message names the first chunk that is wrong.
    UnitLostError, ExecutionError
        As for `Pipeline.measure`.
    """
    streams = pipeline.blueprint.streams
    networks = [stream.stream.network for stream in streams]
    precisions = [str(unit.engine.precision) for unit in pipeline.blueprint.units]
    allowed = max(allowed_error(references.network(name), precisions) for name in networks)
    wanted = [[spec.name for spec in stream.outputs] for stream in streams]
    seeds = _seeds(networks)
    jobs = (
        [references.inputs(network, seed) for network, seed in zip(networks, row, strict=True)]
        for row in seeds
    )
    found = list(pipeline.feed(jobs, groups=[[index] for index in range(len(streams))], wanted=wanted))
    magnitudes = _magnitudes(references, networks, seeds)
    blind = {
        (network, name)
        for network in networks
        for name in references.unverifiable(network, [row[networks.index(network)] for row in seeds])
    }
    errors = []
    for request, (row, results) in enumerate(zip(seeds, found, strict=True)):
        for index, (seed, outputs) in enumerate(zip(row, results, strict=True)):
            right = references.outputs(networks[index], seed)
            for name, array in outputs.items():
                if (networks[index], name) in blind:
                    continue
                error = relative_error(array, right[name], magnitude=magnitudes[networks[index], name])
                errors.append(error)
                if not error <= allowed:
                    what = f"request {request}, output {name!r}: {error_words(error, allowed)}"
                    _blame(pipeline, references, index, seed, what=what, allowed=allowed)
    return Verification(
        requests=REQUESTS * len(streams),
        worst_error=max(errors, default=None),
        tolerance=allowed,
        problem=unverified_words([name for _, name in sorted(blind)]),
    )


def unverified_words(outputs: Sequence[str]) -> str:
    """Return why outputs could not be compared, in words; "" for none."""
    if not outputs:
        return ""
    return (
        f"for {', '.join(map(repr, outputs))} the uncut model itself gives mostly numbers that are not "
        "finite, which would equal those of any chunk: try it on real inputs (--input) or in a range "
        "(--input-range)"
    )


def _seeds(networks: Sequence[str]) -> list[list[int]]:
    """Return the seed of each request for each stream: of one network, no two requests have the same.

    Every network begins with the same seed, so that what is compared does not depend on the others.
    """
    before = [networks[:index].count(network) for index, network in enumerate(networks)]
    return [
        [1 + request * networks.count(network) + rank for network, rank in zip(networks, before, strict=True)]
        for request in range(REQUESTS)
    ]


def _magnitudes(
    references: References, networks: Sequence[str], seeds: Sequence[Sequence[int]]
) -> dict[tuple[str, str], float]:
    """Return the largest right number of each (network, output), over all requests.

    Some inputs may give an output that is small everywhere, as the probability of a text that is not
    there; its rounding errors are no larger for that, but the output says less about them.
    """
    found: dict[tuple[str, str], float] = {}
    for row in seeds:
        for network, seed in zip(networks, row, strict=True):
            for name, array in references.outputs(network, seed).items():
                found[network, name] = max(found.get((network, name), 0.0), largest_magnitude(array))
    return found


def _blame(
    pipeline: Pipeline, references: References, index: int, seed: int, *, what: str, allowed: float
) -> None:
    """Run a request that came out wrong once more, alone, and name the first chunk that is wrong."""
    blueprint = pipeline.blueprint.streams[index]
    network = blueprint.stream.network
    wanted: list[list[str]] = [[] for _ in pipeline.blueprint.streams]
    wanted[index] = [spec.name for spec in blueprint.layout.tensors]
    inputs = references.inputs(network, seed)
    ((tensors,),) = list(pipeline.feed([[inputs]], groups=[[index]], wanted=wanted))
    inner = set(tensors) - set(inputs)
    right = references.tensors(network, seed, inner)
    for chunk, name, part in _made(pipeline, index):
        error = part_error(tensors[name], right[name], part)
        if not error <= allowed:
            raise OutputMismatchError(
                f"stream {blueprint.stream.name!r} gives wrong numbers ({what}). The first wrong tensor "
                f"is {name!r}, made by {blueprint.where(chunk)} on unit "
                f"{blueprint.stream.chunks[chunk].unit!r}: {error_words(error, allowed)}. "
                f"What that unit was granted: {_granted(pipeline, index, chunk)}"
            )
    raise OutputMismatchError(
        f"stream {blueprint.stream.name!r} gives wrong numbers ({what}), but the same request alone is "
        "right: requests that are on their way at once disturb each other, or the engine is not repeatable"
    )


def _made(pipeline: Pipeline, index: int) -> Iterator[tuple[int, str, TensorPart | None]]:
    """Yield (chunk, tensor, which part of it) of everything that the chunks of a stream make, in order."""
    for chunk, steps in enumerate(pipeline.blueprint.streams[index].chunks):
        for step in steps:
            yield from ((chunk, name, step.parts.get(name)) for name in step.outputs)


def _granted(pipeline: Pipeline, index: int, chunk: int) -> str:
    blueprint = pipeline.blueprint.streams[index]
    pieces = {step.artifact.piece for step in blueprint.chunks[chunk]}
    unit = blueprint.stream.chunks[chunk].unit
    return "; ".join(
        receipt_words(receipt)
        for receipt in pipeline.receipts
        if receipt.unit == unit and receipt.piece in pieces
    )


def part_error(found: NDArray[Any], right: NDArray[Any], part: TensorPart | None) -> float:
    """Return the error of a tensor, or of the part that a tile makes; related to the whole in any case."""
    if part is None or found.shape != right.shape:
        return relative_error(found, right)
    return relative_error(part.of(found), part.of(right), magnitude=largest_magnitude(right))


def receipt_words(receipt: PlacementReceipt) -> str:
    """Return what was granted, in words."""
    return (
        f"{receipt.engine}, backend {receipt.granted_backend}, {receipt.granted_threads} threads, "
        f"cores {receipt.granted_cores}, precision {receipt.precision}"
    )


def error_words(error: float, allowed: float) -> str:
    """Return an error in words; it is infinite when a number is not finite."""
    if error == float("inf"):
        return "it holds numbers that are not finite"
    return f"relative error {error:.2g}, allowed is {allowed:g}"

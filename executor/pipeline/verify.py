"""Numbers of a pipeline against those of the uncut model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...formulations.errors import OutputMismatchError
from ...formulations.network import Network, State
from ..comparing import Allowed, Reference
from ..engine import PlacementReceipt
from ..gathering import Gathered
from ..model import Model, TensorPart, allowed_of
from ..model import references as right_tensors
from ..runner import Verification
from .pipeline import Pipeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

REQUESTS = 3
"""Different inputs that each stream is tried with, on their way at once."""


class References:
    """Sample inputs and what is right for them, computed once for each network and its seeds."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = models
        self._known: dict[tuple[str, tuple[int, ...], tuple[State, ...]], Mapping[str, Reference]] = {}

    def network(self, name: str) -> Network:
        """Return a network by its name."""
        return self._models[name].network

    def inputs(self, network: str, seed: int) -> Tensors:
        """Return sample inputs of a network."""
        return self._models[network].sample_inputs(seed)

    def outputs(
        self, network: str, seeds: Sequence[int], states: tuple[State, ...] = ()
    ) -> Mapping[str, Reference]:
        """Return the references of the outputs, with a sample for each seed; `states`: what each leaves."""
        key = (network, tuple(seeds), states)
        if key not in self._known:
            self._known[key] = right_tensors(self._models[network], seeds, states=states)
        return self._known[key]

    def tensors(self, network: str, seeds: Sequence[int], names: set[str]) -> Mapping[str, Reference]:
        """Return the references of any tensors that cross a cut, besides those of the outputs."""
        return right_tensors(self._models[network], seeds, sorted(names))


def verify(pipeline: Pipeline, references: References) -> Verification:
    """Send different inputs through all streams, and compare all outputs.

    Raises OutputMismatchError: numbers differ; the message names the first chunk that is wrong.
    """
    streams = pipeline.blueprint.streams
    networks = [stream.stream.network for stream in streams]
    precisions = [str(unit.engine.precision) for unit in pipeline.blueprint.units]
    allowed = {name: allowed_of(references.network(name), precisions) for name in networks}
    wanted = [[spec.name for spec in stream.outputs] for stream in streams]
    seeds = _seeds(networks)
    jobs = (
        [references.inputs(network, seed) for network, seed in zip(networks, row, strict=True)]
        for row in seeds
    )
    found = list(pipeline.feed(jobs, groups=[[index] for index in range(len(streams))], wanted=wanted))
    # What a stream leaves for its next request, requests of others do not see.
    tried = [
        [row[index] for row in seeds] if stream.stream.states else _seeds_of(networks[index], networks, seeds)
        for index, stream in enumerate(streams)
    ]
    gathered = Gathered("output")
    for request, (row, results) in enumerate(zip(seeds, found, strict=True)):
        for index, (seed, outputs) in enumerate(zip(row, results, strict=True)):
            network = networks[index]
            right = references.outputs(network, tried[index], streams[index].stream.states)
            for name, array in outputs.items():
                difference = right[name].compare(array, tried[index].index(seed), allowed[network])
                gathered.add(difference, name)
                if not difference.agrees:
                    what = f"request {request}, {difference.said_of(f'output {name!r}')}"
                    suspect = _Suspect(index, seed, tried[index], allowed[network], what)
                    _blame(pipeline, references, suspect)
    return gathered.verification(REQUESTS * len(streams))


def _seeds(networks: Sequence[str]) -> list[list[int]]:
    """Return the seed of each request for each stream: of one network, no two requests have the same.

    Every network begins with the same seed, so that what is compared does not depend on the others.
    """
    before = [networks[:index].count(network) for index, network in enumerate(networks)]
    return [
        [1 + request * networks.count(network) + rank for network, rank in zip(networks, before, strict=True)]
        for request in range(REQUESTS)
    ]


def _seeds_of(network: str, networks: Sequence[str], seeds: Sequence[Sequence[int]]) -> list[int]:
    """Return all seeds of a network: some inputs may give an output that is small everywhere."""
    return sorted(seed for row in seeds for name, seed in zip(networks, row, strict=True) if name == network)


@dataclass(frozen=True)
class _Suspect:
    """A request that came out wrong: its stream, its seed among those that were tried, and what was seen."""

    stream: int
    seed: int
    seeds: Sequence[int]
    allowed: Allowed
    what: str


def _blame(pipeline: Pipeline, references: References, suspect: _Suspect) -> None:
    """Run a request that came out wrong once more, alone, and name the first chunk that is wrong."""
    index, seed = suspect.stream, suspect.seed
    blueprint = pipeline.blueprint.streams[index]
    network, what = blueprint.stream.network, suspect.what
    if blueprint.stream.states:
        raise OutputMismatchError(
            f"stream {blueprint.stream.name!r} gives wrong numbers ({what}). Requests leave states behind, "
            "so none is run alone to find the chunk that is wrong; run the plan without --state for that"
        )
    wanted: list[list[str]] = [[] for _ in pipeline.blueprint.streams]
    wanted[index] = [spec.name for spec in blueprint.layout.tensors]
    inputs = references.inputs(network, seed)
    ((tensors,),) = list(pipeline.feed([[inputs]], groups=[[index]], wanted=wanted))
    right = references.tensors(network, suspect.seeds, set(tensors) - set(inputs))
    for chunk, name, part in _made(pipeline, index):
        difference = right[name].compare(tensors[name], suspect.seeds.index(seed), suspect.allowed, part=part)
        if not difference.agrees:
            raise OutputMismatchError(
                f"stream {blueprint.stream.name!r} gives wrong numbers ({what}). The first wrong tensor "
                f"is {name!r}, made by {blueprint.where(chunk)} on unit "
                f"{blueprint.stream.chunks[chunk].unit!r}: {difference.details}. "
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


def receipt_words(receipt: PlacementReceipt) -> str:
    """Return what was granted, in words."""
    return (
        f"{receipt.engine}, backend {receipt.granted_backend}, {receipt.granted_threads} threads, "
        f"cores {receipt.granted_cores}, precision {receipt.precision}"
    )

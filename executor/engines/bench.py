"""What an engine does with a whole model on one unit: copies, run, memory, and how right its numbers are."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...formulations.hardware import ProcessingUnit
from ...formulations.validation import FileContent
from ..comparing import AT_RANDOM, Difference, worst_of
from ..engine import PlacementReceipt, Session, parse_artifact, parse_receipt
from ..measurement import Spread
from ..model import Model, allowed_of, references
from ..pipeline.worker import largest_rss_bytes
from ..workers import Link, Worker
from .helper import NamelessFile
from .registry import get_engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = dict[str, NDArray[Any]]

LIMIT_S = 600.0
"""How long a worker may take for all of it."""

_SAMPLES = 3
"""On how many samples numbers are compared; the first of them is timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchEffort(FileContent):
    """How often to run a model: until both minima are reached, after the warm-up."""

    min_repetitions: int = 30
    min_seconds: float = 1.0
    warm_up_repetitions: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineBench(FileContent):
    """One model on one unit, by one engine."""

    network: str
    """Name of the model."""
    open_us: float
    """Time to open all sessions, once."""
    copy_in_us: Spread
    run_us: Spread
    copy_out_us: Spread
    """For each repetition, over all pieces of the model."""
    rss_bytes: int
    """Largest resident memory of the worker, Python and the engine included."""
    worst_error: float | None
    tolerance: float
    """Largest relative error of an output against the reference (see `executor.comparing`), and what is
    allowed. None: the reference is mostly not finite, so that nothing was compared."""
    receipts: tuple[PlacementReceipt, ...]
    """One for each piece."""
    share: float = 0.0
    """Share of the elements of the worst output that are off."""
    words: str = ""
    """The worst output, where it is off and by how much, in words; where nothing was compared: why, or ""."""

    @property
    def right(self) -> bool:
        """Whether the numbers are as they should be; not where nothing was compared."""
        return self.worst_error is not None and self.worst_error <= self.tolerance

    @property
    def wrong(self) -> bool:
        """Whether the numbers are not as they should be; not where nothing was compared."""
        return self.worst_error is not None and not self.right


def bench_engine(
    model: Model,
    unit: ProcessingUnit,
    *,
    engine: str = "mnn",
    effort: BenchEffort = BenchEffort(),
    seed: int = 0,
) -> EngineBench:
    """Run a whole model on one unit in a worker of its own.

    `model`, `unit`, `engine`: what runs where, by what (registry name).
    Raises ConversionError: the engine cannot run the model; PlacementError: the unit did not get what it asks
    for; ExecutionError: the engine failed, or took too long.
    """
    pieces = model.pieces(0, len(model.network.layers))
    artifacts = get_engine(engine).prepare(pieces)
    seeds = [seed + other for other in range(_SAMPLES)]
    given, outputs = [model.sample_inputs(each) for each in seeds], [spec.name for spec in model.outputs]
    with NamelessFile() as tensors:
        settings = {
            "pieces": [
                {"artifact": asdict(artifact), "prefix": piece.prefix}
                for artifact, piece in zip(artifacts, pieces, strict=True)
            ],
            "tensors": tensors.path,
            "inputs": list(given[0]),
            "outputs": outputs,
            "effort": asdict(effort),
        }
        _write(tensors.path, given, list(given[0]))
        descriptors = [tensors.descriptor]
        with Worker(unit, serve, settings, descriptors=descriptors, engines=[engine]) as worker:
            answer = worker.expect("measured", LIMIT_S)
        found = _read(tensors.path, outputs)
    name, worst = _worst(model, unit, found, seeds)
    return EngineBench(
        network=model.network.name,
        open_us=answer["open_ns"] / 1000,
        copy_in_us=_spread_us(answer["copy_in_ns"]),
        run_us=_spread_us(answer["run_ns"]),
        copy_out_us=_spread_us(answer["copy_out_ns"]),
        rss_bytes=answer["rss_bytes"],
        worst_error=None if worst is None else worst.error,
        tolerance=allowed_of(model.network, [unit.engine.precision.value]).error,
        receipts=tuple(parse_receipt(data) for data in answer["receipts"]),
        share=0.0 if worst is None else worst.share,
        words=worst.said_of(f"output {name!r}") if worst is not None else name,
    )


def _worst(
    model: Model, unit: ProcessingUnit, found: Sequence[Tensors], seeds: Sequence[int]
) -> tuple[str, Difference | None]:
    """Return the output with the largest error, and the error; or why nothing can be compared, and None."""
    allowed = allowed_of(model.network, [unit.engine.precision.value])
    right = references(model, seeds)
    differences = [
        (name, right[name].compare(array, sample, allowed))
        for sample, outputs in enumerate(found)
        for name, array in outputs.items()
    ]
    worst = worst_of(each for _, each in differences if each.compared)
    if worst is None:
        return AT_RANDOM if any(each.words == AT_RANDOM for _, each in differences) else "", None
    return next(name for name, each in differences if each is worst), worst


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of the worker: open all pieces, run them one after the other, and answer once ("measured").

    `settings`: "pieces" with their artifacts, "inputs" and "outputs" of the model, "effort", and "tensors":
    the path of the file that holds the inputs, and afterwards the outputs.
    """
    started_ns = time.perf_counter_ns()
    chain = [_Running(data, link.unit) for data in settings["pieces"]]
    open_ns = time.perf_counter_ns() - started_ns
    tensors, *others = _read(settings["tensors"], settings["inputs"])
    samples = _samples(chain, tensors, BenchEffort(**settings["effort"]))
    made = [{name: tensors[name].copy() for name in settings["outputs"]}]
    for each in others:
        _run(chain, each)
        made.append({name: each[name].copy() for name in settings["outputs"]})
    _write(settings["tensors"], made, settings["outputs"])
    parts = zip(("copy_in_ns", "run_ns", "copy_out_ns"), zip(*samples, strict=True), strict=True)
    link.send(
        {
            "kind": "measured",
            "open_ns": open_ns,
            **dict(parts),
            "rss_bytes": largest_rss_bytes(),
            "receipts": [asdict(piece.session.receipt) for piece in chain],
        }
    )


class _Running:
    """One piece in the chain, open, and which tensors of the model it takes and gives."""

    def __init__(self, data: Mapping[str, Any], unit: ProcessingUnit) -> None:
        artifact = parse_artifact(data["artifact"])
        self.session: Session = get_engine(artifact.engine).open(artifact, unit)
        self.inputs = [data["prefix"] + spec.name for spec in artifact.inputs]
        self.outputs = {data["prefix"] + spec.name: spec.empty() for spec in artifact.outputs}


def _samples(chain: Sequence[_Running], tensors: Tensors, effort: BenchEffort) -> list[tuple[int, int, int]]:
    for _ in range(effort.warm_up_repetitions):
        _run(chain, tensors)
    samples: list[tuple[int, int, int]] = []
    until_ns = time.perf_counter_ns() + round(effort.min_seconds * 1e9)
    while len(samples) < effort.min_repetitions or time.perf_counter_ns() < until_ns:
        samples.append(_run(chain, tensors))
    return samples


def _run(chain: Sequence[_Running], tensors: Tensors) -> tuple[int, int, int]:
    """Run all pieces once; return nanoseconds of copying in, running and copying out."""
    copy_in_ns = run_ns = copy_out_ns = 0
    clock = time.perf_counter_ns
    for piece in chain:
        arrays, outputs = [tensors[name] for name in piece.inputs], list(piece.outputs.values())
        start = clock()
        piece.session.copy_in(arrays)
        copied = clock()
        piece.session.run()
        ran = clock()
        piece.session.copy_out(outputs)
        end = clock()
        tensors.update(piece.outputs)
        copy_in_ns += copied - start
        run_ns += ran - copied
        copy_out_ns += end - ran
    return copy_in_ns, run_ns, copy_out_ns


def _write(path: str, samples: Iterable[Tensors], names: Sequence[str]) -> None:
    import numpy as np

    with open(path, "wb") as file:
        np.savez(file, *(tensors[name] for tensors in samples for name in names))


def _read(path: str, names: Sequence[str]) -> list[Tensors]:
    import numpy as np

    with np.load(path, allow_pickle=False) as found:
        return [
            {name: found[f"arr_{sample * len(names) + place}"] for place, name in enumerate(names)}
            for sample in range(_SAMPLES)
        ]


def _spread_us(samples_ns: Iterable[int]) -> Spread:
    return Spread.of([sample / 1000 for sample in samples_ns])

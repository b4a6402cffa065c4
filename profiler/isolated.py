"""Each layer on each unit, alone.

Where the engine times the operators of the whole model, a layer gets the time of its operators. Elsewhere
each smallest chunk is a session of its own, whose constant overhead is what these sessions take more in
sum than the whole. Both are then fitted to the run of the whole by one factor a unit, which is kept: it
tells how much the layers take more or less when nobody looks.

A layer is cheaper in a short chunk that always runs on the same unit, because its weights stay in the cache:
a fully connected layer took a third of what it took in the whole. Chunks of a plan are shorter than the
whole and longer than the groups of layers that are measured, so a layer counts as the geometric mean of what
both say. Simplification: it costs the same in every chunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import median

from ..executor.engine import OperatorTime
from ..formulations.errors import ENDING, ExecutionError, LayerNotRunnableError, ProfilingError
from ..formulations.hardware import ProcessingUnit
from ..formulations.network import Network
from ..formulations.operators import excluded
from .preparing import Preparer
from .probes import MAX_PROBES, Probe, Span, blocks
from .records import RecordedBench
from .summary import Timing
from .transfers import CopyModel, Load, fit_copies

MAX_CALLBACK_US = 10.0
"""Most that a callback into Python can take; 1 to 2 us were measured on a fast core."""

_APPENDED = re.compile(r"(_raster_\d+|__matmul_converted)+$")
"""What MNN appends to the name of a tensor for the operators that it makes of one operator."""

LayerOf = Callable[[str], int | None]
"""From the name of a tensor to the index of the layer that makes it."""


def without_callbacks(operators: Sequence[OperatorTime], whole_us: float) -> tuple[OperatorTime, ...]:
    """Take the cost of the engine's callbacks out of the times of operators.

    It is the same for each operator, so it counts most in the shortest ones. It is what all operators take
    more in sum than the undisturbed run, within `MAX_CALLBACK_US`: what is beyond has other causes, and is
    left to the factor that fits layers to the whole.
    """
    excess_us = (sum(operator.time_us for operator in operators) - whole_us) / len(operators)
    callback_us = min(max(0.0, excess_us), MAX_CALLBACK_US)
    return tuple(
        replace(operator, time_us=max(0.0, operator.time_us - callback_us)) for operator in operators
    )


def attribute(
    operators: Sequence[OperatorTime], layer_of: LayerOf, *, layers: range, prefix: str = ""
) -> list[float] | None:
    """Return the time of each layer, microseconds, in the order of `layers`; None: no operator is known.

    Engines fuse operators (only the last output keeps its name) and add some of their own (conversions
    of layout), whose names are those of a tensor with something appended, or are made up. Operators run in
    order, so one whose output is unknown belongs to the layer of the next one that is known: it prepares
    it. Those after the last known one belong to that.

    `operators`: in the order in which they ran; `prefix`: what precedes the names of the engine's tensors in
    the network.
    """
    times = [0.0] * len(layers)
    unknown = 0.0
    last = None
    for operator in operators:
        layer = layer_of(prefix + operator.output)
        if layer is None:
            layer = layer_of(prefix + _APPENDED.sub("", operator.output))
        if layer is None or layer not in layers:
            unknown += operator.time_us
            continue
        last = layer - layers.start
        times[last] += operator.time_us + unknown
        unknown = 0.0
    if last is None:
        return None
    times[last] += unknown
    return times


ROUNDS = 4
"""Factor and overhead depend on each other a little; so often they are computed in turn."""

Times = tuple[float | None, ...]
"""Microseconds by layer; None: cannot run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTiming:
    """A probe that was measured on some unit."""

    span: Span
    load_in: Load
    load_out: Load
    timing: Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTimes:
    """Layers of one network on one unit, before they are fitted to the whole."""

    layer_us: Times  # by layer; None: cannot run here
    wholes: tuple[ProbeTiming, ...]  # runs of the uncut models; empty where they cannot run here
    notes: tuple[str, ...] = ()  # what a reader should know


@dataclass(slots=True, kw_only=True)
class Timed:
    """What was timed on one unit.

    `paired`, `beside`: groups with load beside them: alone (again), and with the load.
    """

    alone: list[ProbeTiming] = field(default_factory=list)  # all groups of layers
    paired: list[ProbeTiming] = field(default_factory=list)
    beside: list[ProbeTiming] = field(default_factory=list)
    references: list[ProbeTiming] = field(default_factory=list)
    """The first group, several times in the course of the profile."""
    shortest: list[ProbeTiming] = field(default_factory=list)  # the chunks with least to do


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCosts:
    """Column of a cost table, not rounded yet.

    `copy_in`, `copy_out`: cost of copies.
    """

    unit: str
    layer_us: Times  # by layer; None: cannot run here
    overhead_us: float  # what a session takes more than its layers; paid once a chunk
    copy_in: CopyModel
    copy_out: CopyModel
    factor: float  # what times of single layers were multiplied with to fit the whole
    hop_us: float = 0.0  # what it costs to come here from another unit, besides copies and overhead


def probe_timing(probe: Probe, timing: Timing) -> ProbeTiming:
    """Return a timing together with what was copied."""
    piece = probe.prepared.piece
    load_in, load_out = (
        Load(tensors=float(len(specs)), bytes=float(sum(spec.bytes for spec in specs)))
        for specs in (piece.inputs, piece.outputs)
    )
    return ProbeTiming(span=probe.span, load_in=load_in, load_out=load_out, timing=timing)


def time_by_operators(
    bench: RecordedBench,
    unit: str,
    wholes: Sequence[Probe],
    runs: Sequence[ProbeTiming],
    layer_of: LayerOf,
) -> Times | None:
    """Return the time of each layer from the operators of the whole models; None: the engine cannot tell."""
    found: list[float] = []
    for whole, run in zip(wholes, runs, strict=True):
        operators = bench.operators(unit, whole)
        if operators is None:
            return None
        if operators:
            operators = without_callbacks(operators, run.timing.run.typical_us)
        times = attribute(operators, layer_of, layers=whole.layers, prefix=whole.prepared.piece.prefix)
        if times is None:
            return None
        found += times
    return tuple(found)


def time_by_chunks(
    bench: RecordedBench,
    unit: str,
    network: Network,
    preparer: Preparer,
    wholes: Sequence[ProbeTiming],
) -> tuple[Times, tuple[str, ...]]:
    """Return the time of each layer from sessions of the shortest chunks, and notes on those that cannot run.

    Of what cannot be converted `Preparers` notes that already.

    Raises ExecutionError: the unit can run none of them.
    """
    spans = blocks(network)
    unconvertible = preparer.attempt(spans)
    runs: dict[Span, float | None] = dict.fromkeys(spans)
    refused: dict[Span, ExecutionError] = {**unconvertible}
    for span in spans:
        if span in unconvertible:
            continue
        try:
            runs[span] = sum(bench.timing(unit, probe).run.typical_us for probe in preparer.probes(span))
        except ENDING:
            raise
        except ExecutionError as error:
            refused[span] = error
    if len(refused) == len(spans):
        raise refused[spans[0]]
    overhead_us = _overhead(runs, [whole.timing.run.typical_us for whole in wholes])
    found: list[float | None] = []
    for span in spans:
        found += _shared(network, span, runs[span], overhead_us)
    notes = tuple(
        f"unit {unit!r} cannot run {', '.join(map(repr, network.layer_names[slice(*span)]))}: {error}"
        for span, error in refused.items()
        if span not in unconvertible
    )
    return tuple(found), notes


def unit_costs(
    unit: str, raw: RawTimes, groups: Sequence[ProbeTiming], shortest: Sequence[ProbeTiming]
) -> UnitCosts:
    """Fit the layers to the whole, the overhead to the shortest chunks, and the copies to all.

    What else runs on the machine only ever adds time, and it hits every run of the whole long before it hits
    half of the runs of a short group. So the whole counts as what it takes, or as what the groups that it
    consists of take together, whichever is less.
    """
    layers_us = sum(time for time in raw.layer_us if time is not None)
    if layers_us <= 0:
        raise ProfilingError(
            f"all layers together took no time on unit {unit!r}; the engine's times are wrong"
        )
    factor, overhead_us = 1.0, 0.0
    for _ in range(ROUNDS):
        if raw.wholes:
            factor = min(_run_us(found, overhead_us) for found in (raw.wholes, groups)) / layers_us
        overhead_us = _excess(raw, shortest, factor)
    copies = [*raw.wholes, *groups, *shortest]
    return UnitCosts(
        unit=unit,
        layer_us=_between(raw.layer_us, groups, factor, overhead_us),
        overhead_us=overhead_us,
        copy_in=fit_copies([(copy.load_in, copy.timing.copy_in.typical_us) for copy in copies]),
        copy_out=fit_copies([(copy.load_out, copy.timing.copy_out.typical_us) for copy in copies]),
        factor=factor,
    )


def _between(
    layer_us: Times, groups: Sequence[ProbeTiming], factor: float, overhead_us: float
) -> tuple[float | None, ...]:
    """Return the layers as fitted to the whole, moved half of the way (of ratios) towards their groups."""
    fitted = [None if time is None else factor * time for time in layer_us]
    for group in groups:
        layers_us = span_time(fitted, group.span)
        if layers_us:
            share = sqrt(_run_us([group], overhead_us) / layers_us)
            for layer in range(*group.span):
                fitted[layer] = share * (fitted[layer] or 0.0)
    return tuple(fitted)


def _excess(raw: RawTimes, shortest: Sequence[ProbeTiming], factor: float) -> float:
    """Return what a session takes more than its layers: the median over the shortest chunks, or 0."""
    excess_us = [
        short.timing.run.typical_us - factor * chunk_us
        for short in shortest
        if (chunk_us := span_time(raw.layer_us, short.span)) is not None
    ]
    return max(0.0, median(excess_us)) if excess_us else 0.0


def _run_us(chunks: Sequence[ProbeTiming], overhead_us: float) -> float:
    """Return the time of chunks together without what their sessions cost, at least half of it."""
    runs_us = [chunk.timing.run.typical_us for chunk in chunks]
    return sum(max(0.5 * run_us, run_us - overhead_us) for run_us in runs_us)


def span_time(layer_us: Sequence[float | None], span: Span) -> float | None:
    """Return the time of some layers together; None where one of them cannot run."""
    total = 0.0
    for time in layer_us[slice(*span)]:
        if time is None:
            return None
        total += time
    return total


def allowed(network: Network, unit: ProcessingUnit, raw: RawTimes) -> tuple[RawTimes, tuple[str, ...]]:
    """Return the times without those of layers that the platform says a unit cannot run, and notes."""
    lacks = [bool(excluded(layer.op_types, unit.unsupported)) for layer in network.layers]
    if not any(lacks):
        return raw, ()
    note = (
        f"unit {unit.name!r} cannot run {sum(lacks)} of {len(lacks)} layers of "
        f"{network.name!r}, as the platform says ({', '.join(unit.unsupported)})"
    )
    times = zip(raw.layer_us, lacks, strict=True)
    kept = tuple(None if lacking else time_us for time_us, lacking in times)
    return replace(raw, layer_us=kept, wholes=()), (note,)


def able_units(raws: Mapping[str, RawTimes], span: Span) -> list[str]:
    """Return the units that can run all of some layers."""
    return [unit for unit, raw in raws.items() if span_time(raw.layer_us, span) is not None]


def slowest_us(raws: Mapping[str, RawTimes]) -> list[float]:
    """Return the time of each layer on its slowest unit."""
    rows = zip(*(raw.layer_us for raw in raws.values()), strict=True)
    return [max(time for time in row if time is not None) for row in rows]


def seams(models: Sequence[range], raws: Mapping[str, RawTimes]) -> list[int]:
    """Return where groups of layers end: where a model does, and where other units can run what follows.

    Where units differ more often than there are groups, only where a model ends.
    """
    ends = {layers.start for layers in models[1:]}
    able = [
        [time is not None for time in row] for row in zip(*(r.layer_us for r in raws.values()), strict=True)
    ]
    changes = {layer for layer in range(1, len(able)) if able[layer] != able[layer - 1]}
    return sorted(ends | changes if len(changes) < MAX_PROBES else ends)


def check_runnable(network: Network, columns: Sequence[Times], notes: Sequence[str]) -> None:
    """Require that each layer runs somewhere."""
    lost = [
        name
        for name, row in zip(network.layer_names, zip(*columns, strict=True), strict=True)
        if all(time is None for time in row)
    ]
    if lost:
        said = "".join(f"\n  - {note}" for note in notes)
        raise LayerNotRunnableError(
            f"no unit can run {', '.join(map(repr, lost))} of {network.name!r}; add a unit that can, "
            f"or use another engine:{said}"
        )


def _overhead(runs: dict[Span, float | None], wholes_us: Sequence[float]) -> float:
    """Return the constant part of a session: what many sessions take more than the few uncut ones."""
    known = [run for run in runs.values() if run is not None]
    extra = len(runs) - len(wholes_us)
    if not wholes_us or len(known) < len(runs) or extra <= 0:
        return 0.0
    excess_us = (sum(known) - sum(wholes_us)) / extra
    return max(0.0, min(excess_us, *known))


def _shared(network: Network, span: Span, run_us: float | None, overhead_us: float) -> list[float | None]:
    """Share the time of a smallest chunk among its layers by their operations, or evenly."""
    layers = network.layers[slice(*span)]
    if run_us is None:
        return [None] * len(layers)
    weights = [float(layer.flops or 0) for layer in layers]
    if sum(weights) <= 0:
        weights = [1.0] * len(layers)
    return [(run_us - overhead_us) * weight / sum(weights) for weight in weights]

"""Models: what is in a file, how it is cut, who runs it, how fast engines are, what the cache holds."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from ..api.branching import Branching
from ..api.pieces import OperatorSplit, PieceSummary
from ..api.support import ChunkSupport, ModelSupport, SectionSupport
from ..executor.callable_inspection import FunctionSummary, PipelineInspection
from ..executor.engines.bench import EngineBench
from ..executor.engines.cache import Cache, CacheEntry
from ..executor.engines.conformance import ConformanceCheck
from ..executor.graph.inspection import Inspection
from ..executor.model import TensorSpec
from ..formulations.spatial import Axis, SpatialNetwork
from ..solvers.pieces.finding import Pieces
from .blocks import Block, Cell, Column, Sentence, Table, Tone, Unit, Value, grid, notes, table
from .words import branching_words, counted, layers_words, seconds, size

_MOST_ROWS = 80

_UNVERIFIED = (
    "not verified: the uncut model itself gives mostly numbers that are not finite; try it on real inputs "
    "(--input) or in a range (--input-range)"
)


def inspection_blocks(found: Inspection, graph: Branching, problem: str) -> Iterator[Block]:
    """Yield what `tools inspect` answers; `problem` says why MNN cannot run the model, if it cannot."""
    unknown = found.layers_without_flops
    total = f"{found.flops / 1e6:,.1f} MFLOP{f' (unknown for {unknown} layers)' if unknown else ''}"
    yield Sentence(
        f": {sum(count for _, count in found.op_counts)} operators in {len(found.layers)} layers "
        f"(granularity {found.granularity}), {len(found.cuts)} legal cuts, {total}, "
        f"{size(found.weight_bytes)} of weights",
        lead=found.network,
    )
    yield from _file(found.path, found.digest, found.inputs, found.outputs)
    yield _layers(found)
    yield Sentence(f"operators: {', '.join(f'{kind} {count}' for kind, count in found.op_counts)}")
    yield Sentence(f"graph: {branching_words(graph)}")
    if problem:
        yield Sentence("", Tone.BAD, lead=f"MNN cannot run this model: {problem}")
    else:
        yield Sentence("MNN can run all of them", Tone.GOOD)
    yield from notes(found.warnings)


def pipeline_blocks(found: PipelineInspection, graph: Branching) -> Iterator[Block]:
    """Yield what `gapless tools inspect` answers about a pipeline of functions and models."""
    count = sum(layer.layers for layer in found.layers)
    yield Sentence(f": {count} layers, {len(found.cuts)} legal cuts", lead=found.network)
    yield from _file(found.path, found.digest, found.inputs, found.outputs)
    cuts = {cut.cut: cut for cut in found.cuts}

    def functions(layer: FunctionSummary) -> str:
        return ", ".join(f"{kind}: {name}" for kind, name in zip(layer.kinds, layer.functions, strict=True))

    columns: list[Column[FunctionSummary]] = [
        Column("#", Unit.COUNT, lambda layer: layers_words(layer.layer, layer.layer + layer.layers)),
        Column("layer", Unit.NAME, lambda layer: layer.name),
        Column("functions", Unit.TEXT, functions),
        Column("takes", Unit.NAME, lambda layer: ", ".join(layer.inputs)),
        Column("gives", Unit.TEXT, lambda layer: ", ".join(map(_spec, layer.outputs))),
        Column("alive before", Unit.BYTES, lambda one: cuts[one.layer].bytes if one.layer in cuts else None),
        Column("tensors", Unit.COUNT, lambda one: cuts[one.layer].tensors if one.layer in cuts else None),
    ]
    yield table("Layers", columns, found.layers, most=len(found.layers))
    yield Sentence(f"graph: {branching_words(graph)}")
    words = "functions: by kind of unit; * is for every other kind. Shapes are those of a sample."
    yield Sentence(words, Tone.SOFT)


def _file(
    path: object, digest: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
) -> Iterator[Sentence]:
    """Yield where a model is, and what goes in and comes out."""
    yield Sentence(f"{path}  [{digest[:12]}]", Tone.SOFT)
    yield Sentence("")
    yield Sentence(f"  in   {', '.join(map(_spec, inputs))}")
    yield Sentence(f"  out  {', '.join(map(_spec, outputs))}")


def _spec(spec: TensorSpec) -> str:
    return f"{spec.name} {spec.dtype} {'x'.join(map(str, spec.shape)) or 'scalar'}"


def _layers(found: Inspection) -> Table:
    cuts = {cut.cut: cut for cut in found.cuts}

    def row(index: int) -> tuple[Value, ...]:
        layer, cut = found.layers[index], cuts.get(index)
        return (
            index,
            layer.name if len(layer.name) <= 44 else f"{layer.name[:41]}...",
            ", ".join(layer.op_types),
            None if layer.flops is None else f"{layer.flops / 1e6:,.2f}",
            layer.weight_bytes or None,
            cut.bytes if cut is not None else "no cut" if index else None,
            None if cut is None else cut.tensors,
        )

    heads = [("#", Unit.COUNT), ("layer", Unit.NAME), ("operators", Unit.NAME), ("MFLOP", Unit.COUNT)]
    heads += [("weights", Unit.BYTES), ("alive before", Unit.BYTES), ("tensors", Unit.COUNT)]
    return grid("Layers", heads, map(row, range(len(found.layers))), most=_MOST_ROWS)


def bench_blocks(benches: Sequence[tuple[str, EngineBench]]) -> Iterator[Block]:
    """Yield what `gapless device bench` answers."""
    first = benches[0][1]
    engines = dict.fromkeys(bench.receipts[0].engine for _, bench in benches)
    runs = min(bench.run_us.count for _, bench in benches)
    yield Sentence(f"{first.network} by {' and '.join(engines)}; medians of {runs} runs or more")
    columns: list[Column[tuple[str, EngineBench]]] = [
        Column("unit", Unit.NAME, lambda row: row[0]),
        Column("granted", Unit.TEXT, lambda row: _granted(row[1])),
        Column("run", Unit.MEASURED, lambda row: row[1].run_us.median),
        Column("p95", Unit.MEASURED, lambda row: row[1].run_us.p95),
        Column("copy in", Unit.MEASURED, lambda row: row[1].copy_in_us.median),
        Column("copy out", Unit.MEASURED, lambda row: row[1].copy_out_us.median),
        Column("open", Unit.MEASURED, lambda row: row[1].open_us),
        Column("memory", Unit.BYTES, lambda row: row[1].rss_bytes),
        Column("largest error", Unit.COUNT, lambda row: _error(row[1])),
    ]
    yield table("Units", columns, benches)
    for words in dict.fromkeys(bench.words for _, bench in benches if bench.worst_error is None):
        yield Sentence(f"not verified: {words}" if words else _UNVERIFIED, Tone.WARN)


def _granted(bench: EngineBench) -> str:
    receipt = bench.receipts[0]
    cores = receipt.granted_cores
    granted = f"{receipt.granted_backend}, {receipt.granted_threads or '?'} threads"
    granted += f", cores {','.join(map(str, cores))}" if cores else ""
    return granted + (f", emulated {receipt.quota_permille / 10:g} %" if receipt.quota_permille else "")


def _error(bench: EngineBench) -> Cell:
    if bench.worst_error is None:
        return Cell("not verified", Tone.WARN)
    return Cell(f"{bench.worst_error:.1e}", Tone.BAD if bench.wrong else Tone.PLAIN)


def check_blocks(engine: str, checks: Sequence[ConformanceCheck]) -> Iterator[Block]:
    """Yield what `gapless device bench --check` answers."""
    failed = [check for check in checks if check.problem is not None]
    yield Sentence(f"{engine}: {len(checks) - len(failed)} of {len(checks)} tests passed")
    columns: list[Column[ConformanceCheck]] = [
        Column("test", Unit.NAME, lambda check: check.name),
        Column("result", Unit.TEXT, lambda one: Cell("FAILED", Tone.BAD) if one.problem else "passed"),
        Column("tried", Unit.TEXT, lambda check: check.tried),
    ]
    yield table("Tests", columns, checks, most=len(checks))
    yield from (Sentence("", Tone.BAD, lead=f"{check.name}: {check.problem}") for check in failed)


def cache_blocks(cache: Cache) -> Iterator[Block]:
    """Yield what `gapless tools cache` answers: sums by kind, and whether anything is to be done."""
    entries = cache.entries()
    kinds: defaultdict[str, list[CacheEntry]] = defaultdict(list)
    for entry in entries:
        kinds[entry.suffix.removeprefix(".")].append(entry)
    limit = size(cache.limit_bytes)
    yield Sentence(f"{cache.folder}: {len(entries)} files, {size(cache.size_bytes)} of at most {limit}")
    if not entries:
        return

    def used(found: Sequence[CacheEntry]) -> str:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(max(entry.used_at_s for entry in found)))

    columns: list[Column[tuple[str, list[CacheEntry]]]] = [
        Column("kind", Unit.NAME, lambda row: row[0]),
        Column("files", Unit.COUNT, lambda row: len(row[1])),
        Column("size", Unit.BYTES, lambda row: sum(entry.size_bytes for entry in row[1])),
        Column("last used", Unit.TEXT, lambda row: used(row[1])),
    ]
    yield table("Kinds", columns, sorted(kinds.items()))
    words = (
        "More than it may hold: the files that were not used for longest go when the next one is written."
        if cache.size_bytes > cache.limit_bytes
        else "Nothing needs to be done: files that were not used for longest go when it is full."
    )
    yield Sentence(f"{words} --clear removes all now.")


def split_blocks(network: str, found: Sequence[OperatorSplit], parts: int, axis: Axis) -> Iterator[Block]:
    """Yield what `gapless tools inspect --split` answers."""
    split = sum(not entry.obstacle for entry in found)
    words = f": {split} of {len(found)} operators split in {parts} along {axis.name.lower()}"
    yield Sentence(words, lead=network)
    columns: list[Column[OperatorSplit]] = [
        Column("operator", Unit.NAME, lambda entry: entry.name),
        Column("type", Unit.NAME, lambda entry: entry.op_type),
        Column("window", Unit.TEXT, lambda entry: "does not split" if entry.obstacle else _window(entry)),
        Column("size", Unit.COUNT, lambda entry: f"{entry.size[0]} x {entry.size[1]}"),
        Column("tile MFLOP", Unit.FACTOR, lambda entry: entry.tile_flops / 1e6, digits=2),
        Column("tile bytes", Unit.BYTES, lambda entry: entry.tile_bytes),
        Column("read again", Unit.SHARE, lambda entry: None if entry.obstacle else entry.reread),
        Column("fused", Unit.COUNT, lambda entry: entry.fused or None),
        Column("computed again", Unit.SHARE, lambda entry: None if entry.obstacle else entry.redundancy),
    ]
    yield table("Operators", columns, found, most=_MOST_ROWS)
    yield Sentence(
        f"tile: the largest of {parts}; read again: by this operator alone; computed again: when it is fused "
        "with a given number of operators before it, back to inputs and to what does not split.",
        Tone.SOFT,
    )


def _window(entry: OperatorSplit) -> str:
    if entry.stride is None:
        return "whole"
    words = f"{entry.extent}" + (f" by {entry.stride}" if entry.stride != 1 else "")
    return words + (f", enlarged {entry.up}" if entry.up != 1 else "")


def pieces_blocks(network: SpatialNetwork, found: Pieces, pieces: Sequence[PieceSummary]) -> Iterator[Block]:
    """Yield what `gapless tools inspect --pieces` answers."""
    layers = sum(node.is_layer for node in network.nodes)
    yield Sentence(
        f": {layers} convolutions and poolings ({len(network.operators)} operators) in {found.count} pieces "
        f"by method {found.method}, {seconds(found.seconds)}",
        lead=network.name,
    )
    yield _proof(found)
    columns: list[Column[tuple[int, PieceSummary]]] = [
        Column("#", Unit.COUNT, lambda row: row[0]),
        Column("from", Unit.NAME, lambda row: row[1].first),
        Column("to", Unit.NAME, lambda row: row[1].last),
        Column("operators", Unit.COUNT, lambda row: row[1].operators),
        Column("layers", Unit.COUNT, lambda row: row[1].layers),
        Column("MFLOP", Unit.FACTOR, lambda row: row[1].flops / 1e6, digits=2),
        Column("extra MFLOP", Unit.FACTOR, lambda row: row[1].extra_flops / 1e6, digits=2),
        Column("halo", Unit.COUNT, lambda row: f"{row[1].halo[0]} x {row[1].halo[1]}"),
        Column("in tiles", Unit.TEXT, lambda row: "yes" if row[1].whole is None else f"no: {row[1].whole}"),
    ]
    yield table("Pieces", columns, enumerate(pieces), most=_MOST_ROWS)
    yield Sentence(
        "extra: what halos inside a piece add, for a tile as large as the map (PICO, cost C); halo: rows and "
        "columns that the largest one adds.",
        Tone.SOFT,
    )


def _proof(found: Pieces) -> Sentence:
    words = (
        f"largest extra {found.largest / 1e6:,.3f} MFLOP, all together {sum(found.costs) / 1e6:,.3f} MFLOP"
    )
    if found.proven:
        return Sentence(f"{words}; proven: no chain is better", Tone.GOOD)
    if found.bound == found.largest:
        less = "no chain has a smaller largest one; number and sum are not proven"
        return Sentence(f"{words}; {less}", Tone.WARN)
    return Sentence(f"{words}; not proven, at least {found.bound / 1e6:,.3f} MFLOP", Tone.WARN)


def support_blocks(found: ModelSupport, *, limited: bool) -> Iterator[Block]:
    """Yield what `gapless tools inspect --support` answers; `limited`: whether memory was."""
    yield Sentence(
        f" on {found.platform}: {counted(len(found.operators), 'operator')} in "
        f"{counted(len(found.sections), 'section')}, {counted(len(found.chunks), 'chunk')}; neighbours by "
        f"the order of the file would give {found.file_order_sections} and {found.file_order_chunks}",
        lead=found.network,
    )
    lacks = {
        unit: Counter(each.operator for each in found.operators if unit not in each.units)
        for unit in found.units
    }
    count = len(found.operators)
    units: list[Column[str]] = [
        Column("unit", Unit.NAME, lambda unit: unit),
        Column("can run", Unit.COUNT, lambda unit: count - lacks[unit].total()),
        Column("of all", Unit.SHARE, lambda unit: 1 - lacks[unit].total() / count),
        Column("cannot run", Unit.LONG, lambda unit: _words(lacks[unit]) or None),
    ]
    yield table("Operators by unit", units, found.units)
    ways = "more than 10^15" if found.placements is None else f"{found.placements:,}"
    yield Sentence(f"ways to give each operator a unit: {ways}")
    sections = list(enumerate(found.sections))
    parts: list[Column[tuple[int, SectionSupport]]] = [
        Column("section", Unit.COUNT, lambda row: row[0]),
        Column("units", Unit.NAME, lambda row: ", ".join(row[1].units)),
        Column("operators", Unit.COUNT, lambda row: len(row[1].operators)),
        Column("from", Unit.NAME, lambda row: row[1].operators[0]),
        Column("to", Unit.NAME, lambda row: row[1].operators[-1]),
    ]
    yield table("Sections", parts, sections, most=_MOST_ROWS)
    chunks: list[Column[ChunkSupport]] = [
        Column("sections", Unit.COUNT, _where),
        Column("units", Unit.NAME, lambda chunk: ", ".join(chunk.units)),
        Column("a session", Unit.BYTES, lambda chunk: chunk.bytes),
    ]
    yield table("Chunks", chunks, found.chunks, most=_MOST_ROWS)
    yield from _memory(found, limited=limited)


def _words(lacks: Counter[str]) -> str:
    return ", ".join(f"{text} {count}" for text, count in lacks.most_common())


def _where(chunk: ChunkSupport) -> str:
    last = chunk.stop - 1
    return str(last) if chunk.start == last else f"{chunk.start}-{last}"


def _memory(found: ModelSupport, *, limited: bool) -> Iterator[Sentence]:
    sessions = sum(len(chunk.units) for chunk in found.chunks)
    yield Sentence(f"all chunks on all units: {counted(sessions, 'session')}, {size(found.session_bytes)}")
    loaded = found.loaded
    if loaded is None:
        return
    yield Sentence(
        f"{'within the limit' if limited else 'on the shortest way for some set of free units'}: "
        f"{counted(len(loaded.sessions), 'session')}, {size(loaded.bytes)}"
    )
    if limited:
        lost = f"; {counted(loaded.lost_sets, 'set')} of units cannot run it alone any more"
        yield Sentence(
            f"what that costs: the shortest latency grows by {loaded.mean_permille / 10 - 100:.1f} % on "
            f"average over sets of units, {loaded.worst_permille / 10 - 100:.1f} % at most"
            + (lost if loaded.lost_sets else "")
        )

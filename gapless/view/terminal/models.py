"""Models for people: what is in a file, how fast an engine runs it, what the cache holds."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import counted, microseconds, size
from ...api.branching import Branching
from ...executor.callable_inspection import PipelineInspection
from ...executor.engines.bench import EngineBench
from ...executor.engines.cache import Cache, CacheEntry
from ...executor.engines.conformance import ConformanceCheck
from ...executor.graph.inspection import Inspection
from ...executor.model import TensorSpec
from ..layout import indented, plain_table

MAX_ROWS_SHOWN = 80

_UNVERIFIED = (
    "not verified: the uncut model itself gives mostly numbers that are not finite; try it on real inputs "
    "(--input) or in a range (--input-range)"
)


def inspection_view(found: Inspection, graph: Branching, problem: str) -> Group:
    """Return what `tools inspect` shows; `problem` says why MNN cannot run the model, if it cannot."""
    total = f"{found.flops / 1e6:,.1f} MFLOP" + (
        f" (unknown for {found.layers_without_flops} layers)" if found.layers_without_flops else ""
    )
    head = Text(found.network, style="bold")
    head.append(
        f": {sum(count for _, count in found.op_counts)} operators in {len(found.layers)} layers "
        f"(granularity {found.granularity}), {len(found.cuts)} legal cuts, {total}, "
        f"{size(found.weight_bytes)} of weights",
        style="not bold",
    )
    parts: list[RenderableType] = [head, Text(f"{found.path}  [{found.digest[:12]}]", style="dim"), ""]
    parts += [_specs("in ", found.inputs), _specs("out", found.outputs), "", indented(_layers(found))]
    hidden = len(found.layers) - MAX_ROWS_SHOWN
    if hidden > 0:
        parts.append(Text(f"  ... and {hidden} more layers (--json shows all)"))
    counts = ", ".join(f"{kind} {count}" for kind, count in found.op_counts)
    parts += ["", Text(f"operators: {counts}"), Text(f"graph: {branching_words(graph)}")]
    if problem:
        parts.append(Text(f"MNN cannot run this model: {problem}", style="red"))
    else:
        parts.append(Text("MNN can run all of them", style="green"))
    parts += [Text(f"note: {warning}", style="yellow") for warning in found.warnings]
    return Group(*parts)


def branching_words(found: Branching) -> str:
    """Return what branches a network has, in words."""
    if found.is_chain:
        return "a chain: its layers have one order"
    sets = f"more than {found.counted_to:,}" if found.down_sets is None else f"{found.down_sets:,}"
    return (
        f"up to {found.width} layers side by side, {found.branches} branches of at most "
        f"{counted(found.longest_branch, 'layer')}, {sets} down-sets (what can lie before a cut)"
    )


def pipeline_view(found: PipelineInspection, graph: Branching) -> Group:
    """Return what `gapless tools inspect` shows of a pipeline of functions and models."""
    head = Text(found.network, style="bold")
    count = sum(layer.layers for layer in found.layers)
    head.append(f": {count} layers, {len(found.cuts)} legal cuts", style="not bold")
    numbers = ("#", "alive before", "tensors")
    table = plain_table("#", "layer", "functions", "takes", "gives", *numbers[1:], numbers=numbers)
    cuts = {cut.cut: cut for cut in found.cuts}
    for layer in found.layers:
        cut = cuts.get(layer.layer)
        table.add_row(
            str(layer.layer) if layer.layers == 1 else f"{layer.layer}-{layer.layer + layer.layers - 1}",
            layer.name,
            ", ".join(f"{kind}: {name}" for kind, name in zip(layer.kinds, layer.functions, strict=True)),
            ", ".join(layer.inputs),
            ", ".join(map(_spec, layer.outputs)),
            "-" if cut is None else size(cut.bytes),
            "-" if cut is None else str(cut.tensors),
        )
    where = Text(f"{found.path}  [{found.digest[:12]}]", style="dim")
    words = "functions: by kind of unit; * is for every other kind. Shapes are those of a sample."
    specs = (_specs("in ", found.inputs), _specs("out", found.outputs))
    shape = Text(f"graph: {branching_words(graph)}")
    return Group(head, where, "", *specs, "", indented(table), "", shape, Text(words, style="dim"))


def _specs(word: str, specs: Sequence[TensorSpec]) -> Text:
    return Text(f"  {word}  " + ", ".join(map(_spec, specs)))


def _spec(spec: TensorSpec) -> str:
    return f"{spec.name} {spec.dtype} {'x'.join(map(str, spec.shape)) or 'scalar'}"


def _layers(found: Inspection) -> RenderableType:
    numbers = ("#", "MFLOP", "weights", "alive before", "tensors")
    table = plain_table("#", "layer", "operators", *numbers[1:], numbers=numbers)
    cuts = {cut.cut: cut for cut in found.cuts}
    for index, layer in enumerate(found.layers[:MAX_ROWS_SHOWN]):
        cut = cuts.get(index)
        table.add_row(
            str(index),
            layer.name if len(layer.name) <= 44 else f"{layer.name[:41]}...",
            ", ".join(layer.op_types),
            "-" if layer.flops is None else f"{layer.flops / 1e6:,.2f}",
            size(layer.weight_bytes) if layer.weight_bytes else "-",
            "no cut" if cut is None and index else "-" if cut is None else size(cut.bytes),
            "-" if cut is None else str(cut.tensors),
        )
    return table


def bench_view(benches: Sequence[tuple[str, EngineBench]]) -> Group:
    """Return what `gapless device bench` shows."""
    columns = ("run", "p95", "copy in", "copy out", "open", "memory", "largest error")
    table = plain_table("unit", "granted", *columns, numbers=columns)
    for unit, bench in benches:
        receipt = bench.receipts[0]
        cores = receipt.granted_cores
        granted = f"{receipt.granted_backend}, {receipt.granted_threads or '?'} threads"
        granted += f", cores {','.join(map(str, cores))}" if cores else ""
        granted += f", emulated {receipt.quota_permille / 10:g} %" if receipt.quota_permille else ""
        table.add_row(
            unit,
            granted,
            microseconds(bench.run_us.median),
            microseconds(bench.run_us.p95),
            microseconds(bench.copy_in_us.median),
            microseconds(bench.copy_out_us.median),
            microseconds(bench.open_us),
            size(bench.rss_bytes),
            _error(bench),
        )
    first = benches[0][1]
    engines = dict.fromkeys(bench.receipts[0].engine for _, bench in benches)
    runs = min(bench.run_us.count for _, bench in benches)
    return Group(
        Text(f"{first.network} by {' and '.join(engines)}; medians of {runs} runs or more"),
        "",
        indented(table),
        *([Text(_UNVERIFIED, style="yellow")] if any(b.worst_error is None for _, b in benches) else []),
    )


def _error(bench: EngineBench) -> Text:
    if bench.worst_error is None:
        return Text("not verified", style="yellow")
    return Text(f"{bench.worst_error:.1e}", style="bold red" if bench.wrong else "")


def check_view(engine: str, checks: Sequence[ConformanceCheck]) -> Group:
    """Return what `gapless device bench --check` shows."""
    table = plain_table("test", "result", "tried")
    for check in checks:
        word = Text("passed") if check.problem is None else Text("FAILED", style="bold red")
        table.add_row(check.name, word, check.tried)
    failed = [check for check in checks if check.problem is not None]
    passed = len(checks) - len(failed)
    parts: list[RenderableType] = [
        Text(f"{engine}: {passed} of {len(checks)} tests passed"),
        "",
        indented(table),
    ]
    parts += [Text(f"{check.name}: {check.problem}", style="red") for check in failed]
    return Group(*parts[:3], *([""] if failed else []), *parts[3:])


def cache_view(cache: Cache) -> Group:
    """Return what `gapless tools cache` shows: sums by kind, and whether anything is to be done."""
    entries = cache.entries()
    table = plain_table("kind", "files", "size", "last used", numbers=("files", "size"))
    kinds: defaultdict[str, list[CacheEntry]] = defaultdict(list)
    for entry in entries:
        kinds[entry.suffix.removeprefix(".")].append(entry)
    for kind, found in sorted(kinds.items()):
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(max(entry.used_at_s for entry in found)))
        table.add_row(kind, f"{len(found):,}", size(sum(entry.size_bytes for entry in found)), used)
    parts: list[RenderableType] = [
        Text(
            f"{cache.folder}: {len(entries)} files, {size(cache.size_bytes)} "
            f"of at most {size(cache.limit_bytes)}"
        )
    ]
    if not entries:
        return Group(*parts)
    full = cache.size_bytes > cache.limit_bytes
    words = (
        "More than it may hold: the files that were not used for longest go when the next one is written."
        if full
        else "Nothing needs to be done: files that were not used for longest go when it is full."
    )
    return Group(*parts, "", indented(table), "", Text(f"{words} --clear removes all now."))

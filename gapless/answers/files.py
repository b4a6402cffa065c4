"""Files: which formats there are, and what is in plans, traces, run folders and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..files.formats import FileFormat
from ..files.run_document import RunDocument
from ..files.run_folder import Folder, FolderEntry
from ..files.schema import ObjectTable
from ..formulations.history import History
from ..formulations.judge import score
from ..formulations.network import Network
from ..formulations.problem import Problem
from ..profiler.prediction.executions import ExecutedPlan, Executions
from .blocks import Block, Cell, Column, Section, Sentence, Tone, Unit, Value, grid, table
from .traces import traced_chart
from .tuning import verdict
from .words import size

_MOST_ROWS = 30

_FACTS = [("what", Unit.NAME), ("value", Unit.LONG)]


def formats_blocks(formats: Sequence[FileFormat]) -> Iterator[Block]:
    """Yield what `gapless list files` answers."""
    yield Sentence('Every file says its format ("gapless.plan") and its version.', Tone.STRONG)
    columns: list[Column[FileFormat]] = [
        Column("format", Unit.NAME, lambda entry: entry.name),
        Column("what is in it", Unit.TEXT, lambda entry: entry.what),
        Column("written by", Unit.TEXT, lambda entry: entry.written_by),
    ]
    yield table("Formats", columns, formats, most=len(formats))
    words = "`gapless tools schema FORMAT` shows the keys; with --json or --out it gives the JSON Schema."
    yield Sentence(words, Tone.SOFT)


def format_blocks(entry: FileFormat, tables: Sequence[ObjectTable]) -> Iterator[Block]:
    """Yield what `gapless tools schema FORMAT` answers."""
    yield Sentence(f": {entry.what}", lead=f"gapless.{entry.name}")
    yield Sentence(f"written by {entry.written_by}; read by {entry.read_by}", Tone.SOFT)
    for one in tables:
        yield Sentence("")
        yield Sentence(f": {one.text}", lead="the file" if one is tables[0] else one.name)
        rows = [(f"{row.name}{'' if row.needed else '?'}", row.kind, row.text) for row in one.rows]
        heads = [("key", Unit.NAME), ("value", Unit.TEXT), ("meaning", Unit.TEXT)]
        yield grid(one.name, heads, rows, most=len(rows))
    yield Sentence("")
    yield Sentence("?: may be left out", Tone.SOFT)


def trace_blocks(trace: History) -> Iterator[Block]:
    """Yield a trace file that is as it was written."""
    yield traced_chart(trace)
    yield Sentence("checked: nothing overlaps, every arrow goes forward", Tone.SOFT)


def defects_blocks(path: str, events: int, defects: Sequence[str], *, ours: bool) -> Iterator[Block]:
    """Yield what is wrong with a trace file that is not, or not any more, as gapless writes it."""
    whose = "a trace of gapless that was edited" if ours else "a Chrome trace of another program"
    yield Sentence(f": {whose}, {events:,} events", lead=path)
    if not defects:
        yield Sentence("no defects: slices nest, tracks have names, arrows go forward", Tone.GOOD)
        return
    yield Sentence("", Tone.BAD, lead=f"{len(defects)} defect{'' if len(defects) == 1 else 's'}:")
    yield from (Sentence(f"  - {defect}") for defect in defects[:_MOST_ROWS])
    if len(defects) > _MOST_ROWS:
        yield Sentence(f"  ... and {len(defects) - _MOST_ROWS} more (--json shows all)")


def executions_blocks(found: Executions) -> Iterator[Block]:
    """Yield executed plans, the fastest first."""
    words = f" on {found.platform.name}: {len(found.executed)} executed plans; {found.source}"
    yield Sentence(words, lead=found.network.name)
    ranked = sorted(found.executed, key=lambda one: one.period_us)
    place = {id(one): number for number, one in enumerate(ranked, start=1)}
    problems = {costs.provenance.method: found.problem(costs.provenance.method) for costs in found.tables}

    def says(problem: Problem) -> Callable[[ExecutedPlan], int]:
        return lambda one: score(problem, one.plan).value("period")

    columns: list[Column[ExecutedPlan]] = [
        Column("#", Unit.COUNT, lambda one: place[id(one)]),
        Column("plan", Unit.CODE, lambda one: str(one.plan)),
        Column("measured", Unit.MEASURED, lambda one: one.period_us),
        Column("runs", Unit.COUNT, lambda one: one.runs),
    ]
    columns += [
        Column(f"{name} says", Unit.MICROSECONDS, says(problem)) for name, problem in problems.items()
    ]
    yield table("Plans", columns, ranked, most=_MOST_ROWS)


def network_blocks(found: Network) -> Iterator[Block]:
    """Yield the layers of a network, and where it may be cut."""
    yield Sentence(f": {len(found.layers)} layers", lead=found.name)

    def row(index: int) -> tuple[Value, ...]:
        layer, legal = found.layers[index], index in found.legal_cuts
        cut = "" if index == 0 else size(found.boundary_bytes[index]) if legal else "no"
        return index, layer.name, ", ".join(layer.op_types), layer.weight_bytes or None, cut

    heads = [("#", Unit.COUNT), ("layer", Unit.NAME), ("operators", Unit.NAME), ("weights", Unit.BYTES)]
    rows = map(row, range(len(found.layers)))
    yield grid("Layers", [*heads, ("cut before it", Unit.TEXT)], rows, most=_MOST_ROWS)


def run_blocks(found: RunDocument) -> Iterator[Block]:
    """Yield what a run is."""
    yield Sentence(f"{found} ({found.standing})", Tone.STRONG)
    facts = (
        ("begun", found.started_at),
        ("ended", found.ended_at),
        ("results of", found.written_at),
        ("command", found.line),
        ("engine", found.engine),
        ("units", ", ".join(found.units)),
        ("device", found.device),
        ("board", "" if found.board is None else found.board.destination),
        ("gapless", found.gapless),
        ("files", ", ".join(found.files)),
    )
    yield grid("The run", _FACTS, ((name, text or None) for name, text in facts))


def other_blocks(path: str, kind: str, what: str, document: dict[str, Any]) -> Iterator[Block]:
    """Yield the keys of a file that has no answer of its own."""
    yield Sentence(f": {kind}{f', {what}' if what else ''}", lead=path)
    heads = [("key", Unit.NAME), ("value", Unit.TEXT)]
    yield grid("Keys", heads, ((key, _short(value)) for key, value in document.items()), most=len(document))
    yield Sentence("--json prints all of it", Tone.SOFT)


def _short(value: object) -> str:
    if isinstance(value, dict | list):
        return f"{len(value)} {'keys' if isinstance(value, dict) else 'entries'}"
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def folder_blocks(found: Folder) -> Iterator[Block]:
    """Yield what is in a run folder, its verdict, and what to do next."""
    yield Sentence("" if found.run is None else f": {found.run} ({found.run.standing})", lead=found.path)
    columns: list[Column[FolderEntry]] = [
        Column("file", Unit.NAME, lambda entry: entry.name),
        Column("size", Unit.BYTES, lambda entry: entry.size_bytes),
        Column("what it is", Unit.TEXT, lambda one: Cell(one.what, Tone.BAD if one.broken else Tone.PLAIN)),
    ]
    yield table("Files", columns, found.entries, most=len(found.entries))
    if found.tuning is not None:
        yield from verdict(found.tuning)
        yield Sentence("")
    yield from (Sentence(note, Tone.WARN) for note in found.notes)
    # A line of its own for each, so that it can be copied from all but the narrowest terminals.
    lines = (
        Sentence(text, tone)
        for line, purpose in found.following
        for text, tone in ((f"  {purpose}:", Tone.SOFT), (f"    {line}", Tone.PLAIN))
    )
    yield Section("next:", tuple(lines))

"""Files: which formats there are, what is in plans, traces and run folders, and how runs differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..executor.measurement import Spread
from ..files.formats import FileFormat
from ..files.run_document import RunDocument, RunState
from ..files.run_folder import Folder, FolderEntry
from ..files.runs import Fact, Noise, RunDifferences, RunSummary, TimeDifference
from ..files.schema import ObjectTable
from ..formulations.history import History
from ..formulations.judge import score
from ..formulations.network import Network
from ..formulations.problem import Problem
from ..profiler.prediction.executions import ExecutedPlan, Executions
from .blocks import Block, Cell, Column, Section, Sentence, Shown, Table, Tone, Unit, Value, grid, table
from .traces import traced_chart
from .tuning import verdict
from .words import counted, interval_words, size

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


_MOST_RUNS = 200

_STATES = {
    RunState.RUNNING: Tone.STRONG,
    RunState.FINISHED: Tone.GOOD,
    RunState.INTERRUPTED: Tone.WARN,
    RunState.FAILED: Tone.BAD,
}
_NOISES = {Noise.BEYOND: Tone.WARN, Noise.WITHIN: Tone.GOOD, Noise.FEW: Tone.SOFT, Noise.OTHER: Tone.SOFT}


def runs_blocks(found: Sequence[RunSummary], places: Sequence[str]) -> Iterator[Block]:
    """Yield what `gapless list runs` answers: the latest first."""
    if not found:
        where = ", ".join(places)
        yield Sentence(f"no runs below {where}; `gapless tune` and `gapless profile` begin them")
    columns: list[Column[RunSummary]] = [
        Column("run", Unit.NAME, lambda run: Cell(run.path, Tone.STRONG)),
        Column("begun", Unit.TEXT, lambda run: run.started_at[:16].replace("T", " ") or None),
        Column("state", Unit.TEXT, lambda run: Cell(run.state, _STATES[run.state])),
        Column("what", Unit.TEXT, _what),
        Column("best", Unit.MEASURED, lambda run: None if run.period_us is None else run.period_us.median),
        Column("verdict", Unit.TEXT, _verdict),
    ]
    yield table("Runs", columns, found, most=_MOST_RUNS)


def _what(run: RunSummary) -> Cell:
    """Return command and networks, and behind them engine and units."""
    engine = "simulated" if run.simulated else run.engine
    units = counted(len(run.units), "unit") if run.units else ""
    rest = ", ".join(filter(None, (engine, units, run.board and f"on {run.board}")))
    words = f"{run.command or 'run'} {' '.join(run.networks)}".strip()
    return Cell(words, note=f"({rest})" if rest else "")


def _verdict(run: RunSummary) -> Cell:
    if run.problem:
        return Cell(run.problem, Tone.BAD)
    partly = run.candidates and run.measured < run.candidates
    return Cell(run.verdict or None, note=f"({run.measured} of {run.candidates} measured)" if partly else "")


def differences(found: RunDifferences) -> Section:
    """Return what differs between two runs."""
    same = f"The same in both: {', '.join(found.same)}."
    beyond = (
        "Beyond the noise: each visit of one run was slower than every visit of the other, and there were "
        "enough of them that chance does so in less than 5 % of the cases. What the machine was doing can "
        "differ between two runs, too."
    )
    measured = times(found)
    return Section(
        f"Two runs: {found.second.path} against {found.first.path}",
        (
            facts(found),
            *([Sentence(same, Tone.SOFT)] if found.same else []),
            measured,
            *([Sentence(beyond, Tone.SOFT, shown=Shown.PAGE)] if measured.rows else []),
        ),
    )


def facts(found: RunDifferences) -> Table:
    """Return what was asked of two runs, and differs."""
    columns: list[Column[Fact]] = [
        Column("what differs", Unit.TEXT, lambda one: one.name),
        Column(found.first.path, Unit.LONG, lambda one: one.first or None),
        Column(found.second.path, Unit.LONG, lambda one: one.second or None),
    ]
    return table("What differs", columns, found.facts)


def times(found: RunDifferences) -> Table:
    """Return the times of what both ran, the best of each first."""

    def spread(one: Spread) -> Cell:
        return Cell(one.median, note=f"({interval_words(one.least, one.most)})")

    columns: list[Column[TimeDifference]] = [
        Column("runs", Unit.CODE, lambda one: one.what),
        Column(found.first.path, Unit.MEASURED, lambda one: spread(one.first)),
        Column(found.second.path, Unit.MEASURED, lambda one: spread(one.second)),
        Column("change", Unit.CHANGE, lambda one: one.percent / 100),
        Column("that is", Unit.TEXT, lambda one: Cell(one.noise, _NOISES[one.noise])),
    ]
    title = "Times: median over the visits, fastest to slowest visit"
    return table(title, columns, [*([found.best] if found.best else []), *found.shared])

"""Runs: which there are, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..executor.measurement import Spread
from ..files.run_differences import Fact, Noise, RunDifferences, TimeDifference
from ..files.run_document import RunState
from ..files.runs import RunSummary
from .blocks import Block, Cell, Column, Section, Sentence, Shown, Table, Tone, Unit, table
from .words import counted, interval_words

_MOST_ROWS = 200

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
    yield table("Runs", columns, found, most=_MOST_ROWS)


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

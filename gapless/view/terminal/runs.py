"""Runs for people: a table of them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import interval_words, microseconds
from ...files.run_differences import RunDifferences
from ...files.run_document import RunState
from ...files.runs import RunSummary
from ..layout import indented, plain_table

MAX_ROWS_SHOWN = 200

_STYLES = {
    RunState.RUNNING: "bold cyan",
    RunState.FINISHED: "green",
    RunState.INTERRUPTED: "yellow",
    RunState.FAILED: "red",
}


def runs_view(found: Sequence[RunSummary], places: Sequence[str]) -> RenderableType:
    """Return what `gapless list runs` shows: the latest first."""
    if not found:
        where = ", ".join(places)
        return Text(f"no runs below {where}; `gapless tune` and `gapless profile` begin them")
    table = plain_table("run", "begun", "state", "what", "best", "verdict", numbers=("best",))
    for run in found[:MAX_ROWS_SHOWN]:
        table.add_row(
            Text(run.path, style="bold"),
            run.started_at[:16].replace("T", "\n") or "-",
            Text(run.state, style=_STYLES[run.state]),
            _what(run),
            microseconds(None if run.period_us is None else run.period_us.median),
            Text(run.problem, style="red") if run.problem else _verdict(run),
        )
    hidden = len(found) - MAX_ROWS_SHOWN
    more = [Text(f"... and {hidden} more (--json shows all)")] if hidden > 0 else []
    return Group(table, *more)


def differences_view(found: RunDifferences) -> RenderableType:
    """Return what differs between two runs."""
    first, second = found.first.path, found.second.path
    head = Text(f"{second} against {first}", style="bold")
    facts = plain_table("what differs", first, second)
    for fact in found.facts:
        facts.add_row(fact.name, fact.first or "-", fact.second or "-")
    parts: list[RenderableType] = ["", head, indented(facts)]
    if found.same:
        parts.append(Text(f"  the same in both: {', '.join(found.same)}", style="dim"))
    lines = [found.best] if found.best else []
    if lines or found.shared:
        names = (first, second, "change")
        times = plain_table("runs", *names, "that is", numbers=names)
        for one in (*lines, *found.shared):
            measured = (
                f"{microseconds(spread.median)}\n{interval_words(spread.least, spread.most)}"
                for spread in (one.first, one.second)
            )
            times.add_row(one.what, *measured, f"{one.percent:+.1f} %", str(one.noise))
        parts += ["", indented(times)]
    return Group(*parts)


def _what(run: RunSummary) -> Text:
    """Return command and networks, and below them engine and units."""
    text = Text(f"{run.command or 'run'} {' '.join(run.networks)}".strip())
    engine = "simulated" if run.simulated else run.engine
    count = len(run.units)
    units = f"{count} unit{'' if count == 1 else 's'}" if count else ""
    rest = ", ".join(filter(None, (engine, units, run.board and f"on {run.board}")))
    return text.append(f"\n{rest}" if rest else "", style="magenta" if run.simulated else "dim")


def _verdict(run: RunSummary) -> Text:
    text = Text(run.verdict or "-")
    partly = run.candidates and run.measured < run.candidates
    return text.append(f"; {run.measured} of {run.candidates} measured", style="dim") if partly else text

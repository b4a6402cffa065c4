"""Two runs side by side on the page."""

from __future__ import annotations

from dataclasses import dataclass

from ...executor.measurement import Spread
from ...files.run_differences import Noise, RunDifferences, TimeDifference
from ..words import interval_words, microseconds
from .table import Table, TableCell, columns, numbers, table
from .texts import clipped

_KINDS = {Noise.BEYOND: "warn", Noise.WITHIN: "good", Noise.FEW: "soft", Noise.OTHER: "soft"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTables:
    """The differences of two runs: a title, what differs, what is the same, and the times."""

    title: str
    facts: Table
    same: str
    times: Table | None


def run_tables(found: RunDifferences) -> RunTables:
    """Return what the page shows of the differences of two runs."""
    first, second = clipped(found.first.path), clipped(found.second.path)
    facts = ([TableCell(text=one.name), _fact(one.first), _fact(one.second)] for one in found.facts)
    titles = (*columns("what"), *numbers(first, second, "second against first"), *columns("that is"))
    times = ([found.best] if found.best else []) + list(found.shared)
    return RunTables(
        title=f"{second} against {first}",
        facts=table("What differs", columns("what", first, second), facts),
        same=", ".join(found.same),
        times=table("Times: median over the visits, fastest to slowest visit", titles, map(_row, times))
        if times
        else None,
    )


def _fact(text: str) -> TableCell:
    return TableCell(text=clipped(text) or "-", kind="text")


def _row(one: TimeDifference) -> list[TableCell | str]:
    return [
        TableCell(text=clipped(one.what), kind="code"),
        _time(one.first),
        _time(one.second),
        f"{one.percent:+.1f} %",
        TableCell(text=one.noise, kind=_KINDS[one.noise]),
    ]


def _time(spread: Spread) -> TableCell:
    return TableCell(text=microseconds(spread.median), note=interval_words(spread.least, spread.most))

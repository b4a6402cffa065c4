"""Which units can run which operators, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import counted, size
from ...api.support import ModelSupport
from ..layout import indented, plain_table
from .models import MAX_ROWS_SHOWN


def support_view(found: ModelSupport, *, limited: bool) -> Group:
    """Return what `gapless tools inspect --support` shows; `limited`: whether memory was."""
    head = Text(found.network, style="bold")
    head.append(
        f" on {found.platform}: {counted(len(found.operators), 'operator')} in "
        f"{counted(len(found.sections), 'section')}, {counted(len(found.chunks), 'chunk')}; neighbours by "
        f"the order of the file would give {found.file_order_sections} and {found.file_order_chunks}",
        style="not bold",
    )
    ways = "more than 10^15" if found.placements is None else f"{found.placements:,}"
    return Group(
        head,
        "",
        indented(_operators(found)),
        "",
        Text(f"ways to give each operator a unit: {ways}"),
        "",
        indented(_sections(found)),
        *_more(len(found.sections), "sections"),
        "",
        indented(_chunks(found)),
        *_more(len(found.chunks), "chunks"),
        "",
        *_memory(found, limited=limited),
    )


def _operators(found: ModelSupport) -> RenderableType:
    """Return how many operators each unit can run, and those that it cannot."""
    numbers = ("can run", "of all")
    table = plain_table("unit", *numbers, "cannot run", numbers=numbers)
    for unit in found.units:
        lacks = Counter(each.operator for each in found.operators if unit not in each.units)
        able = len(found.operators) - lacks.total()
        words = ", ".join(f"{text} {count}" for text, count in lacks.most_common())
        table.add_row(unit, str(able), f"{100 * able / len(found.operators):.1f} %", words or "-")
    return table


def _sections(found: ModelSupport) -> RenderableType:
    numbers = ("section", "operators")
    table = plain_table("section", "units", numbers[1], "from", "to", numbers=numbers)
    for index, section in enumerate(found.sections[:MAX_ROWS_SHOWN]):
        names = section.operators
        table.add_row(str(index), ", ".join(section.units), str(len(names)), names[0], names[-1])
    return table


def _chunks(found: ModelSupport) -> RenderableType:
    numbers = ("sections", "a session")
    table = plain_table("sections", "units", numbers[1], numbers=numbers)
    for chunk in found.chunks[:MAX_ROWS_SHOWN]:
        last = chunk.stop - 1
        where = str(last) if chunk.start == last else f"{chunk.start}-{last}"
        table.add_row(where, ", ".join(chunk.units), size(chunk.bytes))
    return table


def _memory(found: ModelSupport, *, limited: bool) -> Iterable[RenderableType]:
    sessions = sum(len(chunk.units) for chunk in found.chunks)
    yield Text(f"all chunks on all units: {counted(sessions, 'session')}, {size(found.session_bytes)}")
    loaded = found.loaded
    if loaded is None:
        return
    yield Text(
        f"{'within the limit' if limited else 'on the shortest way for some set of free units'}: "
        f"{counted(len(loaded.sessions), 'session')}, {size(loaded.bytes)}"
    )
    if limited:
        lost = f"; {counted(loaded.lost_sets, 'set')} of units cannot run it alone any more"
        yield Text(
            f"what that costs: the shortest latency grows by {loaded.mean_permille / 10 - 100:.1f} % on "
            f"average over sets of units, {loaded.worst_permille / 10 - 100:.1f} % at most"
            + (lost if loaded.lost_sets else "")
        )


def _more(count: int, noun: str) -> Iterable[RenderableType]:
    hidden = count - MAX_ROWS_SHOWN
    return (Text(f"  ... and {hidden} more {noun} (--json shows all)"),) if hidden > 0 else ()

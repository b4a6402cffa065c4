"""Which units can run which operators of a model, and into what parts that cuts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..api.support import ChunkSupport, ModelSupport, SectionSupport
from .blocks import Block, Column, Sentence, Unit, table
from .words import counted, size

_MOST_ROWS = 80


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

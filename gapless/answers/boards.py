"""What a board has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..boards.checks import BoardDiagnosis, Check
from .blocks import Block, Column, Section, Sentence, Tone, Unit, table
from .doctor import state


def board_blocks(found: BoardDiagnosis) -> Iterator[Block]:
    """Yield what `gapless doctor --on` answers."""
    yield Sentence(f"board {found.board}")
    columns: list[Column[Check]] = [
        Column("needed", Unit.TEXT, lambda check: check.what),
        Column("state", Unit.TEXT, lambda check: state(ok=check.ok)),
        Column("found", Unit.TEXT, lambda check: check.found),
    ]
    yield table("Needed", columns, found.checks)
    if found.diagnosis is not None:
        yield from map(Sentence, _machine(found.diagnosis))
    for check in found.checks:
        if check.cure:
            cures = tuple(Sentence(f"  {line}") for line in check.cure)
            yield Section(f"what to do about {check.what}:", cures)
    if found.ok:
        yield Sentence("The board can profile, tune and run.", Tone.GOOD)


def _machine(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what `gapless doctor` there says of the machine, its engines and its solvers."""
    reports = [*document.get("engines", []), *document.get("backends", [])]
    yield f"{document.get('device')}, Python {document.get('python')}"
    yield f"ready: {', '.join(str(report.get('name')) for report in reports if report.get('ok'))}"
    for report in reports:
        if not report.get("ok"):
            yield f"not there: {report.get('name')}: {report.get('reason')}"
    for each in document.get("permissions", []):
        yield f"{each.get('name')}: {'yes' if each.get('ok') else 'no'}  {each.get('reason') or ''}".rstrip()

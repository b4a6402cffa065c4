"""What a board has, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...boards.checks import BoardDiagnosis
from ..layout import indented, plain_table


def board_view(found: BoardDiagnosis) -> Group:
    """Return what `gapless doctor --on` shows."""
    table = plain_table("needed", "state", "found")
    for check in found.checks:
        state = Text("ready", style="green") if check.ok else Text("missing", style="yellow")
        table.add_row(check.what, state, check.found)
    parts: list[RenderableType] = [Text(f"board {found.board}"), "", indented(table)]
    if found.diagnosis is not None:
        parts += ["", *_machine(found.diagnosis)]
    for check in found.checks:
        if check.cure:
            parts += ["", Text(f"what to do about {check.what}:", style="yellow")]
            parts += [Text(f"  {line}", overflow="fold") for line in check.cure]
    if found.ok:
        parts += ["", Text("The board can profile, tune and run.", style="green")]
    return Group(*parts)


def _machine(document: Mapping[str, Any]) -> list[RenderableType]:
    """Return what `gapless doctor` there says of the machine, its engines and its solvers."""
    reports = [*document.get("engines", []), *document.get("backends", [])]
    ready = [str(report.get("name")) for report in reports if report.get("ok")]
    lines = [f"{document.get('device')}, Python {document.get('python')}", f"ready: {', '.join(ready)}"]
    lines += [
        f"not there: {report.get('name')}: {report.get('reason')}"
        for report in reports
        if not report.get("ok")
    ]
    for each in document.get("permissions", []):
        lines.append(
            f"{each.get('name')}: {'yes' if each.get('ok') else 'no'}  {each.get('reason') or ''}".rstrip()
        )
    return [Text(line) for line in lines]

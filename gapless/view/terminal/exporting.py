"""Exports for people: which chunk became which file, and how to run them."""

from __future__ import annotations

import shlex

from rich.console import Group, RenderableType
from rich.text import Text

from ...answers.words import millis, size
from ...executor.export.folder import Exported
from ...executor.export.manifest import RUNNER_NAME, SCRIPT_NAME
from ..layout import indented, plain_table


def export_view(exported: Exported) -> Group:
    """Return what `gapless export` shows."""
    manifest = exported.manifest
    head = Text(", ".join(network.name for network in manifest.networks), style="bold")
    head.append(
        f" for {manifest.engine}: {len(exported.bytes)} files, {size(sum(exported.bytes.values()))}, "
        f"in {exported.folder}",
        style="not bold",
    )
    chunks = plain_table(
        "stream",
        "chunk",
        "layers",
        "unit",
        "predicted",
        "file",
        "size",
        numbers=("chunk", "predicted", "size"),
    )
    for stream in manifest.streams:
        for chunk in stream.chunks:
            names = [step.file for step in chunk.steps]
            chunks.add_row(
                stream.name,
                str(chunk.number),
                f"{chunk.start}-{chunk.stop - 1}",
                chunk.unit,
                millis(chunk.predicted_us),
                ", ".join(names),
                size(sum(exported.bytes[name] for name in names)),
            )
    parts: list[RenderableType] = [head, "", indented(chunks), ""]
    script = exported.folder / SCRIPT_NAME
    if SCRIPT_NAME in manifest.files:
        parts += [
            Text(script.read_text(encoding="utf-8"), no_wrap=True),
            _hint(f"sh {shlex.quote(str(script))}"),
        ]
    else:
        parts.append(_hint(f"python3 {shlex.quote(str(exported.folder / RUNNER_NAME))}"))
    return Group(*parts)


def _hint(command: str) -> Text:
    return Text("Run it with ").append(command, style="bold")

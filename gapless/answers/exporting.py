"""Exports: which chunk became which file, and how to run them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ..executor.export.folder import Exported
from ..executor.export.manifest import RUNNER_NAME, SCRIPT_NAME, ExportedChunk
from .blocks import Block, Column, Sentence, Tone, Unit, table
from .words import size


def export_blocks(exported: Exported) -> Iterator[Block]:
    """Yield what `gapless export` answers."""
    manifest = exported.manifest
    files = f"{len(exported.bytes)} files, {size(sum(exported.bytes.values()))}, in {exported.folder}"
    yield Sentence(f" for {manifest.engine}: {files}", lead=", ".join(one.name for one in manifest.networks))

    def bytes_of(chunk: ExportedChunk) -> int:
        return sum(exported.bytes[step.file] for step in chunk.steps)

    columns: list[Column[tuple[str, ExportedChunk]]] = [
        Column("stream", Unit.NAME, lambda row: row[0]),
        Column("chunk", Unit.COUNT, lambda row: row[1].number),
        Column("layers", Unit.TEXT, lambda row: f"{row[1].start}-{row[1].stop - 1}"),
        Column("unit", Unit.NAME, lambda row: row[1].unit),
        Column("predicted", Unit.MICROSECONDS, lambda row: row[1].predicted_us),
        Column("file", Unit.TEXT, lambda row: ", ".join(step.file for step in row[1].steps)),
        Column("size", Unit.BYTES, lambda row: bytes_of(row[1])),
    ]
    chunks = [(stream.name, chunk) for stream in manifest.streams for chunk in stream.chunks]
    yield table("Chunks", columns, chunks, most=len(chunks))
    script = exported.folder / SCRIPT_NAME
    command = f"python3 {shlex.quote(str(exported.folder / RUNNER_NAME))}"
    if SCRIPT_NAME in manifest.files:
        yield Sentence(script.read_text(encoding="utf-8"))
        command = f"sh {shlex.quote(str(script))}"
    yield Sentence(f"Run it with {command}", Tone.STRONG)

"""File formats: their JSON Schemas."""

from __future__ import annotations

from typing import Annotated

import typer

from ...files import documents
from ..base.answer import Answer, command, write_out
from ..base.general_options import JsonOption
from ..options.problem import OutOption

FormatArgument = Annotated[
    str,
    typer.Argument(
        metavar="FORMAT", help="A kind of file, such as plan (see `gapless list files`).", show_default=False
    ),
]


@command
def list_files(*, json: JsonOption = False) -> Answer:
    """List the kinds of files that gapless reads and writes."""
    from ...answers.files import formats_blocks
    from ...files.formats import FORMATS

    return Answer(
        document=lambda: {
            **documents.header("formats"),
            "formats": [documents.plain_data(entry) for entry in FORMATS],
        },
        view=lambda: formats_blocks(FORMATS),
    )


@command
def tools_schema(format: FormatArgument, *, out: OutOption = None, json: JsonOption = False) -> Answer:
    """Show the keys of a kind of file; --json or --out give its JSON Schema."""
    from ...answers.files import format_blocks
    from ...files.formats import file_format
    from ...files.schema import json_schema, object_tables

    entry, found = file_format(format), json_schema(format)
    return Answer(
        document=lambda: found,
        view=lambda: format_blocks(entry, tuple(object_tables(found))),
        notes=write_out(out, lambda: documents.json_text(found)),
    )

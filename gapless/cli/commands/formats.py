"""File formats: their JSON Schemas."""

from __future__ import annotations

from typing import Annotated

import typer

from ...files import documents
from ..base.answer import Answer, command, write_out
from ..base.general_options import JsonOption
from ..options.problem import OutOption

FormatArgument = Annotated[
    str | None,
    typer.Argument(metavar="[FORMAT]", help="A kind of file, e.g. plan.", show_default=False),
]


@command
def tools_schema(format: FormatArgument = None, *, out: OutOption = None, json: JsonOption = False) -> Answer:
    """List the kinds of files; or show the keys of one: --json or --out give its JSON Schema."""
    from ...files.formats import FORMATS, file_format
    from ...files.schema import json_schema, object_tables
    from ...formulations.errors import InvalidInputError
    from ...view.terminal.formats import format_view, formats_view

    if format is None:
        if out is not None:
            raise InvalidInputError(
                "--out needs the name of a format, e.g. `gapless tools schema plan --out plan.schema.json`"
            )
        return Answer(
            document=lambda: {
                **documents.header("formats"),
                "formats": [documents.plain_data(entry) for entry in FORMATS],
            },
            view=lambda: formats_view(FORMATS),
        )
    entry, found = file_format(format), json_schema(format)
    return Answer(
        document=lambda: found,
        view=lambda: format_view(entry, tuple(object_tables(found))),
        notes=write_out(out, lambda: documents.json_text(found)),
    )

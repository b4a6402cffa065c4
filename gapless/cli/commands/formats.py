"""File formats: their JSON Schemas."""

from __future__ import annotations

from typing import Annotated

from ..base.answer import Answer, command
from ..base.general_options import argument
from ..options.problem import OutOption

FormatArgument = Annotated[
    str,
    argument("FORMAT", "A kind of file, such as plan (see `gapless list files`)."),
]


@command("gapless list files")
def list_files() -> Answer:
    """List the kinds of files that gapless reads and writes."""
    from ...answers.files import formats_blocks
    from ...files.formats import FORMATS

    return Answer.of("formats", {}, lambda: formats_blocks(FORMATS), formats=FORMATS)


@command("gapless tools schema plan --out plan.schema.json")
def tools_schema(format: FormatArgument, *, out: OutOption = None) -> Answer:
    """Show the keys of a kind of file; --json or --out give its JSON Schema."""
    from ...answers.files import format_blocks
    from ...files.formats import file_format
    from ...files.schema import json_schema, object_tables

    entry, found = file_format(format), json_schema(format)
    return Answer(
        document=lambda: found,
        view=lambda: format_blocks(entry, tuple(object_tables(found))),
        files={"out": None},
    )

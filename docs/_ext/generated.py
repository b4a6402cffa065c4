"""Parts of pages that are made from the code, and the JSON Schemas beside them.

A page says where: `<!-- generated: commands -->`. What is put there is Markdown, so that its headings,
links and tables are like all others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from gapless.files.formats import FORMATS
from gapless.files.schema import json_schema

from . import commands, errors, formulations, schemas

SCHEMA_FOLDER = "_static/schemas"

PARTS: dict[str, Callable[[], str]] = {
    "commands": commands.reference,
    "general options": commands.general,
    "formats": schemas.overview,
    **{f"schema {entry.name}": schemas.part_of(entry) for entry in FORMATS},
    "formulations": formulations.reference,
    "errors": errors.tree,
    "exit codes": errors.exit_codes,
}
"""What can be asked for."""

_ASKED = re.compile(r"^<!-- generated: (.*?) -->$", re.MULTILINE)


def filled(text: str) -> str:
    """Return the text of a page with everything in it that is made from the code.

    Raises
    ------
    ExtensionError
        The page asks for something that is not known.
    """

    def part(asked: re.Match[str]) -> str:
        if asked[1] not in PARTS:
            raise ExtensionError(f"{asked[0]}: nothing is generated under this name, only {', '.join(PARTS)}")
        return PARTS[asked[1]]()

    return _ASKED.sub(part, text)


def _fill(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = filled(source[0])


def _write_schemas(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / SCHEMA_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for entry in FORMATS:
        text = json.dumps(json_schema(entry.name), indent=1)
        (folder / f"{entry.name}.json").write_text(text + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill pages when they are read, and write the schemas when all is built."""
    app.connect("source-read", _fill)
    app.connect("build-finished", _write_schemas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Small tools: the version, JSON Schemas of files, problems from the files of other planners."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from rich.text import Text

from ...version import __version__
from ..base.answer import Answer, command
from ..base.general_options import argument, heading
from ..options.problem import OutOption

_import_option = heading("What is imported")
FormatArgument = Annotated[
    str,
    argument("FORMAT", "A kind of file, such as plan (see `gapless list files`)."),
]


@command("gapless tools version")
def tools_version() -> Answer:
    """Print the version."""
    return Answer.of("version", {}, lambda: Text(f"gapless {__version__}"))


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


class Foreign(StrEnum):
    """Whose files are imported."""

    PIPEEDGE = "pipeedge"


@command("gapless tools import pipeedge models.yml device_types.yml devices.yml --model net")
def tools_import(
    form: Annotated[Foreign, argument("FORM", "Whose files: pipeedge.")],
    models: Annotated[Path, argument("MODELS", "models.yml: layers of models.")],
    device_types: Annotated[Path, argument("DEVICE_TYPES", "device_types.yml: profiles of device types.")],
    devices: Annotated[Path, argument("DEVICES", "devices.yml: hosts of each type.")],
    *,
    model: Annotated[str, _import_option(help="Which model, as models.yml names it.")],
    batch: Annotated[
        int | None, _import_option(min=1, help="Size of the micro-batch, where several were profiled.")
    ] = None,
    dtype: Annotated[
        str | None, _import_option(help="Type of numbers, where several were profiled: torch.float32.")
    ] = None,
    out: OutOption = None,
) -> Answer:
    """Make a problem from the files of another planner: the three YAML files of PipeEdge."""
    from ...profiler.clusters.pipeedge import import_pipeedge
    from ..tasks.showing import described

    problem = import_pipeedge(models, device_types, devices, model=model, batch=batch, dtype=dtype)
    return described(problem, notes=[problem.costs.provenance.notes])

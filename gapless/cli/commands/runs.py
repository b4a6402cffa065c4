"""The runs that are there."""

from __future__ import annotations

from typing import Annotated

import typer

from ...files import documents
from ..base.answer import Answer, command
from ..base.general_options import JsonOption

FoldersArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FOLDER...]",
        help="Where to look, and below; otherwise the current folder.",
        show_default=False,
    ),
]


@command
def list_runs(folders: FoldersArgument = None, *, json: JsonOption = False) -> Answer:
    """List runs, the latest first: what was tuned or profiled, when, how far it came, and what won."""
    from ...answers.runs import runs_blocks
    from ...files.runs import find_runs

    places = folders or ["."]
    found = find_runs(places)
    return Answer(
        document=lambda: {**documents.header("runs"), "runs": [documents.plain_data(run) for run in found]},
        view=lambda: runs_blocks(found, places),
    )

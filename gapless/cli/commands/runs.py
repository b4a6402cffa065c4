"""The runs that are there."""

from __future__ import annotations

from typing import Annotated

from ..base.answer import Answer, command
from ..base.general_options import argument

FoldersArgument = Annotated[
    list[str] | None,
    argument("[FOLDER...]", "Where to look, and below; otherwise the current folder."),
]


@command(
    "gapless list runs",
    "gapless list runs gapless-out --json",
)
def list_runs(folders: FoldersArgument = None) -> Answer:
    """List runs, the latest first: what was tuned or profiled, when, how far it came, and what won."""
    from ...answers.runs import runs_blocks
    from ...files.runs import find_runs

    places = folders or ["."]
    found = find_runs(places)
    return Answer.of("runs", {}, lambda: runs_blocks(found, places), runs=found)

"""Plans for other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...executor.export.kinds import ExportKind
from ...files import documents
from ..base.answer import Answer, command
from ..base.general_options import JsonOption, heading
from ..options.problem import split_files
from .running import ModelAtOption

_export_option = heading("What is written")

PlanFilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="[PROBLEM] PLAN",
        help="A plan or deployment file, or a folder of `gapless tune`; before it the problem, if the plan "
        "does not say which one it is for.",
        show_default=False,
    ),
]
KindOption = Annotated[
    ExportKind,
    _export_option(
        "--to",
        help="What to export to. onnx: sliced models; onnxruntime: with its session options; mnn: converted, "
        "with its session settings; taskset: with a shell script that runs a process for each chunk.",
    ),
]
FolderOption = Annotated[
    Path,
    _export_option(
        help="The folder: new, empty, or with an older export, which is replaced.", show_default=True
    ),
]
RuntimeOption = Annotated[
    str | None,
    _export_option(help="Who runs what --to taskset writes, onnxruntime or mnn; otherwise who was measured."),
]


@command
def export(
    files: PlanFilesArgument,
    *,
    to: KindOption,
    out: FolderOption = Path("gapless-export"),
    at: ModelAtOption = None,
    engine: RuntimeOption = None,
    json: JsonOption = False,
) -> Answer:
    """Write the chunks of a plan as model files, with a manifest and a runner that need only the engine."""
    from ...view.terminal import exporting as views
    from ..tasks.exporting import export_files, notes_of

    problem, plan = split_files(files)
    exported = export_files(problem, plan, to=to, out=out, at=at, engine=engine)
    return Answer(
        document=lambda: {
            **documents.header("export_files"),
            "folder": str(exported.folder),
            "manifest": documents.plain_data(exported.manifest),
            "bytes": exported.bytes,
        },
        view=lambda: views.export_view(exported),
        notes=list(notes_of(exported)),
    )

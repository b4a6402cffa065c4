"""Plans for other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...executor.export.kinds import ExportKind
from ...question.subjects import Running
from ..base.answer import Answer, command
from ..base.general_options import heading
from ..options.models import CheckOption
from ..options.problem import FilesArgument, NumberOption, ask_plan

_export_option = heading("What is written")

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


@command("gapless export gapless-out --to onnx")
def export(
    files: FilesArgument,
    *,
    number: NumberOption = None,
    to: KindOption,
    out: FolderOption = Path("gapless-export"),
    at: Annotated[tuple[str, ...], Running.field_named("at")] = (),
    engine: RuntimeOption = None,
    check: CheckOption = True,
) -> Answer:
    """Write the chunks of a plan as model files, with a manifest and a runner that need only the engine."""
    from ...answers.exporting import export_blocks
    from ...executor.export.folder import require_free
    from ..tasks.exporting import export_plan, notes_of

    require_free(out)
    asked, plan = ask_plan(files, number=number)
    exported = export_plan(asked.problem, plan, to=to, out=out, at=at, engine=engine, check=check)
    return Answer.of(
        "export_files",
        {},
        lambda: export_blocks(exported),
        notes=[*asked.notes, *notes_of(exported)],
        folder=str(exported.folder),
        manifest=exported.manifest,
        bytes=exported.bytes,
    )

"""Sweeps: many plans, and what they say together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...question.fields import Only
from ...question.subjects import Folder
from ..base.answer import Answer, command, command_line
from ..base.exits import ExitCode
from ..base.general_options import argument, heading, output_option

_sweep_option = heading("How to solve")

SpecArgument = Annotated[
    Path,
    argument(
        "SPEC",
        "A sweep file: JSON (`gapless tools schema sweep`), or Python that defines `sweep`, a "
        "gapless.studies.Sweep, or a function `problems` that yields problems. A Python file is run: "
        "use only files that you trust.",
    ),
]
JobsOption = Annotated[
    int | None,
    _sweep_option(
        min=1, max=1024, help="Plans that are made at once; otherwise as many as cores may be used."
    ),
]
AddressOption = Annotated[
    str | None,
    _sweep_option(
        help="Solve over the Ray cluster at this address, e.g. 10.0.0.1:6379, instead of child processes."
    ),
]
AllowNoTokenOption = Annotated[
    bool,
    _sweep_option(
        "--allow-no-token", help="With --address: also where Ray takes orders from everybody who reaches it."
    ),
]
PlansOption = Annotated[bool, output_option("--plans", help="Also keep each plan as a file, in OUT/plans.")]
ParquetOption = Annotated[bool, output_option("--parquet", help="Also write the table as OUT/sweep.parquet.")]


@command(
    "gapless sweep boards.json --out boards",
    "gapless sweep boards.json --out boards --resume --plans",
)
def sweep(
    spec: SpecArgument,
    *,
    jobs: JobsOption = None,
    address: AddressOption = None,
    allow_no_token: AllowNoTokenOption = False,
    folder: Annotated[Folder, Only.of("resume", "overwrite")],
    plans: PlansOption = False,
    parquet: ParquetOption = False,
    out: Annotated[Path, Folder.field_named("out")] = Path("gapless-sweep"),
) -> Answer:
    """Make many plans: which board to buy, what one more device brings, which backend proves what."""
    from ...answers.sweeps import sweep_blocks
    from ...files.run import Entry
    from ...sweeps.findings import disagreements
    from ...sweeps.folder import CSV_FILE, PAGE_FILE, PARQUET_FILE, PLANS_FOLDER, SweepOptions
    from ...sweeps.run import run_sweep
    from ...sweeps.spec import load_sweep
    from ...view.page.results import write_page
    from ...view.terminal.blocks import blocks_view
    from ..base.progress import StepLine

    options = SweepOptions(
        out=out,
        entry=folder.made(Entry),
        jobs=jobs,
        address=address,
        allow_no_token=allow_no_token,
        plans=plans,
        parquet=parquet,
    )
    asked = load_sweep(spec)
    with StepLine() as line:
        found = run_sweep(asked, options, line.report)
    write_page(found, out / PAGE_FILE, command=command_line())
    written = [
        CSV_FILE,
        PAGE_FILE,
        *([PARQUET_FILE] if parquet else []),
        *([f"{PLANS_FOLDER}/"] if plans else []),
    ]
    notes = [*found.notes, f"wrote {', '.join(str(out / name) for name in written)}"]
    wrong = disagreements(found.rows)
    code = ExitCode.VERIFICATION if wrong else ExitCode.FAILURE if found.failed else ExitCode.OK
    if found.interrupted:
        left = found.total - len(found.rows)
        notes.append(f"interrupted: {left} plans are not made; the same command with --resume goes on")
    return Answer.of(
        "sweep_result",
        {},
        lambda: blocks_view(sweep_blocks(found), details=False),
        code=ExitCode.INTERRUPTED if found.interrupted else code,
        notes=notes,
        tasks=found.total,
        resumed=found.resumed,
        interrupted=found.interrupted,
        disagreements=wrong,
        rows=[row.columns for row in found.rows],
    )

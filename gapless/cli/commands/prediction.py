"""Prediction: how well cost models predict executed plans, and what can be learned from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...files import documents
from ..base.answer import Answer, command, write_out
from ..base.general_options import JsonOption
from ..options.problem import OutOption, check_writable

ExecutionsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="EXECUTIONS",
        help="Executed plans: executions.json as written by `gapless tune`, or a file of the form in which "
        "the BetterTogether measurements are shared.",
        show_default=False,
    ),
]
LearnedCostsOption = Annotated[
    str | None,
    typer.Option(
        help="Learn from all plans: who slows whom (learned), or corrections of a co-run cost model (heavy, "
        "isolated, interpolated, or a registered one); --out writes the problem with these costs.",
        show_default=False,
    ),
]


@command
def costs_judge(
    executions: ExecutionsArgument,
    *,
    costs: LearnedCostsOption = None,
    out: OutOption = None,
    json: JsonOption = False,
) -> Answer:
    """Compare what each cost model predicts with plans that were executed; learn from them."""
    from ...answers.prediction import lessons, prediction_blocks
    from ...formulations.errors import InvalidInputError
    from ...formulations.files import dump_problem
    from ...profiler.prediction.evaluation import evaluation_of
    from ...profiler.prediction.learned import lessons_of
    from ...profiler.prediction.published import load_executions
    from ..base.progress import StepLine

    check_writable(out)
    if out is not None and costs is None:
        raise InvalidInputError("--out writes a problem with corrected costs: say which ones with --costs")
    read = load_executions(executions)
    with StepLine() as line:
        found = evaluation_of(read, report=line.report)
    learned = None if costs is None else lessons_of(read, costs)
    notes = [] if learned is None else write_out(out, lambda: dump_problem(learned.problem))
    return Answer(
        document=lambda: {
            **documents.header("prediction"),
            **documents.plain_data(found),
            "corrections": None if learned is None else documents.plain_data(learned.learned),
        },
        view=lambda: [
            *prediction_blocks(read, found),
            *([] if learned is None else lessons(read, learned.learned)),
        ],
        notes=notes,
    )

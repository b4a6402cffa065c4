"""Prediction: how well cost models foretell executed plans, and what can be learned from them."""

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
        help="Learn corrections of this co-run cost model (heavy, isolated, interpolated, or a registered "
        "one) from all plans; --out writes the problem with the corrected costs.",
        show_default=False,
    ),
]


@command
def predict(
    executions: ExecutionsArgument,
    *,
    costs: LearnedCostsOption = None,
    out: OutOption = None,
    json: JsonOption = False,
) -> Answer:
    """Compare what each cost model predicts with plans that were executed; learn corrections from them."""
    from rich.console import Group

    from ...formulations.errors import InvalidInputError
    from ...formulations.files import dump_problem
    from ...profiler.prediction.corrections import fit_corrections
    from ...profiler.prediction.evaluation import evaluation_of
    from ...profiler.prediction.published import load_executions
    from ...view.terminal.prediction import corrections_view, prediction_view
    from ..base.progress import StepLine

    check_writable(out)
    if out is not None and costs is None:
        raise InvalidInputError("--out writes a problem with corrected costs: say which ones with --costs")
    read = load_executions(executions)
    with StepLine() as line:
        found = evaluation_of(read, report=line.report)
    problem = None if costs is None else read.problem(costs)
    learned = None if problem is None else fit_corrections(problem, read.executed)
    notes = []
    if problem is not None and learned is not None:
        notes = write_out(out, lambda: dump_problem(learned.applied(problem)))
    return Answer(
        document=lambda: {
            **documents.header("prediction"),
            **documents.plain_data(found),
            "corrections": None if learned is None else documents.plain_data(learned),
        },
        view=lambda: Group(
            prediction_view(read, found), *([] if learned is None else [corrections_view(read, learned)])
        ),
        notes=notes,
    )

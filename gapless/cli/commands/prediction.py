"""Prediction: how well cost models predict executed plans, and what can be learned from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..base.answer import Answer, command
from ..base.general_options import argument
from ..options.problem import OutOption

ExecutionsArgument = Annotated[
    Path,
    argument(
        "EXECUTIONS",
        "Executed plans: executions.json as written by `gapless tune`, or a file of the form in which "
        "the BetterTogether measurements are shared.",
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


@command("gapless costs judge gapless-out/executions.json --costs heavy")
def costs_judge(
    executions: ExecutionsArgument,
    *,
    costs: LearnedCostsOption = None,
    out: OutOption = None,
) -> Answer:
    """Compare what each cost model predicts with plans that were executed; learn from them."""
    from ...answers.prediction import lessons, prediction_blocks
    from ...formulations.errors import InvalidInputError
    from ...formulations.files import dump_problem
    from ...profiler.prediction.evaluation import evaluation_of
    from ...profiler.prediction.learned import lessons_of
    from ...profiler.prediction.published import load_executions
    from ..base.progress import StepLine

    if out is not None and costs is None:
        raise InvalidInputError("--out writes a problem with corrected costs: say which ones with --costs")
    read = load_executions(executions)
    with StepLine() as line:
        found = evaluation_of(read, report=line.report)
    learned = None if costs is None else lessons_of(read, costs)
    return Answer.of(
        "prediction",
        found,
        lambda: [
            *prediction_blocks(read, found),
            *([] if learned is None else lessons(read, learned.learned)),
        ],
        files={} if learned is None else {"out": lambda: dump_problem(learned.problem)},
        corrections=None if learned is None else learned.learned,
    )

"""The HTML report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from ...files import documents
from ...formulations.problem import Problem
from ...question.fields import Only, said
from ...question.question import Question
from ...question.subjects import Search
from ...question.values import LIST
from ...solvers.result import SolveResult
from ..base.answer import Answer, command, command_line
from ..base.exits import code_of_result
from ..base.general_options import argument, heading
from ..options.problem import NumberOption, RulesOption, result_option

_report_option = heading("What is shown")

GivenArgument = Annotated[
    list[str],
    argument(
        "RUN_OR_PLAN...",
        "Folders of `gapless tune`; plan or deployment files; problems (files or shipped names), which "
        "count for what stands behind them; and what is known besides: traces, measurements, comparisons. Or "
        "the file of `gapless plan --pareto --out`, alone or behind its problem.",
    ),
]
PageOption = Annotated[Path, result_option("Where the page goes.")]
TitleOption = Annotated[str, _report_option(help="Title of the page.")]
RequestsOption = Annotated[
    int | None,
    _report_option(
        min=1, max=2000, help="Requests of the predicted trace; otherwise as many as were measured, or 20."
    ),
]
BackendsOption = Annotated[
    tuple[str, ...],
    said(
        'Backends that are compared on the problem, comma-separated, or "none"; otherwise the usual ones, '
        "unless a comparison is given.",
        LIST,
        heading="What is shown",
    ),
]
ExplainOption = Annotated[bool, _report_option(help="Say why the plan is as it is.", show_default=True)]


@command(
    "gapless report gapless-out --out report.html",
    "gapless report plan.json",
    "gapless report gapless-out noisy    # two runs: how they differ",
)
def report(
    given: GivenArgument,
    *,
    number: NumberOption = None,
    out: PageOption = Path("report.html"),
    title: TitleOption = "",
    question: Annotated[Question, Only.of("objective")],
    rules: RulesOption = None,
    requests: RequestsOption = None,
    backends: BackendsOption = (),
    search: Annotated[Search, Only.of("time_limit_s", "start")] = Search(time_limit_s=2.0, start="native"),
    explain: ExplainOption = True,
) -> Answer:
    """Write a page about plans and runs: traces, bubbles, proofs, predictions, memory, reasons, receipts."""
    from ..tasks.reporting import (
        NoPlanError,
        ReportOptions,
        front_reported,
        is_front,
        report_watched,
        written_blocks,
    )

    line = command_line()
    if number is None and is_front(given):
        wrote, told = front_reported(given, out, title=title, command=line)
        return Answer.of("report_file", wrote, lambda: written_blocks(wrote), notes=told)
    asked = ReportOptions(
        title=title,
        number=number,
        objective=question.objective,
        rules=rules,
        requests=requests,
        backends=backends,
        solving=search.solver_options,
        explain=explain,
        command=line,
    )
    try:
        written, notes = report_watched(given, asked, out)
    except NoPlanError as none:
        return _no_plan(none.problem, none.result, out)
    return Answer.of("report_file", written, lambda: written_blocks(written), notes=notes)


def _no_plan(problem: Problem, result: SolveResult, out: Path) -> Answer:
    """Say why there is nothing to report, as `gapless plan` does."""
    from ...answers.plans import result_blocks

    return Answer(
        document=lambda: documents.result_document(problem, result),
        view=lambda: result_blocks(problem, result),
        code=code_of_result(result),
        notes=[f"{out} is not written: no plan was found"],
    )

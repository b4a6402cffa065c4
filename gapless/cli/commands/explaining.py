"""Explaining: why a plan is as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ...files import documents
from ...question.fields import said
from ...question.subjects import SOLVING
from ...question.values import span_form
from ...view.explaining.explanation import TIME_LIMIT_S
from ..base.answer import Answer, command
from ..options.problem import OutOption, asking

if TYPE_CHECKING:
    from ...api.asked import Asked
    from ...files.plans import NamedPlan

TotalTimeOption = Annotated[
    float,
    said("Most time for all questions together.", span_form("5s"), heading=SOLVING),
]


@command("gapless explain plan.json")
@asking
def explain(
    asked: Asked,
    plan: NamedPlan,
    *,
    time_limit_s: TotalTimeOption = TIME_LIMIT_S,
    out: OutOption = None,
) -> Answer:
    """Explain a plan: why these cuts and units, which demands bind, and what the next best plan costs."""
    from ...answers.explaining import explanation_blocks
    from ...view.explaining.explain import explain as explained
    from ..base.progress import StepLine

    problem, judged = asked.problem, plan.plan
    with StepLine() as line:
        found = explained(problem, judged, time_limit_s=time_limit_s, report=line.report)
    return Answer.of(
        "explanation",
        found,
        lambda: explanation_blocks(problem, judged, found),
        files={"out": None},
        problem=documents.problem_data(problem),
        plan=documents.plan_data(problem, judged),
    )

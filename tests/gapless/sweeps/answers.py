"""Answers of a comparison over many problems, made up."""

from __future__ import annotations

from gapless.solvers.result import Milestone
from gapless.solvers.sources import Source
from gapless.sweeps.answers import TaskAnswer
from gapless.sweeps.contest import InstanceAnswer, InstanceComparison
from gapless.sweeps.spec import Base
from gapless.sweeps.table import row_of
from gapless.sweeps.tasks import Solving, SweepTask

Step = tuple[float, int | None, int | None]
"""Seconds, value, bound."""


def answer(
    instance: str,
    backend: str,
    *steps: Step,
    status: str = "feasible",
    source: Source = Source.OWN,
    end_s: float | None = None,
    error: str = "",
) -> InstanceAnswer:
    """Return an answer with a course; the last step is the answer."""
    course = tuple(
        Milestone(
            at_s=at_s,
            value=value,
            bound=bound,
            plan_source=Source.OWN if value is not None else None,
            bound_source=source if bound is not None else None,
        )
        for at_s, value, bound in steps
    )
    last = course[-1] if course else Milestone(at_s=0.0)
    task = SweepTask(
        base=Base(model=instance),
        objective="",
        limits="",
        rules="",
        solving=Solving(backend=backend),
    )
    found = TaskAnswer(
        backend=backend,
        status="" if error else status,
        term="period",
        objective="period",
        platform="board",
        value=last.value,
        bound=last.bound,
        bound_source=last.bound_source,
        runtime_s=last.at_s if end_s is None else end_s,
        fingerprint=instance,
        plan="0-0 cpu" if last.value is not None else "",
        course=course,
        error=error,
    )
    return InstanceAnswer(instance=instance, backend=backend, row=row_of(1, task, found, {}))


EXACT, HEURISTIC = "exact", "mine <b>"

FOUND = InstanceComparison(
    title="made up",
    instances=("a", "b", "c"),
    backends=(EXACT, HEURISTIC),
    answers=(
        answer("a", EXACT, (1.0, 200, 100), (4.0, 100, 100), status="optimal"),
        answer("a", HEURISTIC, (0.1, 110, None), (0.5, 101, None)),
        answer("b", EXACT, (2.0, 60, 40), source=Source.START, end_s=10.0),
        answer("b", HEURISTIC, (0.1, 50, None)),
        answer("c", EXACT, status="infeasible", end_s=0.2),
        answer("c", HEURISTIC, error="it divided <by> zero"),
    ),
    time_limit_s=10.0,
    total=6,
)
"""An exact backend with a proof, with a borrowed bound, with a proof that there is no plan; a heuristic."""

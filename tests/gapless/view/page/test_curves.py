"""Plans and bounds over time on the page."""

from __future__ import annotations

from gapless.formulations.flow_shop.quantities import TERMS
from gapless.solvers.result import Milestone
from gapless.solvers.sources import Source
from gapless.view.page.curves import curves
from gapless.view.page.subject import SolverAnswer


def answer(name: str, *course: Milestone) -> SolverAnswer:
    return SolverAnswer(
        backend=name,
        version="1",
        guarantee="exact",
        status="feasible",
        stop="time_limit",
        objective=course[-1].value,
        bound=course[-1].bound,
        gap=None,
        runtime_s=10.0,
        startup_s=0.0,
        plan="",
        course=course,
    )


def test_a_weak_bound_does_not_press_the_plans_together() -> None:
    weak = Milestone(at_s=1.0, bound=10, bound_source=Source.OWN)
    strong = Milestone(at_s=5.0, value=1000, bound=900, bound_source=Source.OWN)
    other = Milestone(at_s=1.0, value=1100)
    found = curves([answer("one", weak, strong), answer("other", other)], TERMS["makespan"])
    assert found is not None
    heights = {(mark.line, dict(mark.facts).get("bound")): mark.y for mark in found.marks}
    assert heights[0, "0.010 ms"] == max(heights.values())
    assert heights[0, "0.900 ms"] - heights[0, None] > 10

"""Plans and bounds over time, and performance profiles, as data."""

from __future__ import annotations

from gapless.answers.charts import Plane, Stroke
from gapless.answers.comparing import Course, courses_chart
from gapless.answers.standings import profile_chart
from gapless.formulations.flow_shop.quantities import TERMS
from gapless.solvers.result import Milestone
from gapless.solvers.sources import Source
from gapless.sweeps.standings import Profile, profiles

from ..sweeps.answers import EXACT, FOUND, HEURISTIC


def chart(*courses: Course, end_s: float = 10.0) -> Plane:
    found = courses_chart(courses, TERMS["makespan"], end_s)
    assert found is not None
    return found


def test_a_weak_bound_does_not_press_the_plans_together() -> None:
    weak = Milestone(at_s=1.0, bound=10, bound_source=Source.OWN)
    strong = Milestone(at_s=5.0, value=1000, bound=900, bound_source=Source.OWN)
    found = chart(
        ("one", (weak, strong)),
        ("other", (Milestone(at_s=1.0, value=1100),)),
    )
    at = {dict(mark.facts).get("bound"): found.upwards.at(mark.y) for _, mark in found.marks}
    assert at["0.010 ms"] == 0
    assert at[None] - at["0.900 ms"] > 10


def test_each_value_holds_until_the_next_one_and_who_found_it_is_told_by_strokes() -> None:
    steps = (
        Milestone(at_s=1.0, value=2000, plan_source=Source.START, bound=500, bound_source=Source.START),
        Milestone(at_s=2.0, value=1000, plan_source=Source.OWN, bound=900, bound_source=Source.OWN),
    )
    (series,) = chart(("mine", steps)).series
    assert {line.stroke: line.points for line in series.lines} == {
        Stroke.SOLID: ((1.0, None), (2.0, 1.0), (10.0, 1.0)),
        Stroke.MIXED: ((1.0, 2.0), (2.0, None), (10.0, None)),
        Stroke.DASHED: ((1.0, None), (2.0, 0.9), (10.0, 0.9)),
        Stroke.DOTTED: ((1.0, 0.5), (2.0, None), (10.0, None)),
    }
    assert [dict(mark.facts)["source"] for mark in series.marks] == ["given", "given", "its own", "its own"]
    assert [mark.hollow for mark in series.marks] == [False, True, False, True]


def test_nobody_with_a_plan_is_no_chart() -> None:
    bound = Milestone(at_s=1.0, bound=10, bound_source=Source.OWN)
    assert courses_chart([("one", (bound,))], TERMS["makespan"], 10.0) is None


def test_profiles_rise_from_none_to_what_is_solved() -> None:
    found = profile_chart(profiles(FOUND)[0])
    assert found is not None
    exact, mine = found.series
    assert (exact.name, mine.name) == (EXACT, HEURISTIC)
    assert [round(y or 0, 1) for _, y in exact.lines[0].points] == [0, 33.3, 66.7, 66.7]
    assert exact.lines[0].points[0][0] == 1.0
    assert [(mark.x, round(mark.y, 1)) for mark in mine.marks] == [(1.0, 66.7)]
    assert profile_chart(Profile(title="", lines={"a": ()}, most=1.0)) is None

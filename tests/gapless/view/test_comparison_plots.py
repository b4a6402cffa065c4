"""Pictures of comparisons: plans and bounds over time, performance profiles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import pytest

import gapless
from gapless.formulations.errors import InvalidInputError
from gapless.plots import plot_courses, plot_profile
from gapless.solvers.result import Milestone
from gapless.solvers.sources import Source

from ..sweeps.answers import EXACT, FOUND, HEURISTIC

mpl.use("Agg")

SMALL = gapless.table_problem([[9, 2], [1, 8]], ["cpu", "gpu"], network="net", objective="period")


def numbers(values: Any) -> list[float]:
    given: Iterable[float] = values
    return list(map(float, given))


def test_plans_and_bounds_are_drawn_over_time() -> None:
    found = gapless.compare(SMALL, backends=["native", "exhaustive"])
    course = (
        Milestone(at_s=0.5, value=9000, plan_source=Source.OWN),
        Milestone(at_s=1.0, value=9000, bound=1000, plan_source=Source.OWN, bound_source=Source.START),
        Milestone(at_s=2.0, value=2000, bound=2000, plan_source=Source.OWN, bound_source=Source.OWN),
    )
    drawn = replace(
        found,
        results=(replace(found.results[0], course=course), replace(found.results[1], course=())),
        time_limit_s=4.0,
    )
    axes = plot_courses(drawn)
    plans, own, lent = (numbers(line.get_ydata()) for line in axes.lines)
    assert plans == [9, 9, 2, 2]
    assert own[2:] == [2, 2]
    assert lent[1] == 1
    assert [line.get_gid() for line in axes.lines] == [None, "bound own", "bound start"]
    assert numbers(axes.lines[0].get_xdata()) == [0.5, 1, 2, 4]
    assert axes.get_xscale() == "log"
    with pytest.raises(InvalidInputError, match="nothing to draw over time"):
        plot_courses(replace(found, results=()))


def test_performance_profiles_are_stairs() -> None:
    axes = plot_profile(FOUND)
    exact, mine = axes.lines
    assert (exact.get_label(), mine.get_label()) == (EXACT, HEURISTIC)
    assert numbers(exact.get_xdata())[:3] == [1, 1, 8]
    assert numbers(exact.get_ydata()) == pytest.approx([0, 100 / 3, 200 / 3, 200 / 3])
    assert axes.get_title() == "Time to a plan within 1 % of the best"
    assert plot_profile(FOUND, "proof").get_title() == "Time to a proof"
    with pytest.raises(InvalidInputError, match="choose from time, value, proof"):
        plot_profile(FOUND, "gap")
    with pytest.raises(InvalidInputError, match="no backend has solved anything"):
        plot_profile(replace(FOUND, answers=()))

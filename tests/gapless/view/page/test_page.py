"""The page: one file, well formed, escaped, small, and complete for every kind of subject."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest

from gapless.answers.charts import Axis, Kind, Line, Plane
from gapless.formulations.errors import InvalidInputError
from gapless.view.page.page import _path, report_page
from tests.gapless.view.page import samples
from tests.gapless.view.page.markup import Markup

MOST_BYTES = 2_000_000


@cache
def page(name: str) -> str:
    return report_page([samples.SAMPLES[name]()], made_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC))


@cache
def several() -> str:
    subjects = [samples.measured(), samples.raced(), samples.side_by_side(), samples.workload()]
    return report_page(subjects, title="Four ways", command="gapless report a b")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*samples.SAMPLES, "several"])
def test_pages_are_well_formed_and_load_nothing(name: str) -> None:
    text = several() if name == "several" else page(name)
    found = Markup(text)
    assert found.errors == []
    assert found.loads == []
    assert found.references <= set(found.ids)
    assert found.headings[0] == 1
    assert found.headings.count(1) == 1
    steps = [after - before for before, after in zip(found.headings, found.headings[1:], strict=False)]
    assert max(steps) <= 1
    assert re.findall(r"url\((?!#)", text) == []
    assert "@import" not in text
    assert "default-src 'none'" in text


@pytest.mark.slow
@pytest.mark.parametrize("name", list(samples.SAMPLES))
def test_the_sections_are_those_of_what_is_known(name: str) -> None:
    subject, found = samples.SAMPLES[name](), Markup(page(name))
    expected = {
        "time": subject.predicted or subject.measured,
        "busy": True,
        "why": subject.explanation,
        "race": subject.tuning,
        "answers": subject.answers,
        "memory": subject.memory or subject.score or subject.measurement,
        "layers": True,
        "receipts": subject.measurement or subject.tuning,
        "origin": True,
    }
    shown = {place.removeprefix("s1-") for place in found.ids if place.removeprefix("s1-") in expected}
    assert shown == {place for place, known in expected.items() if known}


def test_three_hundred_requests_fit() -> None:
    text = page("long")
    assert len(text.encode()) < MOST_BYTES / 2
    assert text.count('<rect class="b ') == 2 * 300 * 8


@pytest.mark.slow
def test_a_workload_of_three_hundred_requests_fits() -> None:
    import gapless
    from gapless.formulations.workload import LoadPolicy
    from gapless.view.page.subjects import subject

    problem = gapless.load_workload(
        "squeezenetx150,mobilenetv2x150",
        platform="kirin990",
        load_policy=LoadPolicy.RESIDENT,
        passage="ordered",
    )
    plan = gapless.plan(problem, time_limit_s=1).plan
    assert plan is not None
    text = report_page([subject(problem, plan, explained=None)])
    assert len(text.encode()) < MOST_BYTES / 2
    assert Markup(text).errors == []


@pytest.mark.parametrize("name", ["hostile", "hostile requests"])
def test_names_of_strangers_stay_text(name: str) -> None:
    text = page(name)
    found = Markup(text)
    assert samples.HOSTILE in found.text
    assert found.counts["script"] == 2
    assert "alert(1)" not in "".join(body for kind, body in found.scripts if not kind)
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text
    assert "\\u202e" not in text
    assert "\x07" not in text
    data = [json.loads(body) for kind, body in found.scripts if kind == "application/json"]
    assert data[0]["chunks"][0][1] == samples.HOSTILE
    assert "<b>" not in "".join(body for _, body in found.scripts)


def test_names_of_requests_stay_text_in_legend_chart_and_table() -> None:
    found = Markup(page("hostile requests"))
    assert found.errors == []
    one, two = (f"{samples.HOSTILE} {name}" for name in ("one", "two"))
    above, *_, table = found.text.split("The way of each request")
    assert above.count(f"{one} {two}") == 2, "keys, and blocks"
    for name, other in ((one, two), (two, one)):
        assert re.search(rf"predicted{re.escape(name)}1.*?{re.escape(other)} 1\.80 ms", table)
    data = [json.loads(body) for kind, body in found.scripts if kind == "application/json"]
    assert data[0]["names"] == [one, two]


@pytest.mark.slow
def test_the_page_says_how_it_was_made() -> None:
    words = Markup(several()).text
    assert "Made by gapless" in words
    assert "with gapless report a b." in words
    assert page("small") == report_page([samples.small()], made_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC))
    assert Markup(page("small")).text.startswith("alexnet-sparse on pixel7a – gapless")


@pytest.mark.slow
def test_where_it_comes_from_is_told_whole() -> None:
    subject = samples.small()
    platform = subject.problem.platform
    long = " ".join(f"clock {number} of the data sheet." for number in range(40))
    problem = replace(subject.problem, platform=replace(platform, source=long))
    assert long in Markup(report_page([replace(subject, problem=problem)])).text


@pytest.mark.slow
def test_heat_maps_of_several_networks_have_one_legend() -> None:
    text = page("workload")
    assert text.count('<div class="heat"') > 1
    assert text.count("short to long") == 1


def test_several_subjects_are_compared_first() -> None:
    found = Markup(several())
    assert found.errors == [], "no two places are called the same"
    assert {"s1", "s2", "s3", "s4", "s1-busy", "s4-busy"} <= found.references
    assert found.text.index("What is compared") < found.text.index("Who runs when")
    assert "Compared" not in Markup(page("small")).text


@pytest.mark.slow
def test_figures_of_the_same_page_have_their_own_data() -> None:
    found = Markup(several())
    assert {f"s{number}-time-1-data" for number in range(1, 5)} <= set(found.ids)
    marks = [name.split("-")[1] for name in found.ids if name.endswith("-marks")]
    assert sorted(marks) == ["answers", "answers", "answers", "race"]
    assert sum(kind == "application/json" for kind, _ in found.scripts) == 4 + len(marks)


def test_an_invalid_plan_is_marked() -> None:
    from gapless.formulations.scores import Violation

    subject = samples.small()
    assert subject.score is not None
    broken = replace(subject.score, violations=(Violation(rule="max_units", message="4 units, 3 allowed"),))
    words = Markup(report_page([replace(subject, score=broken)])).text
    assert "This plan is not valid for the problem." in words
    assert "max_units: 4 units, 3 allowed" in words


def test_a_report_needs_a_subject() -> None:
    with pytest.raises(InvalidInputError, match="at least one plan"):
        report_page([])


def test_lines_are_drawn_as_paths_that_end_where_nothing_is_known() -> None:
    axis = Axis(name="", low=0, high=10)
    points = ((0.0, 1.0), (2.0, 5.0), (4.0, None), (6.0, 5.0), (8.0, 5.0))
    stairs, joined = Line(points=points, stairs=True), Line(points=points)
    filled = Line(points=points[:2], stairs=True, filled=True)
    chart = Plane(kind=Kind.LINES, title="", across=axis, upwards=axis, series=())
    assert _path(chart, stairs) == "M0 900H200V500H400M600 500H800"
    assert _path(chart, joined) == "M0 900L200 500M600 500L800 500"
    assert _path(chart, filled) == "M0 1000V900H200V500V1000Z"

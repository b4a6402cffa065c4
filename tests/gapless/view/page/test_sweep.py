"""The page of a sweep: one file, well formed, escaped, with charts that say what the table says."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from gapless.answers.sweeps import proofs_chart, sizes
from gapless.sweeps.run import SweepResult
from gapless.sweeps.spec import Sweep
from gapless.view.page.results import sweep_page
from tests.gapless.sweeps.rows import row
from tests.gapless.view.page.markup import Markup, texts

ROWS = (
    row(task=1, platform="board", price=100.0, value=1000),
    row(task=2, platform="board", price=100.0, available=2, devices="2 units at most", value=2000),
    row(task=3, platform="other", price=50.0, value=4000, backend="cpsat", runtime_s=9.0, layers=300),
    row(task=4, platform="other", status="feasible", bound=500, gap=0.5, value=1000, backend="cpsat"),
    row(task=5, platform="other", status="infeasible", value=None, per_second=None, plan="", estimated=True),
    row(task=6, platform="", status="failed", value=None, error="no luck", backend="", attempts=3, term=""),
)


def found(*rows: Any, **changes: Any) -> SweepResult:
    sweep = Sweep(title="Which board?", problems=("x",), currency="EUR")
    return SweepResult(**{"sweep": sweep, "rows": rows or ROWS, "total": 7, **changes})


def test_the_page_is_well_formed_and_loads_nothing() -> None:
    text = sweep_page(found(), command="gapless sweep x.json")
    page = Markup(text)
    assert (page.errors, page.loads) == ([], [])
    assert page.references <= set(page.ids)
    assert page.headings.count(1) == 1
    assert max(after - before for before, after in zip(page.headings, page.headings[1:], strict=False)) <= 1
    assert re.findall(r"url\((?!#)", text) == []
    assert "default-src 'none'" in text


def test_the_page_says_what_was_found() -> None:
    text = Markup(sweep_page(found(interrupted=True), command="gapless sweep x.json")).text.replace(
        "\xa0", " "
    )
    for words in (
        "Which board?",
        "6 of 7 plans, 4 of them proved; 1 failed",
        "The sweep was interrupted",
        "Costs on other are estimates",
        "Tried again because a worker was lost: 1 plan.",
        "1,000.0 /s",
        "100 EUR",
        "+100.0 %",
        "up to 2,048",
        "no luck",
        "gapless sweep x.json",
    ):
        assert words in text, words


def test_a_page_of_nothing_is_a_page() -> None:
    page = Markup(sweep_page(SweepResult(sweep=Sweep(problems=("x",)), rows=(), total=3, interrupted=True)))
    assert page.errors == []
    assert "0 of 3 plans" in page.text


def test_bars_are_as_long_as_their_share() -> None:
    text = sweep_page(found(row(platform="a", value=1000), row(platform="b", value=4000)))
    lengths = re.findall(
        r'<rect x="0.0%" width="([\d.]+)%" height="12" y="3" rx="2" class="measured"/>', text
    )
    assert lengths == ["100.0", "25.0"], "percent"


def test_a_chart_and_its_table_have_one_title() -> None:
    text = sweep_page(found(row(platform="a", value=1000), row(platform="b", value=4000)))
    assert text.count('<h3 class="next"><bdi>net: inferences a second</bdi></h3>') == 1
    assert 'class="caption" aria-hidden="true">net: inferences a second' not in text
    assert '<caption class="quiet">net: inferences a second</caption>' in text


def test_proofs_that_contradict_each_other_are_shown() -> None:
    text = sweep_page(found(row(value=10), row(value=20, bound=20, backend="bad")))
    assert "Proofs contradict each other" in text
    assert "bad proves that period is at least 20" in text


HOSTILE = "<script>alert(1)</script>\"'&\u202e"


@pytest.mark.parametrize(
    "field", ["model", "platform", "devices", "limits", "objective", "backend", "plan", "error"]
)
def test_names_of_strangers_do_nothing(field: str) -> None:
    changes = {field: HOSTILE, **({"status": "failed", "value": None} if field == "error" else {})}
    other = {"platform": "b"} if field != "platform" else {"platform": f"{HOSTILE}2"}
    text = sweep_page(
        found(row(**changes), row(**{**changes, **other}), row(**changes, available=2)), title=HOSTILE
    )
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert Markup(text).errors == []


def test_the_marks_and_what_is_shown_of_them_belong_together() -> None:
    chart = proofs_chart(ROWS)
    assert chart is not None
    assert [series.name for series in chart.series] == ["native", "cpsat"]
    assert len(chart.marks) == 4
    by_task = {dict(mark.facts)["task"]: mark for _, mark in chart.marks}
    assert by_task["3"].x > by_task["1"].x, "larger"
    assert by_task["3"].y > by_task["1"].y, "longer"
    text = sweep_page(found())
    marks = json.loads(re.search(r'id="backends-3-2-marks">(.*?)</script>', text)[1])  # type: ignore[index]
    assert [dict(each)["task"] for each in marks] == [dict(mark.facts)["task"] for _, mark in chart.marks]
    drawn = [float(x) for x in re.findall(r'<use class="m [^>]* x="([\d.]+)%"', text)]
    assert drawn == [chart.across.at(mark.x) for _, mark in chart.marks]
    assert proofs_chart(ROWS[5:]) is None


def test_of_many_proofs_some_are_drawn() -> None:
    chart = proofs_chart([row(task=number, runtime_s=number / 100) for number in range(1, 2001)])
    assert chart is not None
    assert chart.words == f"{len(chart.marks)} proofs; {2000 - len(chart.marks):,} more are not drawn."
    assert len(chart.marks) <= 800


def test_sizes_are_told_by_backend() -> None:
    assert texts(sizes(ROWS)) == [
        ["cpsat", "up to 32", "1", "0", "-", "50.00 %"],
        ["cpsat", "up to 2,048", "1", "1", "9.00 s", "-"],
        ["native", "up to 32", "3", "3", "500.0 ms", "-"],
    ]

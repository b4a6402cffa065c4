"""The page of a comparison over many problems."""

from __future__ import annotations

from dataclasses import replace

from gapless.sweeps.standings import profiles
from gapless.view.page.contest import _chart, _ratio_ticks, contest_page
from gapless.view.page.scale import Axis

from ...sweeps.answers import EXACT, FOUND, HEURISTIC


def test_the_page_has_standings_profiles_failures_and_answers() -> None:
    page = contest_page(FOUND, command="gapless compare")
    for place in ("standings", "profiles", "failures", "answers"):
        assert f'id="{place}"' in page
    assert "mine &lt;b&gt;" in page
    assert "mine <b>" not in page
    assert "it divided &lt;by&gt; zero" in page
    assert page.count('<figure class="scatter curves"') == 3
    assert "(given)" in page, "a bound that was handed over is told from one that was proved"
    assert "Most proofs: exact, on 2 problems." in page


def test_what_was_not_done_is_said() -> None:
    page = contest_page(replace(FOUND, answers=FOUND.answers[:1], interrupted=True))
    assert "interrupted" in page
    assert "1 of 6 answers" in page
    empty = contest_page(replace(FOUND, answers=()))
    assert 'id="profiles"' not in empty


def test_stairs_rise_from_none_to_what_is_solved() -> None:
    time = profiles(FOUND)[0]
    chart = _chart("p1", time)
    exact, mine = chart.lines
    assert (exact.name, mine.name) == (EXACT, HEURISTIC)
    assert exact.plans.startswith("M0 1000H0.0V666.7H")
    assert exact.plans.endswith("V333.3H1000")
    assert mine.plans == "M0 1000H0.0V333.3H1000"
    assert [(mark.x, mark.y) for mark in chart.marks if mark.line == 1] == [(0.0, 33.333)]


def test_ratios_close_to_one_get_ticks_too() -> None:
    ticks = _ratio_ticks(Axis(low=1.0, high=1.05, logarithmic=True))
    assert [tick.text for tick in ticks] == ["1", "1.01", "1.02", "1.03", "1.04", "1.05"]
    assert [tick.text for tick in _ratio_ticks(Axis(low=1.0, high=30.0, logarithmic=True))] == [
        "1",
        "2",
        "5",
        "10",
        "20",
    ]

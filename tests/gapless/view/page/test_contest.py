"""The page of a comparison over many problems."""

from __future__ import annotations

from dataclasses import replace

from gapless.view.page.contest import contest_page

from ...sweeps.answers import FOUND


def test_the_page_has_standings_profiles_failures_and_answers() -> None:
    page = contest_page(FOUND, command="gapless compare")
    for place in ("standings", "profiles", "failures", "answers"):
        assert f'id="{place}"' in page
    assert "mine &lt;b&gt;" in page
    assert "mine <b>" not in page
    assert "it divided &lt;by&gt; zero" in page
    assert page.count('<figure class="plane profile"') == 3
    assert "(given)" in page, "a bound that was handed over is told from one that was proved"
    assert "Most proofs: exact, on 2 problems." in page


def test_what_was_not_done_is_said() -> None:
    page = contest_page(replace(FOUND, answers=FOUND.answers[:1], interrupted=True))
    assert "interrupted" in page
    assert "1 of 6 answers" in page
    empty = contest_page(replace(FOUND, answers=()))
    assert 'id="profiles"' not in empty

"""The page of a comparison over many problems."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gapless import load_problem, pareto
from gapless.answers.blocks import Column, Section, Unit, table
from gapless.formulations.errors import InvalidInputError
from gapless.view.page.page import blocks_page
from gapless.view.page.results import contest_page, write_page

from ...sweeps.answers import FOUND


def captions(page: str) -> list[str]:
    """Return the titles of tables that are seen."""
    return re.findall(r'<p class="caption"[^>]*>([^<]*)<', page)


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
    assert captions(page) == ["What came of the problems, by backend", "Tasks without an answer"], (
        "no table repeats the title above it"
    )


def test_a_part_without_a_title_stands_below_that_of_its_section() -> None:
    told = table("Policies", [Column("policy", Unit.NAME, str)], ["lst"])
    page = blocks_page("coordination", "", [Section("Policies", (Section("", (told,)),), place="policies")])
    assert captions(page) == []


def test_what_was_not_done_is_said() -> None:
    page = contest_page(replace(FOUND, answers=FOUND.answers[:1], interrupted=True))
    assert "interrupted" in page
    assert "1 of 6 answers" in page
    empty = contest_page(replace(FOUND, answers=()))
    assert 'id="profiles"' not in empty


def test_each_result_has_its_page(tmp_path: Path) -> None:
    front = pareto(load_problem("pixel7a/octree"), "period,latency")
    written = write_page(FOUND, tmp_path / "contest.html", title="Who is best?")
    assert "Who is best?" in written.read_text()
    with pytest.raises(InvalidInputError, match="problem="):
        write_page(front, tmp_path / "front.html")
    with pytest.raises(InvalidInputError, match="a Problem has no page"):
        write_page(load_problem("pixel7a/octree"), tmp_path / "front.html")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["contest.html"]

"""What Python prompts and notebooks show of a problem, a result and a comparison."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

import gapless
from gapless.formulations.printing import MOST_ROWS, html_table

EVIL = '<img src=x onerror="alert(1)">'
STYLES = {"color: inherit", "text-align: left; padding-right: 1em"}


class Tags(HTMLParser):
    """Collects what a fragment has, and that each tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.attributes: set[tuple[str, str | None]] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.attributes |= set(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    problem = gapless.load_problem("pixel7a/alexnet-sparse")
    workload = gapless.load_workload("yolov4,bert,mobilenetv2x3", platform="kirin990")
    return {
        "problem": problem,
        "workload": workload,
        "result": gapless.plan(problem, top=3),
        "comparison": gapless.compare(problem, backends=["native", "exhaustive"]),
        "tuned": gapless.tuning.tune_simulated(problem, problem),
        "nothing": gapless.plan(replace(problem, limits=gapless.Limits(max_period_us=1))),
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("problem", r"<Problem alexnet-sparse on pixel7a: 9 layers, 4 units, objective period,gapness>"),
        ("workload", r"<Problem yolov4, bert, mobilenetv2 on kirin990: 5 requests, .*objective makespan>"),
        ("result", r"<SolveResult optimal by native in .* s, period 7,648, 3 plans: 0-0 Big \| 1-3 GPU .*>"),
        ("comparison", r"<Comparison .*: 2 answers, best period 7,648 \(optimal, native\)>"),
        ("tuned", r"<Tuned alexnet-sparse on pixel7a: plan \d is the fastest>"),
        ("nothing", r"<SolveResult infeasible by native in .* s>"),
    ],
)
def test_they_are_short(shown: dict[str, Any], name: str, said: str) -> None:
    assert re.fullmatch(said, repr(shown[name]))
    assert len(repr(shown[name])) < 250


def test_notebooks_show_small_tables_in_the_colours_of_the_page(shown: dict[str, Any]) -> None:
    for name, one in shown.items():
        text = one._repr_html_()
        tags = Tags(text)
        assert not tags.open, name
        assert len(text) < 7000
        assert {value for key, value in tags.attributes if key == "style"} <= STYLES
        assert {key for key, _ in tags.attributes} <= {"style"}  # no colours, nothing fetched, no scripts
    words = Tags(shown["problem"]._repr_html_()).words
    assert words[words.index("GPU") + 2] == "19.389 ms"  # behind its kind
    assert {"0-0 Big | 1-3 GPU | 4-4 Little | 5-8 Medium", "7,648"} <= set(
        Tags(shown["result"]._repr_html_()).words
    )
    assert {"exhaustive", "OPTIMAL", "7.648 ms"} <= set(Tags(shown["comparison"]._repr_html_()).words)
    best = shown["tuned"].result.winner
    words = Tags(shown["tuned"]._repr_html_()).words
    assert words[words.index(best.candidate.label) + 3] == f"{best.comparable_us / 1000:.2f} ms"


def test_names_of_strangers_are_text() -> None:
    problem = gapless.table_problem({"conv": [1, None]}, ["a", "b"], network="net")
    strange = replace(problem, platform=replace(problem.platform, name=EVIL))
    assert EVIL in repr(strange)
    assert "img" not in Tags(strange._repr_html_()).open
    assert "<img" not in strange._repr_html_()
    assert "\x1b" not in html_table("\x1b[31m", ["\x1b"], [["\x1b"]])
    assert "-" in Tags(problem._repr_html_()).words  # no unit but one can run it all


def test_long_tables_are_cut_and_say_so() -> None:
    rows = [[str(number)] for number in range(MOST_ROWS + 3)]
    words = Tags(html_table("many", ["number"], rows)).words
    assert "3 more" in words[-1]
    assert str(MOST_ROWS) not in words

"""What pages say of options: a value that has a unit is written with it, and called what help calls it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless.boards.board import OPTIONS
from gapless.formulations.errors import InvalidInputError
from gapless.question.fields import Field, fields_of
from gapless.question.question import Question
from gapless.question.service import Hosting, Play, Service
from gapless.question.subjects import Measuring, Opening, Race, Running, Search

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
SUBJECTS = (Question, Opening, Search, Race, Measuring, Running, Hosting, Service, Play)
MANY = [*fields_of(*SUBJECTS), *(field for fields in OPTIONS.values() for field in fields)]
WITH_UNIT = {field.option: field for field in MANY if field.form.example and field.form.metavar != "SIZES"}
_OF_BENCHMARKS = {
    "docs/formulations/partition.md": {"--seconds"},
    "docs/formulations/schedules.md": {"--seconds"},
}
"""Where options of a benchmark stand without its name, which are numbers."""
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)|<!-- tested with: (.*?) -->|^ *\$ (.*)$", re.MULTILINE)
SAID = re.compile(r"(--[a-z-]+)[ =]([^\s`,;]+)")


def _said(text: str) -> Iterator[tuple[Field, str]]:
    """Yield options whose values have units, with what stands behind them."""
    for found in SPAN.finditer(text):
        code = next(part for part in found.groups() if part)
        before = text[max(0, found.start() - 1000) : found.start()].rpartition("\n\n")[2]
        if "benchmarks" not in code and "benchmarks." not in before:
            for option, value in SAID.findall(code):
                if option in WITH_UNIT and not value.startswith("-"):
                    yield WITH_UNIT[option], value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_values_have_their_unit(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    for field, value in _said(page.read_text()):
        if field.option not in _OF_BENCHMARKS.get(name, ()) and value not in (field.form.metavar or "").split(
            "|"
        ):
            try:
                field.read(value, in_file=False)
            except InvalidInputError as error:
                pytest.fail(f"{name}: {field.option} {value}: {error}")


def test_what_is_looked_for_is_found() -> None:
    found = [
        (field.option, value)
        for field, value in _said("`--session-memory MEGABYTES` and\n\n$ gapless tune --budget 1\n")
    ]
    assert found == [("--session-memory", "MEGABYTES"), ("--budget", "1")]
    assert sum(len(list(_said(page.read_text()))) for page in PAGES) > 50

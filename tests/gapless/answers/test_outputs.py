"""Every column of an answer is in every output that shows it, and a value reads the same in all of them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from io import StringIO

import pytest
from rich.console import Console, Group
from rich.text import Text

import gapless
from gapless.answers import comparing, coordination, explaining, standings, sweeps, tuning
from gapless.answers import front as fronts
from gapless.answers.blocks import (
    Block,
    Cell,
    Column,
    Row,
    Section,
    Sentence,
    Shown,
    Table,
    Tone,
    Unit,
    grid,
    kept,
    said,
    table,
    with_unused,
)
from gapless.answers.measured import receipts_table
from gapless.answers.words import counted
from gapless.api.coordination import Coordination, coordinate
from gapless.api.tuned import Tuned
from gapless.executor.engine import PlacementReceipt
from gapless.executor.tuning.result import Failure
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.printing import printable
from gapless.view.explaining.explain import explain
from gapless.view.explaining.explanation import Explanation
from gapless.view.page.page import blocks_page
from gapless.view.page.texts import clipped, visible
from gapless.view.presenter import presenter_of
from gapless.view.terminal.blocks import blocks_view, table_view
from gapless.view.text import markdown_text, table_csv

from ..sweeps.answers import FOUND
from ..view.page.markup import Markup, texts
from ..view.page.test_sweep import ROWS

RECEIPT = PlacementReceipt(
    unit="big",
    piece="net[0:3]",
    engine="mnn 3.2",
    asked_backend="cpu",
    granted_backend="cpu",
    asked_threads=2,
    granted_threads=2,
    asked_cores=(0, 1),
    granted_cores=(0, 1),
)
FAILURE = Failure(error="UnitLostError", message="it is\x1b[31m too | hot")


@cache
def tuned() -> Tuned:
    """Return a race with everything in it: rungs, ties, plans that left, a failure, trade-offs."""
    problem = gapless.load_problem("pixel7a/octree")
    found = gapless.tuning.tune_simulated(problem, problem, pareto="period,units", noise_permille=20)
    failed = replace(found.result.rows[-1], place=None, failure=FAILURE)
    return replace(found, result=replace(found.result, rows=(*found.result.rows[:-1], failed)))


def front() -> Table:
    problem, points = tuned().problem, tuned().front
    assert points is not None
    return fronts.front_table(problem, points, presenter_of(problem))


@cache
def answers() -> tuple[comparing.SolverAnswer, ...]:
    problem = gapless.load_problem("pixel7a/octree")
    found = gapless.compare(problem, backends=["native", "exhaustive"], top=2)
    lost = comparing.no_answer("z3", "z3 | is\x1b[31m not there", problem)
    return (*comparing.answers_of(found), lost)


def backends() -> Table:
    problem = gapless.load_problem("pixel7a/octree")
    return comparing.backends(answers(), [problem.formulation.terms[t] for t in problem.objective.terms])


@cache
def served() -> Coordination:
    scenario = replace(gapless.coordination.shipped_scenario("four-apps"), duration_us=1_000_000)
    setting = gapless.coordination.shipped_setting("pixel4", scenario.networks)
    return coordinate(scenario, setting, ["lst", "edf"])


@cache
def explained() -> tuple[gapless.Problem, Explanation]:
    problem = replace(gapless.load_problem("pixel7a/octree"), limits=gapless.Limits(max_units=3))
    plan = gapless.plan(problem).plan
    assert plan is not None
    return problem, explain(problem, plan)


TABLES: dict[str, Callable[[], Table]] = {
    "candidates": lambda: tuning.candidates(tuned().result),
    "evidence": lambda: tuning.evidence(tuned().result),
    "quality": lambda: tuning.quality(tuned().result),
    "front": front,
    "receipts": lambda: receipts_table([RECEIPT, replace(RECEIPT, granted_threads=1, quota_permille=400)]),
    "standings": lambda: standings.standings_table(FOUND),
    "instances": lambda: standings.answers(FOUND),
    "sweep": lambda: sweeps.plans(ROWS, "EUR"),
    "provers": lambda: sweeps.backends(ROWS),
    "sizes": lambda: sweeps.sizes(ROWS),
    "cuts": lambda: explaining.cuts(*explained()),
    "units": lambda: explaining.units(*explained()),
    "sets": lambda: explaining.sets(*explained()),
    "demands": lambda: explaining.demands(*explained()),
    "flight": lambda: explaining.flight(explained()[1]),
    "policies": lambda: coordination.policies(served().records, served().setting.platform),
    "applications": lambda: coordination.applications(served().records),
    "deadlines": lambda: coordination.deadlines([served()]),
    "backends": backends,
    "paces": lambda: comparing.paces(answers()),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_terminal_shows_every_column(name: str) -> None:
    given = TABLES[name]().of(Shown.DETAILS)
    out = StringIO()
    Console(file=out, width=2000, markup=False).print(Group(*table_view(given)))
    lines = iter(out.getvalue().splitlines())
    follow(next(lines), [column.title for column in given.columns])
    for row in given.rows:
        texts = (column.text(cell, note=True) for column, cell in zip(given.columns, row.cells, strict=True))
        follow(next(lines), list(texts))


@pytest.mark.parametrize("name", TABLES)
def test_the_page_shows_every_column(name: str) -> None:
    given = TABLES[name]().of(Shown.PAGE)
    given = given if given.rows else replace(given, rows=(Row((Cell("none"),) * len(given.columns)),))
    page = Markup(blocks_page("", "", [Section("all", (given,), place="all")])).text
    follow(page, [column.title for column in given.columns])
    for row in texts(given):
        follow(page, [clipped(" ".join(visible(text).split())) for text in row])


@pytest.mark.parametrize("name", TABLES)
def test_markdown_shows_every_column(name: str) -> None:
    given = TABLES[name]().of(Shown.FILES)
    first, rule, *lines = markdown_text(TABLES[name]()).splitlines()
    assert [cell.strip() for cell in first.strip("| ").split(" | ")] == [c.name for c in given.columns]
    assert set(rule) == set("|- ")
    assert len(lines) == len(given.rows)
    for line, row in zip(lines, texts(given), strict=True):
        follow(line.replace("\\|", "|"), [printable(text) for text in row if text != "-"])


@pytest.mark.parametrize("name", TABLES)
def test_numbers_in_csv_are_the_ones_that_people_read(name: str) -> None:
    given = TABLES[name]().of(Shown.FILES)
    header, *lines = csv.reader(StringIO(table_csv(TABLES[name]())))
    units = {" ms": 1000.0, " %": 0.01, " mJ": 1e6, "": 1.0, " s": 1.0, " bytes": 1.0}
    found = {column.name: column for column in given.columns}
    for line, row in zip(lines, given.rows, strict=True):
        values = dict(zip(header, line, strict=True))
        for name_, column in found.items():
            (key,) = (key for key in values if key.removeprefix(name_) in units)
            cell = row.cells[given.columns.index(column)]
            if cell.value is None:
                assert values[key] == ""
            elif isinstance(cell.value, str):
                assert values[key].lstrip("'").startswith(str(cell.value)[:5])
            else:
                assert not isinstance(cell.value, tuple)
                scale = units[key.removeprefix(name_)]
                near = pytest.approx(cell.value, rel=1e-2, abs=max(1e-2, scale / 1000))
                assert float(values[key]) * scale == near


def test_a_new_column_is_one_line() -> None:
    columns: list[Column[int]] = [
        Column("name", Unit.NAME, lambda number: f"plan {number}"),
        Column("memory", Unit.BYTES, lambda number: number * 2**20, key="most memory"),
    ]
    given = table("plans", columns, [1, 2])
    out = StringIO()
    Console(file=out, width=80).print(*table_view(given))
    assert "2.0 MiB" in out.getvalue()
    assert "2.0 MiB</td>" in blocks_page("", "", [Section("plans", (given,), place="plans")])
    assert "| 2.0 MiB" in markdown_text(given)
    assert table_csv(given).splitlines() == ["name,most memory bytes", "plan 1,1048576", "plan 2,2097152"]


def test_one_blank_line_stands_between_blocks_and_empty_tables_are_left_out() -> None:
    columns: list[Column[str]] = [Column("unit", Unit.NAME, str), Column("runs", Unit.NAME, str)]
    given, empty = table("", columns, ["a"]), table("", columns, [])
    out = StringIO()
    two, blank = Sentence("two", Tone.SOFT), Sentence("")
    blocks: list[Block] = [Sentence("one"), given, empty, blank, two, Sentence("three"), blank, given]
    Console(file=out, width=20).print(blocks_view(blocks))
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert lines == ["one", "", "unit  runs", "a     a", "", "two", "three", "", "unit  runs", "a     a"]


def test_units_that_do_nothing_stand_in_the_last_row() -> None:
    columns: list[Column[str]] = [
        Column("", Unit.COUNT, str),
        Column("unit", Unit.NAME, str),
        Column("runs", Unit.NAME, str),
    ]
    rows = texts(with_unused(table("", columns, ["1"]), ["b", "c"], at=1))
    assert rows == [["1", "1", "1"], ["", "b, c", "not used"]]


def test_what_to_think_of_a_cell_is_seen_on_the_page() -> None:
    columns: list[Column[str]] = [Column("granted", Unit.TEXT, lambda word: Cell(word, Tone.BAD))]
    page = blocks_page("", "", [Section("all", (table("", columns, ["no"]),), place="all")])
    assert '<span class="tag bad">no</span>' in page


def test_a_column_without_values_is_left_out_and_intervals_have_both_ends() -> None:
    columns: list[Column[tuple[float, float] | None]] = [
        Column("within", Unit.MEASURED, lambda ends: ends, optional=True),
        Column("name", Unit.NAME, lambda ends: "=1+1"),
    ]
    assert [column.title for column in table("", columns, [None]).of(Shown.PAGE).columns] == ["name"]
    given = table("", columns, [(1000.0, 2000.0), None])
    assert table_csv(given).splitlines() == ["within from ms,within to ms,name", "1.0,2.0,'=1+1", ",,'=1+1"]
    assert given.columns[0].text(given.rows[0].cells[0]) == "1.00 to 2.00 ms"
    assert given.columns[0].text(given.rows[1].cells[0]) == "-"


def test_strangers_cannot_steer_files() -> None:
    columns: list[Column[str]] = [Column("name", Unit.NAME, lambda name: Cell(name, Tone.BAD, note="a|b"))]
    for text in (markdown_text(table("", columns, ["\x1b[31m"])), table_csv(table("", columns, ["@\x1b"]))):
        assert "\x1b" not in text
    assert "a\\|b" in markdown_text(table("", columns, ["x"]))
    assert table_csv(table("", columns, ["@x"])).splitlines()[1].startswith("'@x")


@pytest.mark.parametrize("place", [Shown.BRIEF, Shown.PAGE])
def test_what_is_no_block_is_refused_not_left_out(place: Shown) -> None:
    with pytest.raises(InvalidInputError, match="'Text' is no block"):
        kept([Sentence("a"), Text("of an older presenter")], place)  # type: ignore[list-item]


def test_values_as_text() -> None:
    assert said(1_070_867, Unit.MICROSECONDS) == "1,070.867 ms"
    assert said(1_070_867, Unit.MEASURED) == "1,070.87 ms"
    assert said(-0.05, Unit.CHANGE) == "-5.0 %"
    assert said(0.12345, Unit.SHARE, 2) == "12.35 %"
    assert said(None, Unit.BYTES) == "-"
    assert said(1.5, Unit.FACTOR, 2) == "1.50"


def follow(line: str, words: list[str]) -> None:
    """Check that texts stand in a line, one after the other."""
    at = 0
    for word in words:
        found = line.find(word, at)
        assert found >= 0, f"{word!r} is not behind {line[:at]!r} in {line!r}"
        at = found + len(word)


def test_distances_are_from_the_best_answer_here() -> None:
    problem = gapless.load_problem("pixel7a/octree")
    best, worse, _ = answers()
    assert best.objective is not None
    twice = replace(worse, objective=2 * best.objective, bound=best.objective, gap=0.5)
    given = comparing.backends([best, twice], [problem.formulation.terms["period"]])
    shown = dict(zip([c.title for c in given.columns], zip(*texts(given), strict=True), strict=True))
    assert shown["above"] == ("0.0 %", "100.0 %")
    assert shown["gap"] == ("0.00 %", "50.00 %")
    assert [row.tone for row in given.rows] == [Tone.STRONG, Tone.PLAIN]


def test_folded_sections_are_details() -> None:
    columns: list[Column[str]] = [
        Column("name", Unit.NAME, lambda name: Cell(name, note="at length"), note="what it is called"),
        Column("more", Unit.TEXT, lambda name: "m", Shown.DETAILS),
    ]
    rows = table("names", columns, ["x", "y"], most=1)
    blocks: list[Block] = [
        Sentence("first"),
        rows,
        Sentence("about it", Tone.SOFT),
        Section("why", (Sentence("because"),), folded=True),
        Sentence("in brief only", shown=Shown.BRIEF),
    ]
    assert told(blocks, details=False) == [
        "first",
        "",
        "  name",
        "  x",
        "  ... and 1 more (--json shows all)",
        "name: what it is called",
        "about it",
        "in brief only",
    ]
    assert told(blocks, details=True) == [
        "first",
        "",
        "  name         more",
        "  x at length  m",
        "  ... and 1 more (--json shows all)",
        "name: what it is called",
        "about it",
        "",
        "why",
        "because",
    ]


def test_a_section_says_where_it_is_shown_and_titles_inside_go_in() -> None:
    inner = Section("inner", (Sentence("both"),))
    long = Section("long " * 20, (inner, Section("pages", (Sentence("one"),), shown=Shown.PAGES)))
    lines = told([Section("outer", (long,))], details=True)
    assert [line[:7] for line in lines] == ["outer", "  long ", "  long ", "  inner", "both"]
    blocks: list[Block] = [
        Section("outer", (inner, Section("", (Sentence("untitled"),))), place="outer"),
        Section("pages", (Sentence("pages only"),), place="pages", shown=Shown.PAGES),
        Sentence(""),
        Sentence("last"),
    ]
    assert told(blocks, details=True) == ["outer", "  inner", "both", "untitled", "", "last"]
    page = blocks_page("", "", blocks)
    assert page.count("<p>") == 4, "no blank one, and one of the footer"
    assert page.index("last</p>") < page.index(">inner<") < page.index("pages only"), "the summary is first"
    assert Markup(page).references >= {"outer", "pages"}


def test_a_table_in_a_summary_is_figures_and_a_section_an_alert() -> None:
    figures = grid("Figures", [("period", Unit.TEXT)], [[Cell("7 ms", Tone.WARN, "<b>")]])
    alert = Section("Not valid.", (Sentence("<i>"),))
    page = blocks_page("", "", [Sentence("first"), figures, alert, Section("", (), place="none")])
    assert '<p class="lead">first</p>' in page
    assert '<div class="warn"><dt>period</dt><dd><span class="value">7 ms</span>' in page
    assert '<span class="note">&lt;b&gt;</span>' in page
    assert "<strong>Not valid.</strong>" in page
    assert "<li>&lt;i&gt;</li>" in page
    assert 'id="none"' not in page, "nothing is in it"


def told(blocks: list[Block], *, details: bool) -> list[str]:
    out = StringIO()
    Console(file=out, width=60).print(blocks_view(blocks, details=details))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_counts_have_their_thousands_apart() -> None:
    assert [counted(1, "session"), counted(1001, "session")] == ["1 session", "1,001 sessions"]

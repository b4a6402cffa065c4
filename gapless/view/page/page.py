"""The report: one self-contained HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...answers import charts
from ...answers.blocks import Block, Cell, Column, Section, Shown, Table, Tone, Unit, kept
from ...answers.charts import Colour, Line, Plane
from ...answers.files import differences
from ...files.runs import RunDifferences
from ...formulations.errors import InvalidInputError
from ...version import __version__
from ..presenter import presenter_of
from .contents import MOST_ROWS, MOST_TITLE, comparison, subject_blocks
from .subject import Subject
from .texts import GLOSSARY, clipped, prose, visible

if TYPE_CHECKING:
    from jinja2 import Environment


_SHAPES = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
    "M-4.5 -4.5h9v9h-9Z",
    "M0 -6L6 0L0 6L-6 0Z",
    "M0 -6L5.5 4.5H-5.5Z",
    "M-4.5 -4.5L4.5 4.5M-4.5 4.5L4.5 -4.5",
)
"""What tells the series of a chart apart, beside colours, as SVG paths; they repeat. The last one is open."""

_SIZE = 1000
"""Width and height of the lines of a chart, in units of their own; they are stretched to it."""


def _path(chart: Plane, line: Line) -> str:
    """Return a line of a chart as an SVG path."""
    parts: list[str] = []
    last = ""  # the height where the pen is; empty: it is up
    for x, y in line.points:
        across = f"{_SIZE * chart.across.at(x) / 100:.1f}".removesuffix(".0")
        if y is None:
            parts += [f"H{across}"] if last and line.stairs else []
            last = ""
            continue
        down = f"{_SIZE * (1 - chart.upwards.at(y) / 100):.1f}".removesuffix(".0")
        if not last:
            parts.append(f"M{across} {_SIZE}V{down}" if line.filled else f"M{across} {down}")
        elif line.stairs:
            parts.append(f"H{across}" if down == last else f"H{across}V{down}")
        else:
            parts.append(f"L{across} {down}")
        last = down
    return "".join([*parts, f"V{_SIZE}Z"] if line.filled else parts)


def _colour(colour: Colour) -> str:
    """Return the class of a colour of a bar."""
    return colour if isinstance(colour, charts.Tone) else f"c{colour % 8}"


_MOST_ROWS = 300
"""Of a table that does not ask for more."""

_KINDS = (Unit.NAME, Unit.CODE, Unit.LONG)
"""Units whose cells are set in a way of their own."""


def _shown(given: Table) -> tuple[Table, int]:
    """Return what is shown of a table, and how many rows are left out."""
    return given.of(Shown.PAGE).first(max(given.most, _MOST_ROWS))


def _drawn(cell: Cell, column: Column[Any]) -> tuple[str, str]:
    """Return how a cell is set, and its text; what is long by its nature is shown whole."""
    kind, text = column.unit if column.unit in _KINDS else "", column.text(cell)
    text = text if kind is Unit.LONG else clipped(text)
    return cell.tone if cell.tone not in (Tone.PLAIN, Tone.STRONG) else kind, text


def _kept(blocks: Sequence[Block]) -> tuple[Block, ...]:
    return kept(blocks, Shown.PAGE)


def _told(chart: Plane) -> list[list[tuple[str, str]]]:
    """Return what is told of each mark of a chart, harmless and not too long."""
    return [[(visible(name), visible(clipped(text))) for name, text in mark.facts] for _, mark in chart.marks]


_TEMPLATES = Path(__file__).parent / "templates"

Glossary = Sequence[tuple[str, str]]
"""Terms, and what they mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """A part of a page: a summary, and a card for each section that has a place.

    `title`: empty: the page has no other one with a summary. `key`: beginning of the names of its places.
    """

    blocks: tuple[Block, ...]
    key: str = ""
    title: str = ""

    @property
    def summary(self) -> tuple[Block, ...]:
        """What stands above its cards."""
        return tuple(block for block in _kept(self.blocks) if block not in self.cards)

    @property
    def cards(self) -> tuple[Section, ...]:
        """What is known, by subject."""
        return tuple(one for one in _kept(self.blocks) if isinstance(one, Section) and one.place)


def report_page(
    subjects: Sequence[Subject],
    *,
    title: str = "",
    command: str = "",
    made_at: datetime | None = None,
    runs: Sequence[RunDifferences] = (),
) -> str:
    """Return a report as HTML: one file, without anything that is loaded from elsewhere.

    `subjects`: what it is about, at least one. `title`: of the page; empty: made from the problem of the
    first subject. `command`: the command that made it; empty: not said. `made_at`: when; None: now.
    A race that several took part in is shown once. Everything that comes from files is escaped.
    """
    if not subjects:
        raise InvalidInputError("a report needs at least one plan or deployment")
    keys = [f"s{number}" for number in range(1, len(subjects) + 1)]
    several = [comparison(subjects, keys)] if len(subjects) > 1 else []
    pairs = (replace(differences(found), place=f"runs-{number}") for number, found in enumerate(runs, 1))
    rows, races = MOST_ROWS // len(subjects), [subject.tuning for subject in subjects]
    articles = (
        Article(
            key=key,
            title=clipped(subject.title, MOST_TITLE),
            blocks=tuple(subject_blocks(subject, rows, raced=races[number] not in races[:number])),
        )
        for number, (subject, key) in enumerate(zip(subjects, keys, strict=True))
    )
    every = (Article(blocks=(*several, *pairs)), *articles)
    glossary, named = _glossary(subjects), title or _title(subjects)
    return _page("report", named, every, glossary, command=command, made_at=made_at)


def blocks_page(
    what: str, title: str, blocks: Iterable[Block], *, glossary: Glossary = (), command: str = ""
) -> str:
    """Return a page of an answer as HTML; everything that comes from files is escaped.

    `what`: kind of page; `blocks`: its summary, and sections with places; `command`: as of `report_page`.
    """
    return _page(what, title, [Article(blocks=tuple(blocks))], glossary, command=command)


def _page(
    what: str,
    title: str,
    articles: Sequence[Article],
    glossary: Glossary,
    *,
    command: str,
    made_at: datetime | None = None,
) -> str:
    moment = (made_at or datetime.now(UTC)).astimezone().isoformat(timespec="seconds")
    about = {"what": what, "title": title, "command": command, "made_at": moment, "version": __version__}
    template = environment().get_template("page.html")
    return template.render(about, articles=articles, glossary=glossary)


def _glossary(subjects: Sequence[Subject]) -> Glossary:
    """Return what terms mean: those of all pages, and those of the formulations that are shown."""
    known = dict(GLOSSARY)
    for subject in subjects:
        for term, text in presenter_of(subject.problem).glossary(subject.problem):
            known.setdefault(term, text)
    return tuple(known.items())


def _title(subjects: Sequence[Subject]) -> str:
    """Return the networks and the device of the first subject, and how many others there are."""
    first = subjects[0]
    words = f"{', '.join(first.deployment.networks)} on {first.problem.platform.name}"
    others = len(subjects) - 1
    return f"{words}, and {others} more" if others else words


@cache
def environment() -> Environment:
    """Return what makes pages of the templates; whatever it puts into them is escaped.

    It keeps the templates that it has compiled, which takes as long as to fill them in.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Names come from files of strangers; what is escaped already is no plain string any more.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters |= {"prose": prose, "path": _path, "told": _told, "colour": _colour}
    environment.filters |= {"shown": _shown, "drawn": _drawn, "kept": _kept}
    environment.filters["sort_of"] = lambda block: type(block).__name__
    environment.globals["shapes"] = _SHAPES
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment

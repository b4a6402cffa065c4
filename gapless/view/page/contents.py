"""A subject as the page shows it, and several subjects side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..graph_drawing import GraphDrawing
from ..presenter import presenter_of
from ..words import microseconds, size, term_name, term_value
from .answers import Answers, answers
from .execution import achieved, predicted_pace_us
from .headline import Headline, difference, headline, utilised
from .layers import MOST_ROWS, LayerHeatMap, heat_maps
from .memory import Memory, memory
from .messages import messages
from .origin import OriginSection, origin
from .race import RaceSection, race
from .reasoning import Reasoning, reasoning
from .receipts import Receipts, receipts
from .standing import standing
from .subject import Subject
from .table import Table, TableCell, columns, numbers, table
from .texts import clipped
from .timeline import Timeline, timeline
from .utilisation import Utilisation, chunk_table, utilisation

_MOST_TITLE = 120
"""Letters; subjects without a title are called by what runs, which can be long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Everything that the page shows of one subject; None: that is not known."""

    key: str  # beginning of the names of its places on the page
    title: str
    headline: Headline
    chunks: Table
    graph: GraphDrawing | None
    timeline: Timeline | None
    utilisation: Utilisation | None
    race: RaceSection | None
    answers: Answers | None
    memory: Memory | None
    heat_maps: tuple[LayerHeatMap, ...]
    reasoning: Reasoning | None
    messages: Table | None
    receipts: Receipts | None
    origin: OriginSection

    @property
    def busy_title(self) -> str:
        """Title of the section with the chunks."""
        return "How busy the units are" if self.utilisation else "Chunks"

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """(place, title) of the sections that are there."""
        found = (
            ("time", "Who runs when", self.timeline),
            ("busy", self.busy_title, self.chunks),
            ("graph", "Layers by part", self.graph),
            ("why", "Why this plan", self.reasoning),
            ("race", self.race.title if self.race else "", self.race),
            ("answers", "Exact against heuristic", self.answers),
            ("memory", "Memory", self.memory),
            ("layers", "Layer times", self.heat_maps),
            ("messages", "Messages", self.messages),
            ("receipts", "Receipts", self.receipts),
            ("origin", "Where this comes from", self.origin),
        )
        return tuple((f"{self.key}-{place}", title) for place, title, there in found if there)


def contents(subject: Subject, key: str, rows: int = MOST_ROWS) -> Contents:
    """Return what the page shows of a subject."""
    return Contents(
        key=key,
        title=clipped(subject.title, _MOST_TITLE),
        headline=headline(subject),
        chunks=chunk_table(subject),
        graph=None
        if subject.plan is None
        else presenter_of(subject.problem).drawing(subject.problem, subject.plan),
        timeline=timeline(subject),
        utilisation=utilisation(subject),
        race=race(subject),
        answers=answers(subject),
        memory=memory(subject),
        heat_maps=heat_maps(subject, rows),
        reasoning=reasoning(subject),
        messages=messages(subject),
        receipts=receipts(subject),
        origin=origin(subject),
    )


def _unless_measured(subject: Subject) -> str:
    """Return what the column of measured times holds of a subject where they are not measured."""
    return "" if subject.observed == "measured" else subject.observed


def comparison_table(subjects: Sequence[Subject], keys: Sequence[str]) -> Table:
    """Return a table that compares subjects, with links to each."""
    titles = columns(
        "what",
        "runs",
        "on",
        *numbers("predicted", "measured", "difference", "utilisation", "peak memory"),
        "standing",
    )
    rows = (_compared(subject, key) for subject, key in zip(subjects, keys, strict=True))
    return table("What is compared", titles, rows)


def _compared(subject: Subject, key: str) -> list[TableCell | str]:
    infos, pace = subject.problem.formulation.terms, subject.pace
    predicted, found, judged = predicted_pace_us(subject), achieved(subject), subject.score
    off, state = difference(predicted, found), standing(subject)
    return [
        TableCell(text=clipped(subject.title, _MOST_TITLE), kind="name", link=key),
        TableCell(text=clipped(str(subject.deployment)), kind="code"),
        TableCell(text=subject.problem.platform.name, kind="name"),
        "-" if predicted is None else f"{term_value(infos, pace, predicted)} ({term_name(infos, pace)})",
        "-" if found is None else TableCell(text=microseconds(found.pace_us), note=_unless_measured(subject)),
        "-" if off is None else f"{off:+.1f} %",
        utilised(subject),
        size(None if judged is None else judged.terms.get("peak_bytes") or None),
        TableCell(text=state.label, kind=state.kind),
    ]

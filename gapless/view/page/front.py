"""The page of a front: a picture for each two of its terms, and every plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from ...formulations.errors import InvalidInputError
from ...formulations.files import save
from ...formulations.problem import Problem
from ...solvers.pareto import ParetoFront, ParetoPoint
from ...version import __version__
from ..front_words import legend, measured_words, proof_words, status_words, was_measured
from ..presenter import presenter_of
from ..words import SCALES, amount, capital, seconds, term_name
from .page import environment
from .race import SHAPES
from .scale import Axis, Tick
from .table import Table, TableCell, columns, numbers, table
from .texts import GLOSSARY, clipped, visible

_TERMS = ("unit", "period", "bound, gap", "layer, cut, chunk")
_SERIES = ("proven", "not proven", "measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMark:
    """One point: percent from the left and from the top, what it is, and what is shown of it."""

    x: float
    y: float
    series: int
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPicture:
    """Two terms of a front, one to the right and one upwards."""

    place: str
    title: str
    marks: tuple[FrontMark, ...]
    across: tuple[Tick, ...]
    upwards: tuple[Tick, ...]
    across_name: str
    upwards_name: str


def write_front_report(
    front: ParetoFront, problem: Problem, out: str | Path, *, title: str = "", command: str = ""
) -> Path:
    """Write the page of a front: one self-contained HTML file that needs no network.

    Parameters
    ----------
    front, problem
        From `gapless.pareto`, and what it is about.
    out
        Where the page goes.
    title
        Of the page; empty: made from the problem.
    command
        The command that made it; empty: not said.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        The front has no plans, or the place cannot be written.
    """
    save(front_page(front, problem, title=title, command=command), out)
    return Path(out)


def front_page(front: ParetoFront, problem: Problem, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    if not front.points:
        raise InvalidInputError("the front has no plans: there is nothing to report")
    networks = ", ".join(network.name for network in problem.networks)
    names = [term_name(problem.formulation.terms, term) for term in front.terms]
    return (
        environment()
        .get_template("front.html")
        .render(
            what="trade-offs",
            title=title or f"Trade-offs of {networks} on {problem.platform.name}",
            summary=[
                f"{capital(' against '.join(names))}: {status_words(front)}.",
                f"Solved by {front.backend} in {seconds(front.runtime_s)}, {front.solves:,} problems.",
                *(f"{capital(text)}." for text in legend(problem, front)),
            ],
            pictures=tuple(_pictures(front, problem)),
            series=tuple(zip(_SERIES, SHAPES, strict=False)),
            plans=_plans(front, problem),
            shape_paths=SHAPES,
            glossary=tuple(entry for entry in GLOSSARY if entry[0] in _TERMS),
            version=__version__,
            command=command,
            made_at=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        )
    )


def _pictures(front: ParetoFront, problem: Problem) -> Iterator[FrontPicture]:
    for number, (right, up) in enumerate(combinations(range(len(front.terms)), 2), start=1):
        infos = [problem.formulation.terms[front.terms[place]] for place in (right, up)]
        scales = [SCALES[info.dimension] for info in infos]
        spots: list[tuple[float, float, int, ParetoPoint]] = []
        for point in front.points:
            spots.append((point.values[right], point.values[up], int(not point.proven), point))
            seen = [point.measured.get(info.field) for info in infos]
            if seen[0] is not None and seen[1] is not None:
                spots.append((seen[0], seen[1], 2, point))
        across = Axis.around([x / scales[0][0] for x, *_ in spots])
        upwards = Axis.around([y / scales[1][0] for _, y, *_ in spots])
        marks = (
            FrontMark(
                x=across.at(x / scales[0][0]),
                y=round(100 - upwards.at(y / scales[1][0]), 3),
                series=series,
                facts=_facts(front, problem, point),
            )
            for x, y, series, point in spots
        )
        yield FrontPicture(
            place=f"front-{number}",
            title=f"{capital(infos[0].label)} against {infos[1].label}",
            marks=tuple(sorted(marks, key=lambda mark: (mark.x, mark.y, mark.series))),
            across=across.counts(),
            upwards=upwards.counts(),
            across_name=f"{infos[0].label}{scales[0][1]}",
            upwards_name=f"{infos[1].label}{scales[1][1]}",
        )


def _facts(front: ParetoFront, problem: Problem, point: ParetoPoint) -> tuple[tuple[str, str], ...]:
    """Return what is shown of a point: its number in the table, its values, its plan."""
    infos = [problem.formulation.terms[term] for term in front.terms]
    found = {"plan": str(front.points.index(point) + 1)}
    found |= {i.label: amount(i.dimension, v) for i, v in zip(infos, point.values, strict=True)}
    if point.measured:
        words = zip(infos, measured_words(problem, front, point), strict=True)
        found |= {f"{info.label}, measured": text for info, text in words if text != "-"}
    found |= {"proof": proof_words(point), "chunks": clipped(_text(problem, point))}
    return tuple((what, visible(value)) for what, value in found.items())


def _text(problem: Problem, point: ParetoPoint) -> str:
    return presenter_of(problem).plan_text(point.candidate.plan)


def _plans(front: ParetoFront, problem: Problem) -> Table:
    infos = [problem.formulation.terms[term] for term in front.terms]
    measured = [f"{info.label}, measured" for info in infos] if was_measured(front) else []
    titles = columns(
        *numbers("plan", *(info.label for info in infos), *measured), "proof", "chunks", "plan id"
    )

    def row(number: int, point: ParetoPoint) -> list[TableCell | str]:
        values = (amount(i.dimension, v) for i, v in zip(infos, point.values, strict=True))
        seen = measured_words(problem, front, point) if measured else []
        proof = TableCell(text=proof_words(point), kind="good" if point.proven else "warn")
        plan = TableCell(text=clipped(_text(problem, point)), kind="code")
        return [str(number), *values, *seen, proof, plan, point.candidate.plan.plan_id]

    rows = (row(number, point) for number, point in enumerate(front.points, start=1))
    return table("Every plan of the front", titles, rows)

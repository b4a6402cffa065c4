"""The page of a front: a picture for each two of its terms, and every plan."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

from ...answers.front import front_chart
from ...formulations.errors import InvalidInputError
from ...formulations.files import save
from ...formulations.problem import Problem
from ...solvers.pareto import ParetoFront, ParetoPoint
from ...version import __version__
from ..front_words import legend, measured_words, proof_words, status_words, was_measured
from ..presenter import presenter_of
from ..words import amount, capital, seconds, term_name
from .page import environment
from .table import Table, TableCell, columns, numbers, table
from .texts import GLOSSARY, clipped

_TERMS = ("unit", "period", "bound, gap", "layer, cut, chunk")


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
    plans = [_text(problem, point) for point in front.points]
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
            pictures=[front_chart(front, problem, pair, plans) for pair in combinations(front.terms, 2)],
            plans=_plans(front, problem),
            glossary=tuple(entry for entry in GLOSSARY if entry[0] in _TERMS),
            version=__version__,
            command=command,
            made_at=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        )
    )


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

"""The page of a front: a picture for each two of its terms, and every plan."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

from ...answers.blocks import Section
from ...answers.front import front_chart, front_table, status_words
from ...answers.words import capital, seconds, term_name
from ...formulations.errors import InvalidInputError
from ...formulations.files import save
from ...formulations.problem import Problem
from ...solvers.pareto import ParetoFront
from ..presenter import presenter_of
from .page import sections_page
from .texts import GLOSSARY

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
    plans = front_table(problem, front, presenter_of(problem))
    names = [term_name(problem.formulation.terms, term) for term in front.terms]
    charts = (front_chart(front, problem, pair, plans) for pair in combinations(front.terms, 2))
    return sections_page(
        "trade-offs",
        title or f"Trade-offs of {networks} on {problem.platform.name}",
        [
            f"{capital(' against '.join(names))}: {status_words(front)}.",
            f"Solved by {front.backend} in {seconds(front.runtime_s)}, {front.solves:,} problems.",
        ],
        [
            Section("Trade-offs", tuple(charts), place="pictures"),
            Section("Plans", (plans,), place="plans"),
        ],
        glossary=tuple(entry for entry in GLOSSARY if entry[0] in _TERMS),
        command=command,
    )

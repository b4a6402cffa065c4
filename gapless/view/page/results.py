"""Pages of results: trade-offs, a sweep, a comparison of backends over many problems, a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...answers.coordination import coordination_blocks
from ...answers.front import front_blocks
from ...answers.standings import contest_blocks
from ...answers.sweeps import sweep_blocks
from ...api.coordination import Coordination, CoordinationBound
from ...formulations.errors import InvalidInputError
from ...formulations.files import save
from ...formulations.problem import Problem
from ...solvers.pareto import ParetoFront
from ...sweeps.contest import InstanceComparison
from ...sweeps.run import SweepResult
from ..presenter import presenter_of
from .page import Glossary, blocks_page
from .texts import GLOSSARY

_OF_SWEEPS = (
    (
        "of the best",
        "Rate of a plan over the best rate of the chart; for times, the best time over that of the plan.",
    ),
    ("for its price", "The same divided by the price, as a share of the largest."),
    ("size", "Layers x units: the cells of the table of costs."),
)


def write_page(
    found: SweepResult | InstanceComparison | ParetoFront,
    out: str | Path,
    *,
    problem: Problem | None = None,
    title: str = "",
    command: str = "",
) -> Path:
    """Write the page of a result: one self-contained HTML file that needs no network.

    Parameters
    ----------
    found
        From `gapless.sweep`, `gapless.studies.compare_instances` or `gapless.pareto`.
    out
        Where the page goes.
    problem
        What a front is about.
    title
        Of the page; empty: that of the sweep or of the problems.
    command
        The command that made it; empty: not said.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        A front has no plans, or comes without its problem; or the place cannot be written.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.sweep(gapless.studies.Sweep(models=["octree"], platforms=["pixel7a", "oneplus11"]))
    >>> path = gapless.reports.write_page(found, "sweep.html")  # doctest: +SKIP
    """
    match found:
        case SweepResult():
            text = sweep_page(found, title=title, command=command)
        case InstanceComparison():
            text = contest_page(found, title=title, command=command)
        case ParetoFront():
            if problem is None:
                raise InvalidInputError("a front is shown with its problem: give it with problem=...")
            text = front_page(found, problem, title=title, command=command)
        case _:
            raise InvalidInputError(
                f"a {type(found).__name__} has no page: give what gapless.sweep, gapless.pareto or "
                "gapless.studies.compare_instances returns"
            )
    save(text, out)
    return Path(out)


def _terms(*names: str) -> Glossary:
    """Return what some terms mean."""
    return tuple(entry for entry in GLOSSARY if entry[0] in names)


def front_page(front: ParetoFront, problem: Problem, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    if not front.points:
        raise InvalidInputError("the front has no plans: there is nothing to report")
    networks = ", ".join(network.name for network in problem.networks)
    return blocks_page(
        "trade-offs",
        title or f"Trade-offs of {networks} on {problem.platform.name}",
        front_blocks(problem, front, presenter_of(problem)),
        glossary=_terms("unit", "period", "bound, gap", "layer, cut, chunk"),
        command=command,
    )


def sweep_page(found: SweepResult, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    glossary = (*_terms("unit", "period", "bound, gap", "exact, heuristic"), *_OF_SWEEPS)
    named = title or found.sweep.title or "Sweep"
    return blocks_page("sweep", named, sweep_blocks(found), glossary=glossary, command=command)


def contest_page(found: InstanceComparison, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    named = title or found.title or "Comparison of backends"
    glossary = _terms("bound, gap", "exact, heuristic")
    return blocks_page("comparison", named, contest_blocks(found), glossary=glossary, command=command)


def coordination_page(
    runs: Sequence[Coordination],
    *,
    bound: CoordinationBound | None = None,
    title: str = "",
    command: str = "",
) -> str:
    """Return a page about a scenario as HTML; everything that comes from files is escaped.

    `bound`: of `bound_coordination`; None: it is not shown. `title`: of the page; empty: the name of the
    scenario and the platform. `command`: the command that made it; empty: not said.
    """
    named = title or f"{runs[0].scenario.name} on {runs[0].setting.platform.name}"
    return blocks_page("coordination", named, coordination_blocks(runs, bound), command=command)

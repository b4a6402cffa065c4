"""Trade-offs in the terminal: one row a plan, from the least of the first term on."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...formulations.problem import Problem
from ...solvers.pareto import ParetoFront, ParetoPoint
from ..layout import indented, plain_table
from ..presenter import presenter_of
from ..words import amount, counted, gap, seconds, stop_words, term_name

_MOST_ROWS = 200


def front_view(problem: Problem, front: ParetoFront) -> Group:
    """Return what `plan --pareto` and `tune --pareto` show."""
    infos = problem.formulation.terms
    names = [term_name(infos, term) for term in front.terms]
    head = Text(", ".join(network.name for network in problem.networks), style="bold")
    head.append(f" on {problem.platform.name}: {' against '.join(names)}", style="not bold")
    parts: list[RenderableType] = [head, _status(front)]
    if front.points:
        parts += ["", indented(_table(problem, front))]
        parts += [Text(text, style="dim") for text in legend(problem, front)]
    return Group(*parts)


def status_words(front: ParetoFront) -> str:
    """Return what is known about a front."""
    count = counted(len(front.points), "plan")
    if front.complete:
        return f"proved: these {count} are all trade-offs" if front.points else "proved: there is no plan"
    proven = sum(point.proven for point in front.points)
    return f"{count}, {proven} of them proven, and there may be more: {stop_words(front.stop)}"


def proof_words(point: ParetoPoint) -> str:
    """Return what is proved of a plan of a front."""
    if point.proven:
        return "proven"
    return "not proven" if point.gap is None else f"gap {gap(point.gap)}"


def legend(problem: Problem, front: ParetoFront) -> Sequence[str]:
    """Return what the columns mean, as far as it is not plain."""
    infos = problem.formulation.terms
    found = ["; ".join(f"{infos[term].label}: {infos[term].text}" for term in front.terms)]
    if front.energy_by:
        found.append(f"measured energy: {front.energy_by}")
    return found


def measured_words(problem: Problem, front: ParetoFront, point: ParetoPoint) -> list[str]:
    """Return what was measured of a plan, by term; "-" where it was not."""
    infos = (problem.formulation.terms[term] for term in front.terms)
    values = ((info, point.measured.get(info.field)) for info in infos)
    return ["-" if value is None else amount(info.dimension, round(value)) for info, value in values]


def was_measured(front: ParetoFront) -> bool:
    """Return whether plans of a front were run."""
    return any(point.measured for point in front.points)


def _status(front: ParetoFront) -> Text:
    style = "bold green" if front.complete else "bold yellow"
    text = Text("COMPLETE" if front.complete else "INCOMPLETE", style=style)
    text.append(f"  {status_words(front)}", style="not bold default")
    solves = counted(front.solves, "solve")
    return text.append(f"  [{front.backend}, {solves}, {seconds(front.runtime_s)}]", style="not bold dim")


def _table(problem: Problem, front: ParetoFront) -> Table:
    presenter, infos = presenter_of(problem), problem.formulation.terms
    names = [term_name(infos, term) for term in front.terms]
    seen = [f"{name}, measured" for name in names] if was_measured(front) else []
    numbers = ("#", *names, *seen)
    table = plain_table("#", *names, *seen, "proof", presenter.plan_title, numbers=numbers)
    for rank, point in enumerate(front.points[:_MOST_ROWS], start=1):
        values = zip(front.terms, point.values, strict=True)
        table.add_row(
            str(rank),
            *(amount(infos[term].dimension, value) for term, value in values),
            *(measured_words(problem, front, point) if seen else ()),
            proof_words(point),
            presenter.plan_text(point.candidate.plan),
        )
    hidden = len(front.points) - _MOST_ROWS
    if hidden > 0:
        table.add_row("", f"... and {hidden} more (--json shows all)")
    return table

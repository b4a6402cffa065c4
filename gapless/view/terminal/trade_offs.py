"""Trade-offs in the terminal: one row a plan, from the least of the first term on."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...formulations.problem import Problem
from ...solvers.pareto import ParetoFront
from ..front_words import legend, measured_words, proof_words, status_words, was_measured
from ..layout import indented, plain_table
from ..presenter import presenter_of
from ..words import amount, counted, seconds, term_name

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

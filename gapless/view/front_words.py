"""Trade-offs in words: what is proved of a front and of its plans, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from ..formulations.problem import Problem
from ..solvers.pareto import ParetoFront, ParetoPoint
from .words import amount, counted, gap, stop_words


def status_words(front: ParetoFront) -> str:
    """Return what is known about a front; a proof says among which plans."""
    count = counted(len(front.points), "plan")
    if front.complete:
        known = f"these {count} are all trade-offs" if front.points else "none is valid"
        return f"proved: {known} among {front.plan_class}"
    proven = sum(point.proven for point in front.points)
    among = f" among {front.plan_class}" if proven else ""
    return f"{count}, {proven} of them proven{among}, and there may be more: {stop_words(front.stop)}"


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

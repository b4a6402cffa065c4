"""A front as a chart: two of its terms against each other."""

from __future__ import annotations

from collections.abc import Sequence

from ..formulations.problem import Problem
from ..solvers.pareto import ParetoFront, ParetoPoint
from ..view.front_words import measured_words, proof_words
from ..view.words import amount, capital
from .charts import DRAWN, Axis, Facts, Kind, Line, Mark, Plane, Series

Spot = tuple[float, float]


def front_chart(
    front: ParetoFront, problem: Problem, terms: Sequence[str], plans: Sequence[str] = ()
) -> Plane:
    """Return predicted plans, proven or not, and what was measured of each.

    `terms`: two of the front, to the right and upwards. `plans`: each plan in words; empty: not told.
    """
    infos = [problem.formulation.terms[term] for term in terms]
    places = [front.terms.index(term) for term in terms]
    divisors, units = zip(*(DRAWN[info.dimension] for info in infos), strict=True)

    def spot(values: Sequence[float]) -> Spot:
        x, y = (value / divisor for value, divisor in zip(values, divisors, strict=True))
        return x, y

    predicted = [(spot([point.values[place] for place in places]), point) for point in front.points]
    measured = [
        (spot([point.measured[info.field] for info in infos]), point)
        for _, point in predicted
        if all(info.field in point.measured for info in infos)
    ]
    told = {id(p): _facts(front, problem, p, plans) for p in front.points}
    series = {
        "proven": [one for one in predicted if one[1].proven],
        "not proven": [one for one in predicted if not one[1].proven],
        "measured": measured,
    }
    before = {id(point): place for place, point in predicted}
    spots = [place for place, _ in predicted] + [place for place, _ in measured]
    return Plane(
        kind=Kind.SCATTER,
        title=f"{capital(infos[0].label)} against {infos[1].label}",
        noun="plan",
        across=Axis.around(infos[0].label, [x for x, _ in spots], unit=units[0]),
        upwards=Axis.around(infos[1].label, [y for _, y in spots], unit=units[1]),
        series=tuple(
            Series(name=name, marks=tuple(Mark(x=x, y=y, facts=told[id(p)]) for (x, y), p in found))
            for name, found in series.items()
        ),
        guides=(
            Line(points=_undominated(sorted({place for place, _ in predicted})), stairs=True),
            *(Line(points=(before[id(point)], place)) for place, point in measured),
        ),
    )


def _undominated(spots: Sequence[Spot]) -> tuple[Spot, ...]:
    """Return which of some points, from left to right, are lower than all before."""
    kept: list[Spot] = []
    for spot in spots:
        if not kept or spot[1] < kept[-1][1]:
            kept.append(spot)
    return tuple(kept)


def _facts(front: ParetoFront, problem: Problem, point: ParetoPoint, plans: Sequence[str]) -> Facts:
    """Return what is told of a point: its number in the table, its values, its plan."""
    infos = [problem.formulation.terms[term] for term in front.terms]
    number = front.points.index(point)
    found = {"plan": str(number + 1)}
    found |= {i.label: amount(i.dimension, v) for i, v in zip(infos, point.values, strict=True)}
    if point.measured:
        words = zip(infos, measured_words(problem, front, point), strict=True)
        found |= {f"{info.label}, measured": text for info, text in words if text != "-"}
    found |= {"proof": proof_words(point)}
    found |= {"chunks": plans[number]} if plans else {}
    return tuple(found.items())

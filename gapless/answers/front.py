"""Trade-offs: every plan of a front, what is proved of it and what was measured, as a table and as charts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Protocol

from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.terms import TermInfo
from ..solvers.pareto import ParetoFront, ParetoPoint
from .blocks import Block, Cell, Column, Row, Section, Sentence, Shown, Table, Tone, Unit, table
from .charts import DRAWN, Axis, Facts, Kind, Line, Mark, Plane, Series
from .words import capital, counted, gap, seconds, stop_words, term_name

Spot = tuple[float, float]

_MOST_ROWS = 200


class PlanWords(Protocol):
    """How tables show the plans of a formulation."""

    @property
    def plan_title(self) -> str:
        """What tables of plans call their plans."""

    def plan_text(self, plan: Plan) -> str:
        """Return a plan as tables of plans show it."""


def front_blocks(problem: Problem, front: ParetoFront, words: PlanWords) -> tuple[Block, ...]:
    """Return what `plan --pareto` and `tune --pareto` answer."""
    networks = ", ".join(network.name for network in problem.networks)
    names = " against ".join(term_name(problem.formulation.terms, term) for term in front.terms)
    lead, tone = ("COMPLETE", Tone.GOOD) if front.complete else ("INCOMPLETE", Tone.WARN)
    effort = f"[{front.backend}, {counted(front.solves, 'solve')}, {seconds(front.runtime_s)}]"
    plans = front_table(problem, front, words)
    pairs = combinations(front.terms, 2) if front.points else ()
    charts = tuple(front_chart(front, problem, pair, plans) for pair in pairs)
    return (
        Sentence(f" on {problem.platform.name}: {names}", lead=networks),
        Sentence(f"  {status_words(front)}  {effort}", tone, lead),
        Section("Trade-offs", charts, place="pictures"),
        Section("Every plan of the front", (plans,), place="plans"),
    )


def front_table(problem: Problem, front: ParetoFront, words: PlanWords) -> Table:
    """Return one row for each plan, from the least of the first term on."""
    infos = [problem.formulation.terms[term] for term in front.terms]
    numbers = {id(point): number for number, point in enumerate(front.points, start=1)}
    tones = (Tone.WARN, Tone.GOOD)
    columns: list[Column[ParetoPoint]] = [
        Column("#", Unit.COUNT, lambda point: numbers[id(point)]),
        *(_term(info, place) for place, info in enumerate(infos)),
        *(_measured(info, front) for info in infos if was_measured(front)),
        Column("proof", Unit.TEXT, lambda point: Cell(proof_words(point), tones[point.proven])),
        Column(words.plan_title, Unit.CODE, lambda point: words.plan_text(point.candidate.plan)),
        Column("plan id", Unit.TEXT, lambda point: point.candidate.plan.plan_id, Shown.PAGES),
    ]
    return table("Every plan of the front", columns, front.points, most=_MOST_ROWS)


def _term(info: TermInfo, place: int) -> Column[ParetoPoint]:
    return Column(info.label, Unit(info.dimension), lambda point: point.values[place], note=info.text)


def _measured(info: TermInfo, front: ParetoFront) -> Column[ParetoPoint]:
    def value(point: ParetoPoint) -> float | None:
        return point.measured.get(info.field)

    note = f"by {front.energy_by}" if front.energy_by and info.name == "energy" else ""
    return Column(f"{info.label}, measured", Unit(info.dimension), value, note=note)


def status_words(front: ParetoFront) -> str:
    """Return what is known about a front; a proof says among which plans."""
    count = counted(len(front.points), "plan")
    if front.complete:
        known = f"these {count} are all trade-offs" if front.points else "none is valid"
        if len(front.points) == 1:
            known = "this plan is the only trade-off"
        return f"proved: {known} among {front.plan_class}"
    proven = sum(point.proven for point in front.points)
    among = f" among {front.plan_class}" if proven else ""
    return f"{count}, {proven} of them proven{among}, and there may be more: {stop_words(front.stop)}"


def proof_words(point: ParetoPoint) -> str:
    """Return what is proved of a plan of a front."""
    if point.proven:
        return "proven"
    return "not proven" if point.gap is None else f"gap {gap(point.gap)}"


def was_measured(front: ParetoFront) -> bool:
    """Return whether plans of a front were run."""
    return any(point.measured for point in front.points)


def front_chart(
    front: ParetoFront, problem: Problem, terms: Sequence[str], plans: Table | None = None
) -> Plane:
    """Return predicted plans, proven or not, and what was measured of each.

    `terms`: two of the front, to the right and upwards. `plans`: the table of all plans, for what is told
    of each; None: nothing is.
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
    told = dict[int, Facts]()
    if plans is not None:
        shown = plans.of(Shown.PAGE)
        told = {id(p): _facts(shown, row) for p, row in zip(front.points, shown.rows, strict=True)}
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
            Series(name=name, marks=tuple(Mark(x=x, y=y, facts=told.get(id(p), ())) for (x, y), p in found))
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


def _facts(plans: Table, row: Row) -> Facts:
    """Return what is told of a point: its row of the table, as far as it is known."""
    cells = zip(plans.columns, row.cells, strict=True)
    return tuple((column.title, column.text(cell)) for column, cell in cells if cell.value is not None)

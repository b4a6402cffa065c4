"""Why a plan is as it is: what its cuts, units and demands cost, as sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator

from ..formulations.flight import Flight
from ..formulations.flight import Pace as FlightPace
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..view.explaining.explanation import (
    Alternative,
    Binding,
    CutReason,
    Explanation,
    SetReason,
    UnitReason,
    alternative_words,
    flight_words,
)
from ..view.presenter import presenter_of
from .blocks import Block, Cell, Column, Sentence, Shown, Table, Tone, Unit, table, titled
from .words import MOST_NAMED, asked_words, listed, seconds, term_name, term_value

MOST_ROWS = 40
_NAME_CELLS = 24


def explanation_blocks(
    problem: Problem, plan: Plan, found: Explanation, *, others: bool = False
) -> Iterator[Block]:
    """Yield what `gapless explain` answers; `others`: whether answers of other backends stand near it."""
    networks, asked = asked_words(problem)
    presenter, terminal = presenter_of(problem), Shown.TERMINAL
    lead, tone = ("proved", Tone.GOOD) if found.proven else ("found, not proved", Tone.WARN)
    yield Sentence(asked, lead=networks, shown=terminal)
    yield Sentence(f" {_values_words(problem, found)}", lead=presenter.plan_name(plan), shown=terminal)
    yield Sentence(f" {_values_words(problem, found)}.", tone, lead=lead, shown=Shown.PAGES)
    yield Sentence("")
    yield Sentence(found.summary, shown=terminal)
    yield from map(titled, (of(problem, found) for of in (cuts, units, demands, sets)))
    yield titled(flight(found))
    other = found.next_best
    words = alternative_words(problem.formulation.terms, found, other)
    text = f": {words}{'' if other.plan is None else f'  {presenter.plan_name(other.plan)}'}"
    yield Sentence(text, lead="Next best plan")
    if found.left_out:
        yield Sentence(f"There was no time for {'; '.join(found.left_out)}.", Tone.WARN)
    yield Sentence(_looked_words(found, others=others), Tone.SOFT)


def _values_words(problem: Problem, found: Explanation) -> str:
    """Return the values of the objective terms of the plan."""
    infos, pairs = problem.formulation.terms, zip(found.terms, found.values, strict=True)
    return ", ".join(f"{term_name(infos, term)} {term_value(infos, term, value)}" for term, value in pairs)


def _looked_words(found: Explanation, *, others: bool) -> str:
    """Return among which plans proofs hold, how long other plans were looked for, and what else is known."""
    words = f"Looked among {found.plan_class}, for {seconds(found.looked_s)} by {found.backend}"
    if found.limit_s is not None:
        words += (
            f" (limit {found.limit_s:g} s; more, by explain --time-limit, may improve what is not proved)"
        )
    if found.told_by:
        return (
            f"{words}. The plans and proofs of {listed(found.told_by)} count here, too: the next best plan "
            "is the best other one that any of these searches met."
        )
    if others:
        words += ". The answers of other backends on this page come from searches that are not known here"
    return f"{words}."


def cuts(problem: Problem, found: Explanation) -> Table:
    """Return what it costs to move each cut."""
    columns: list[Column[CutReason]] = [
        Column("cut", Unit.NAME, lambda cut: _place(problem, cut)),
        Column("between", Unit.NAME, lambda cut: f"{cut.before} | {cut.after}"),
        Column("one earlier", Unit.TEXT, lambda cut: _other(problem, found, cut.earlier)),
        Column("one later", Unit.TEXT, lambda cut: _other(problem, found, cut.later)),
    ]
    return table("Cuts: moved to the next legal place", columns, found.cuts, most=MOST_ROWS)


def _place(problem: Problem, cut: CutReason) -> str:
    network = next(known for known in problem.networks if known.name == cut.network)
    layer = network.layer_names[cut.boundary - 1]
    shown = layer if len(layer) <= _NAME_CELLS else f"{layer[:_NAME_CELLS]}..."
    words = f"after {cut.boundary - 1} ({shown})"
    return f"{cut.request} {words}" if cut.request else words


def units(problem: Problem, found: Explanation) -> Table:
    """Return the best plan without each used unit, and with each unused one."""

    def used(reason: UnitReason) -> Cell:
        if reason.used:
            return Cell("yes", Tone.GOOD)
        return Cell(f"no, shares cores with {listed(reason.excluded_by)}" if reason.excluded_by else "no")

    columns: list[Column[UnitReason]] = [
        Column("unit", Unit.NAME, lambda reason: reason.unit),
        Column("used", Unit.TEXT, used),
        Column("cannot run", Unit.TEXT, _unsupported),
        Column("otherwise", Unit.TEXT, lambda reason: _other(problem, found, reason.otherwise)),
        Column("plan", Unit.CODE, lambda reason: _plan(problem, reason.otherwise), optional=True),
    ]
    title = "Units: the best plan without a used unit, or with an unused one"
    return table(title, columns, found.units, most=MOST_ROWS)


def _unsupported(reason: UnitReason) -> str | None:
    """Return the operators that a unit cannot run; the layers, where operators are not known."""
    if not reason.unsupported:
        return None
    operators = dict.fromkeys(name for _, _, types in reason.unsupported for name in types)
    names = list(operators) or [layer for _, layer, _ in reason.unsupported]
    count = len(reason.unsupported)
    shown = listed(names[: MOST_NAMED + 1] if len(names) == MOST_NAMED + 1 else names)
    return f"{count} layer{'' if count == 1 else 's'}: {shown}"


def sets(problem: Problem, found: Explanation) -> Table:
    """Return the best plan on each set of units."""
    columns: list[Column[SetReason]] = [
        Column("units", Unit.NAME, lambda reason: reason.text),
        Column("the best plan", Unit.TEXT, lambda reason: _other(problem, found, reason.otherwise)),
        Column("plan", Unit.CODE, lambda reason: _plan(problem, reason.otherwise), optional=True),
    ]
    return table("Sets of units: the best plan on each", columns, found.sets, most=MOST_ROWS)


def flight(found: Explanation) -> Table:
    """Return periods by requests in flight; no rows where nothing is defined."""
    known: Flight | None = found.flight

    def count(pace: FlightPace) -> str:
        planned = known is not None and pace.in_flight == known.in_flight
        return f"{pace.in_flight}{' (planned)' if planned else ''}"

    def above(pace: FlightPace) -> float | None:
        more = pace.period_us / known.period_us - 1 if known is not None else 0
        return more if round(1000 * more) else None

    columns: list[Column[FlightPace]] = [
        Column("in flight", Unit.TEXT, count),
        Column("period", Unit.MICROSECONDS, lambda pace: pace.period_us),
        Column("over the largest load", Unit.CHANGE, above),
    ]
    title = "" if known is None else flight_words(known)
    return table(title, columns, () if known is None else known.paces)


def demands(problem: Problem, found: Explanation) -> Table:
    """Return what rules, limits and the device demand, and the best plan without each."""

    def text(binding: Binding) -> str:
        known = binding.text.startswith(binding.name)
        return binding.text if known else f"{binding.name}: {binding.text}"

    def without(binding: Binding) -> Cell:
        if binding.binds:
            return _other(problem, found, binding.without)
        proven = binding.without.proven
        return Cell("none is better" if proven else "nothing better was found (not proved)", Tone.SOFT)

    columns: list[Column[Binding]] = [
        Column("demand", Unit.TEXT, text),
        Column("binds", Unit.TEXT, lambda one: Cell("yes", Tone.WARN) if one.binds else "no"),
        Column("without it", Unit.TEXT, without),
    ]
    title = "Demands: the best plan without each"
    return table(title, columns, found.bindings, most=MOST_ROWS)


def _other(problem: Problem, found: Explanation, other: Alternative | None) -> Cell:
    """Return what another plan costs; what is no plan at all is set softly."""
    text = alternative_words(problem.formulation.terms, found, other)
    valid = other is not None and other.plan is not None and not other.reason
    return Cell(text, Tone.PLAIN if valid else Tone.SOFT)


def _plan(problem: Problem, other: Alternative) -> str | None:
    presenter = presenter_of(problem)
    return presenter.plan_text(other.plan) if presenter.short_plans and other.plan is not None else None

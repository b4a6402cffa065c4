"""Why this cut and not that unit: the explanation of a plan as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...answers.words import Terms, listed, term_name, term_value
from ...formulations.problem import Problem
from ..explaining.explanation import Alternative, Binding, CutReason, Explanation, UnitReason
from ..explaining.reasons import alternative_words, flight_rows, flight_words
from ..presenter import presenter_of
from .subject import Subject
from .table import Table, TableCell, TableColumn, columns, table

_MOST_ROWS = 60

_MOST_OPERATORS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Why a plan is as it is.

    `cuts`, `units`, `demands`, `sets`: what is otherwise with other cuts, units, demands or sets of units;
    `flight`: which period a number of requests in flight gives.
    """

    values: str  # values of the objective terms, in words
    proven: bool  # whether it is proved that no plan of the class is better
    looked: str  # among which plans, by whom and within what time the other plans were looked for
    cuts: Table
    units: Table
    demands: Table
    sets: Table
    flight: Table
    next_best: tuple[str, str]  # the next best plan, and what it costs
    left_out: str  # what there was no time to look at; may be empty


def reasoning(subject: Subject) -> Reasoning | None:
    """Return the explanation of a subject, or None."""
    known = subject.explanation
    if known is None:
        return None
    infos, name = subject.problem.formulation.terms, presenter_of(subject.problem).plan_name
    pairs = zip(known.terms, known.values, strict=True)
    other = known.next_best
    return Reasoning(
        values=", ".join(
            f"{term_name(infos, term)} {term_value(infos, term, value)}" for term, value in pairs
        ),
        proven=known.proven,
        looked=_looked(subject, known),
        cuts=_cuts(subject, known),
        units=_units(subject, known),
        demands=_demands(infos, known),
        sets=_sets(subject, known),
        flight=_flight(known),
        next_best=("" if other.plan is None else name(other.plan), _words(infos, known, other)),
        left_out="; ".join(known.left_out),
    )


def _looked(subject: Subject, known: Explanation) -> str:
    """Return what was searched here: the answers of a comparison come from searches of their own."""
    within = "" if known.limit_s is None else f" within {known.limit_s:g} s"
    words = f"Looked among {known.plan_class}, by {known.backend}{within}."
    if known.told_by:
        return (
            f"{words} The plans and proofs of {listed(known.told_by)} count here, too: the next best plan is "
            "the best other one that any of these searches met."
        )
    if subject.answers:
        words += " The answers of other backends on this page come from searches that are not known here."
    return words


def _words(infos: Terms, known: Explanation, other: Alternative | None) -> str:
    return alternative_words(infos, known, other)


def _cell(infos: Terms, known: Explanation, other: Alternative | None) -> TableCell:
    """Return what another plan costs; what is no plan at all is set softly."""
    valid = other is not None and other.plan is not None and not other.reason
    return TableCell(text=_words(infos, known, other), kind="text" if valid else "soft")


def _cuts(subject: Subject, known: Explanation) -> Table:
    infos = subject.problem.formulation.terms
    titles = columns(
        "cut", "between", TableColumn(title="one place earlier"), TableColumn(title="one place later")
    )
    rows = (
        (
            TableCell(text=_place(subject, cut), kind="name"),
            TableCell(text=f"{cut.before} | {cut.after}", kind="name"),
            _cell(infos, known, cut.earlier),
            _cell(infos, known, cut.later),
        )
        for cut in known.cuts
    )
    return table("Why the cuts are there", titles, rows, most=_MOST_ROWS)


def _place(subject: Subject, cut: CutReason) -> str:
    network = next(entry for entry in subject.problem.networks if entry.name == cut.network)
    words = f"after layer {cut.boundary - 1} ({network.layer_names[cut.boundary - 1]})"
    return f"{cut.request}: {words}" if cut.request else words


def _units(subject: Subject, known: Explanation) -> Table:
    titles = columns("unit", "used", "cannot run", "otherwise", "the other plan")
    rows = ((*_unit(reason), *_otherwise(subject.problem, known, reason.otherwise)) for reason in known.units)
    return table("Why these units: the best plan without a used one, with an unused one", titles, rows)


def _unit(reason: UnitReason) -> Iterator[TableCell]:
    yield TableCell(text=reason.unit, kind="name")
    no = f"no: shares cores with {listed(reason.excluded_by)}" if reason.excluded_by else "no"
    yield TableCell(text="yes" if reason.used else no, kind="good" if reason.used else "")
    yield TableCell(text=_unsupported(reason) or "-", kind="text" if reason.unsupported else "soft")


def _unsupported(reason: UnitReason) -> str:
    """Return the layers that a unit cannot run, with their operators."""
    count = len(reason.unsupported)
    if not count:
        return ""
    operators = list(dict.fromkeys(name for _, _, types in reason.unsupported for name in types))
    names = operators or [layer for _, layer, _ in reason.unsupported]
    shown = ", ".join(names[:_MOST_OPERATORS]) + (", ..." if len(names) > _MOST_OPERATORS else "")
    return f"{count} layer{'' if count == 1 else 's'}: {shown}"


def _otherwise(problem: Problem, known: Explanation, other: Alternative) -> Iterator[TableCell]:
    yield _cell(problem.formulation.terms, known, other)
    yield TableCell(
        text="-" if other.plan is None else presenter_of(problem).plan_name(other.plan), kind="code"
    )


def _sets(subject: Subject, known: Explanation) -> Table:
    titles = columns("units", "otherwise", "the other plan")
    rows = (
        (TableCell(text=reason.text, kind="name"), *_otherwise(subject.problem, known, reason.otherwise))
        for reason in known.sets
    )
    return table("What other sets of units would bring", titles, rows)


def _flight(known: Explanation) -> Table:
    """Return periods by requests in flight; no rows where nothing is defined."""
    titles = columns("requests in flight", TableColumn(title="period", number=True), "over the largest load")
    if known.flight is None:
        return table("", titles, ())
    return table(flight_words(known.flight), titles, flight_rows(known.flight))


def _demands(infos: Terms, known: Explanation) -> Table:
    titles = columns("demand", "what it asks", "binds", "the best plan without it")
    rows = (
        (
            TableCell(text=entry.name, kind="name"),
            TableCell(text=entry.text, kind="text"),
            TableCell(text="yes" if entry.binds else "no", kind="warn" if entry.binds else ""),
            _without(infos, known, entry),
        )
        for entry in known.bindings
    )
    return table("What rules, limits and the device demand, and what that costs", titles, rows)


def _without(infos: Terms, known: Explanation, entry: Binding) -> TableCell:
    if entry.binds:
        return _cell(infos, known, entry.without)
    proven = entry.without.proven
    return TableCell(text="no better" if proven else "nothing better was found (not proved)", kind="soft")

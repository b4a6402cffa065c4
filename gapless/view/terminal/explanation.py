"""Why a plan is as it is, for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...answers.words import MOST_NAMED, listed, seconds, term_name, term_value
from ...formulations.flight import Flight
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ..explaining.explanation import Alternative, Binding, CutReason, Explanation, UnitReason
from ..explaining.reasons import alternative_words, flight_rows, flight_words
from ..layout import indented, plain_table
from ..presenter import presenter_of
from .tables import title

MAX_ROWS_SHOWN = 40
_NAME_CELLS = 24


def explanation_view(problem: Problem, plan: Plan, explanation: Explanation) -> Group:
    """Return what `gapless explain` shows."""
    infos, presenter = problem.formulation.terms, presenter_of(problem)
    values = ", ".join(
        f"{term_name(infos, term)} {term_value(infos, term, value)}"
        for term, value in zip(explanation.terms, explanation.values, strict=True)
    )
    parts: list[RenderableType] = [
        title(problem),
        Text.assemble((presenter.plan_name(plan), "bold"), f" {values}"),
        "",
        Text(explanation.summary),
        "",
        *_section("cuts", "moved to the next legal place", _cuts(problem, explanation)),
        *_section(
            "units", "the best plan without a used unit, or with an unused one", _units(problem, explanation)
        ),
        *_section("demands", "the best plan without each", _bindings(problem, explanation)),
    ]
    parts += _section("sets of units", "the best plan on each", _sets(problem, explanation))
    if explanation.flight is not None:
        parts += _section("requests in flight", flight_words(explanation.flight), _paces(explanation.flight))
    other = explanation.next_best
    words = Text.assemble(("next best plan", "bold"), ": ", _words(problem, explanation, other))
    parts.append(words if other.plan is None else words.append(f"  {presenter.plan_name(other.plan)}"))
    if explanation.left_out:
        parts.append(Text(f"no time for: {'; '.join(explanation.left_out)}", style="yellow"))
    parts.append(Text(_looked_words(explanation), style="dim"))
    return Group(*parts)


def _looked_words(explanation: Explanation) -> str:
    """Return among which plans proofs hold, and how long the other plans were looked for."""
    about = f"looked among {explanation.plan_class}"
    taken, limit = f"{seconds(explanation.looked_s)} by {explanation.backend}", explanation.limit_s
    if limit is None:
        return f"{about}, for {taken}"
    return f"{about}, for {taken}, limit {limit:g} s; what is not proved may improve with more (--time-limit)"


def _section(name: str, what: str, table: Table) -> list[RenderableType]:
    if not table.row_count:
        return []
    return [Text.assemble((name, "bold"), f": {what}"), indented(table), ""]


def _cuts(problem: Problem, explanation: Explanation) -> Table:
    table = plain_table("cut", "between", "one earlier", "one later")
    for cut in explanation.cuts[:MAX_ROWS_SHOWN]:
        table.add_row(
            _place(problem, cut),
            f"{cut.before} | {cut.after}",
            _words(problem, explanation, cut.earlier),
            _words(problem, explanation, cut.later),
        )
    return _with_rest(table, len(explanation.cuts))


def _place(problem: Problem, cut: CutReason) -> str:
    network = next(known for known in problem.networks if known.name == cut.network)
    layer = network.layer_names[cut.boundary - 1]
    shown = layer if len(layer) <= _NAME_CELLS else f"{layer[:_NAME_CELLS]}..."
    words = f"after {cut.boundary - 1} ({shown})"
    return f"{cut.request} {words}" if cut.request else words


def _units(problem: Problem, explanation: Explanation) -> Table:
    plans = ("plan",) if presenter_of(problem).short_plans else ()
    table = plain_table("unit", "used", "cannot run", "otherwise", *plans)
    for reason in explanation.units[:MAX_ROWS_SHOWN]:
        other = reason.otherwise
        table.add_row(
            Text(reason.unit, style="bold"),
            "yes" if reason.used else _unused(reason),
            _unsupported(reason),
            _words(problem, explanation, other),
            *("-" if other.plan is None else presenter_of(problem).plan_text(other.plan) for _ in plans),
        )
    return _with_rest(table, len(explanation.units))


def _unused(reason: UnitReason) -> str:
    return f"no, shares cores with {listed(reason.excluded_by)}" if reason.excluded_by else "no"


def _unsupported(reason: UnitReason) -> str:
    """Return the operators that a unit cannot run; the layers, where operators are not known."""
    if not reason.unsupported:
        return "-"
    operators = dict.fromkeys(name for _, _, types in reason.unsupported for name in types)
    names = list(operators) or [layer for _, layer, _ in reason.unsupported]
    count = len(reason.unsupported)
    shown = listed(names[: MOST_NAMED + 1] if len(names) == MOST_NAMED + 1 else names)
    return f"{count} layer{'' if count == 1 else 's'}: {shown}"


def _sets(problem: Problem, explanation: Explanation) -> Table:
    presenter = presenter_of(problem)
    plans = ("plan",) if presenter.short_plans else ()
    table = plain_table("units", "the best plan", *plans)
    for reason in explanation.sets[:MAX_ROWS_SHOWN]:
        other = reason.otherwise
        table.add_row(
            Text(reason.text, style="bold"),
            _words(problem, explanation, other),
            *("-" if other.plan is None else presenter.plan_text(other.plan) for _ in plans),
        )
    return _with_rest(table, len(explanation.sets))


def _paces(flight: Flight) -> Table:
    table = plain_table("in flight", "period", "over the largest load", numbers=("period",))
    for row in flight_rows(flight):
        table.add_row(*row)
    return table


def _bindings(problem: Problem, explanation: Explanation) -> Table:
    table = plain_table("demand", "binds", "without it")
    for binding in explanation.bindings[:MAX_ROWS_SHOWN]:
        known = binding.text == binding.name or binding.text.startswith(binding.name)
        table.add_row(
            binding.text if known else f"{binding.name}: {binding.text}",
            Text("yes", style="yellow") if binding.binds else "no",
            _without(problem, explanation, binding),
        )
    return _with_rest(table, len(explanation.bindings))


def _without(problem: Problem, explanation: Explanation, binding: Binding) -> Text:
    if binding.binds:
        return _words(problem, explanation, binding.without)
    words = "none is better" if binding.without.proven else "nothing better was found (not proved)"
    return Text(words, style="dim")


def _words(problem: Problem, explanation: Explanation, other: Alternative | None) -> Text:
    text = alternative_words(problem.formulation.terms, explanation, other)
    valid = other is not None and other.plan is not None and not other.reason
    return Text(text, style="" if valid else "dim")


def _with_rest(table: Table, count: int) -> Table:
    if count > MAX_ROWS_SHOWN:
        table.add_row(f"... and {count - MAX_ROWS_SHOWN} more (--json shows all)")
    return table

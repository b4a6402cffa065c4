"""Answers for people: status, plans, comparisons, conflicts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...answers.comparing import comparison_blocks
from ...answers.words import (
    STATUS_STYLE,
    asked_words,
    millis,
    seconds,
    source_words,
    status_words,
    term_name,
    term_value,
    tier_legend,
    tier_words,
)
from ...api.comparison import Comparison
from ...formulations.history import History
from ...formulations.judge import check
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score, Violation
from ...solvers.protocol import RuleHandling, SolveStatus
from ...solvers.result import Candidate, Conflict, SolveResult
from ..layout import indented, plain_table
from ..presenter import presenter_of
from .blocks import blocks_view
from .gantt import titled_chart

MAX_PLANS_SHOWN = 50


def title(problem: Problem) -> Text:
    """Return one line that says what is asked."""
    networks, asked = asked_words(problem)
    return Text(networks, style="bold").append(asked, style="not bold")


def result_view(problem: Problem, result: SolveResult, notes: Sequence[str] = ()) -> Group:
    """Return what `gapless plan` shows; `notes`: what else is to be said of the plans."""
    parts: list[RenderableType] = [title(problem), _status_line(problem, result)]
    if handed := source_words(result):
        parts.append(Text(handed, style="dim"))
    if result.candidates:
        presenter = presenter_of(problem)
        legend = Text(presenter.legend(problem), style="dim")
        parts += ["", indented(_candidates(problem, result)), legend]
        if _tiers(result):
            parts.append(
                Text(
                    f"tier: {tier_legend(term_name(problem.formulation.terms, _ranked(result)))}", style="dim"
                )
            )
        if _apart(problem, result):
            parts.append(Text(f"differs by: {presenter.distance_words()}", style="dim"))
    parts += map(Text, notes)
    if result.handling and any(how is not RuleHandling.LOWERED for how in result.handling.values()):
        handled = ", ".join(f"{name} ({how})" for name, how in result.handling.items())
        parts.append(Text(f"rules: {handled}", style="dim"))
    parts += _conflict(problem, result)
    if result.status is SolveStatus.INFEASIBLE:
        parts += outside_view(problem)
    if result.best is not None:
        parts += ["", *best_plan(problem, result.best)]
    return Group(*parts)


def _status_line(problem: Problem, result: SolveResult) -> Text:
    text = Text(_status_name(result.status), style=STATUS_STYLE[result.status])
    text.append(f"  {status_words(problem.formulation.terms, result)}", style="not bold default")
    text.append(f"  [{result.label}, {seconds(result.runtime_s)}]", style="not bold dim")
    return text


def _status_name(status: SolveStatus) -> str:
    return "NO ANSWER" if status is SolveStatus.NO_SOLUTION else status.upper()


def _candidates(problem: Problem, result: SolveResult) -> Table:
    presenter, infos, asked = presenter_of(problem), problem.formulation.terms, result.asked.terms
    terms = (*asked, *(term for term in presenter.shown_terms(problem) if term not in asked))
    shown = result.candidates[:MAX_PLANS_SHOWN]
    rated = any(candidate.score.throughput is not None for candidate in shown)
    rate, apart = ("requests/s",) if rated else (), ("differs by",) if _apart(problem, result) else ()
    found, numbers = _tiers(result), (*(term_name(infos, term) for term in terms), *rate, *apart)
    tier = ("tier",) if found else ()
    table = plain_table("#", *tier, presenter.plan_title, *numbers, numbers=("#", *tier, *numbers))
    for rank, candidate in enumerate(shown, start=1):
        score = candidate.score
        table.add_row(
            str(rank),
            *(found[rank - 1] for _ in tier),
            presenter.plan_text(candidate.plan),
            *(term_value(infos, term, score.value(term)) for term in terms),
            *("-" if score.throughput is None else f"{score.throughput:,.1f}" for _ in rate),
            *(str(_distance(problem, candidate.plan, shown[0].plan)) for _ in apart),
            style="" if rank <= result.proven else "dim" if result.proven else "",
        )
    hidden = len(result.candidates) - MAX_PLANS_SHOWN
    if hidden > 0:
        table.add_row("", f"... and {hidden} more (--json shows all)")
    return table


def _ranked(result: SolveResult) -> str:
    """Return the term by which the plans are listed."""
    return result.asked.present_by or result.asked.terms[0]


def _tiers(result: SolveResult) -> tuple[str, ...]:
    """Return the tier of each plan, if that says anything."""
    return tier_words([candidate.score.value(_ranked(result)) for candidate in result.candidates])


def _apart(problem: Problem, result: SolveResult) -> bool:
    """Return whether plans were asked for that are far from each other."""
    return result.distance > 1 and problem.formulation.difference is not None


def _distance(problem: Problem, plan: Plan, other: Plan) -> int:
    difference = problem.formulation.difference
    assert difference is not None
    return difference.between(plan, other)


def best_plan(problem: Problem, best: Candidate) -> list[RenderableType]:
    """Return a plan in detail."""
    head = Text.assemble(("best plan", "bold"), f" (plan_id {best.plan.plan_id})")
    return [head, *presenter_of(problem).best_parts(problem, best.plan, best.score)]


def _conflict(problem: Problem, result: SolveResult) -> list[RenderableType]:
    if result.conflict is None:
        return []
    parts: list[RenderableType] = ["", *conflict_view(result.conflict)]
    if result.unfiltered is not None:
        text = Text.assemble("Without the limits the best plan is ", (str(result.unfiltered.plan), "bold"))
        values = result.unfiltered.score.values(result.asked.terms)
        for term, value in zip(result.asked.terms, values, strict=True):
            infos = problem.formulation.terms
            text.append(f", {term_name(infos, term)} {term_value(infos, term, value)}")
        broken = "; ".join(v.message for v in check(problem, result.unfiltered.plan))
        parts.append(text.append(f". It breaks: {broken}"))
    return parts


def outside_view(problem: Problem) -> list[RenderableType]:
    """Return what other plans there may be where it is proved that there is none of the class."""
    words = problem.formulation.outside(problem)
    return [Text(words)] if words else []


def conflict_view(conflict: Conflict) -> list[RenderableType]:
    """Return why there is no plan."""
    items = [Text(f"  - {item.text}  [{item.name}]") for item in conflict.items]
    if len(conflict.items) == 1:
        return [Text("There is no such plan because of this alone:"), *items]
    if not conflict.irreducible:
        more = "The time was not enough to find out which of them do already; give a longer limit."
        return [Text("These cannot all hold together:"), *items, Text(more)]
    smallest = "no smaller set of demands contradicts itself" if conflict.smallest else ""
    words = "Leave out any one of them, and these no longer contradict each other"
    return [
        Text("These cannot hold together:"),
        *items,
        Text(f"{words}{f'; {smallest}' if smallest else ''}. Confirmed by {conflict.confirmed_by}."),
    ]


def comparison_view(comparison: Comparison) -> Group:
    """Return what `gapless compare` shows."""
    problem, best = comparison.problem, comparison.best
    blocks = blocks_view(comparison_blocks(comparison), details=False)
    parts: list[RenderableType] = [title(problem), "", blocks]
    if best is not None and best.best is not None:
        return Group(*parts, "", *best_plan(problem, best.best))
    explained = next((result for result in comparison.results if result.conflict), None)
    infeasible = any(result.status is SolveStatus.INFEASIBLE for result in comparison.results)
    parts += _conflict(problem, explained) if explained else ()
    return Group(*parts, *(outside_view(problem) if infeasible else ()))


def check_view(problem: Problem, plan: Plan, score: Score | None, violations: Sequence[Violation]) -> Group:
    """Return what `gapless tools check` shows."""
    head = Text("VALID", style="bold green") if not violations else Text("VIOLATED", style="bold red")
    networks = ", ".join(network.name for network in problem.networks)
    head.append(f"  [{plan}] for {networks} on {problem.platform.name}", style="not bold default")
    parts: list[RenderableType] = [head, *map(_violation, violations)]
    if violations:
        parts.append(Text(f"Looked at are {problem.plan_class}.", style="dim"))
    if score is not None:
        table = plain_table("what", "value", numbers=("value",))
        infos = problem.formulation.terms
        for term in problem.known_terms:
            table.add_row(term_name(infos, term), term_value(infos, term, score.value(term)))
        parts += ["", indented(table), "", *presenter_of(problem).plan_parts(problem, plan, score)]
    return Group(*parts)


def _violation(violation: Violation) -> Text:
    known = violation.message.startswith(violation.rule)
    return Text(f"  - {violation.message}" if known else f"  - {violation.rule}: {violation.message}")


def simulation_view(problem: Problem, trace: History) -> Group:
    """Return what `gapless simulate` shows."""
    presenter = presenter_of(problem)
    table = plain_table("what", "value", numbers=("value",))
    for row in presenter.trace_rows(problem, trace):
        table.add_row(*row)
    parts = presenter.trace_parts(problem, trace)
    if presenter.is_one_round(problem):
        return Group(*parts, "", indented(table))
    for unit in trace.units:
        bubble = trace.bubble_us(unit)
        table.add_row(f"bubbles of {unit}", "not used" if bubble is None else millis(bubble))
    return Group(*titled_chart(trace, presenter.trace_title(trace)), *parts, "", indented(table))

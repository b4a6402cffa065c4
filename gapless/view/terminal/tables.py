"""Answers for people: status, plans, comparisons, conflicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from string import ascii_lowercase

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...answers.words import (
    SOURCES,
    STATUS_STYLE,
    gap,
    millis,
    objective_words,
    seconds,
    source_words,
    start_words,
    status_words,
    term_name,
    term_value,
    tier_legend,
    tier_words,
)
from ...api.comparison import BackendFailure, Comparison
from ...formulations.errors import BackendUnavailableError, UnsupportedFeatureError
from ...formulations.history import History
from ...formulations.judge import check
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score, Violation
from ...solvers.course import NEAR, credited, primal_gap
from ...solvers.protocol import RuleHandling, SolveStatus, StopReason
from ...solvers.result import Candidate, Conflict, Milestone, SolveResult
from ...solvers.sources import Source
from ..layout import indented, plain_table
from ..presenter import presenter_of
from .gantt import titled_chart

WIDTH = 24
"""Characters of a line."""

_LEVELS = ((0.0, "▁"), (NEAR, "▂"), (0.03, "▃"), (0.1, "▄"), (0.3, "▅"), (1.0, "▇"))
"""Most primal gap of each character; nothing stands where there is no plan."""

GIVEN = "·"
"""Stands where there is only a plan that the backend was given."""

_SHORTEST_S = 1e-4
"""Where lines begin at the earliest: their scale is logarithmic."""


def pace_view(comparison: Comparison) -> RenderableType | None:
    """Return how the plans of each backend got better; None: there was no plan, or nothing was kept."""
    best = comparison.best
    if best is None or best.objective is None or not any(result.course for result in comparison.results):
        return None
    times = ("first plan", "within 1 %", "primal integral")
    table = plain_table("backend", *times, "plans over time", numbers=times)
    start_s, end_s = span_of(comparison)
    for result in comparison.results:
        pace = comparison.pace(result)
        table.add_row(
            result.label,
            *(
                "-" if value is None else seconds(value)
                for value in (pace.first_plan_s, pace.near_best_s, pace.primal_integral_s)
            ),
            Text("".join(_line(result.course, best.objective, start_s, end_s)), no_wrap=True),
        )
    words = (
        f"times from when the backend was loaded; plans that it was given count from when it has proved them "
        "best; primal integral: area under the distance to the best plan here, until "
        f"{seconds(comparison.horizon_s)} (Berthold 2013); plans over time: from {seconds(start_s)} to "
        f"{seconds(end_s)}, logarithmic: ▁ the best, ▂ within 1 %, ▃ 3 %, ▄ 10 %, ▅ 30 %, ▇ worse, "
        "·: only what it was given, nothing: no plan"
    )
    return Group(indented(table), Text(words, style="dim"))


def span_of(comparison: Comparison) -> tuple[float, float]:
    """Return from when to when a logarithmic line of the courses of a comparison goes, in seconds."""
    times = [one.at_s for result in comparison.results for one in result.course if one.value is not None]
    start_s = max(_SHORTEST_S, min(times, default=_SHORTEST_S))
    return start_s, max(comparison.horizon_s, *times, 2 * start_s)


def _line(course: tuple[Milestone, ...], best: int, start_s: float, end_s: float) -> Iterator[str]:
    """Yield a character for what there was at the end of each part of the time."""
    for place in range(1, WIDTH + 1):
        # A hair later: the last one ends where the last plan came.
        at_s = start_s * math.exp(math.log(end_s / start_s) * place / WIDTH) * 1.000001
        had = [one for one in course if one.at_s <= at_s and one.value is not None]
        value = credited(had[-1]) if had else None
        gap = None if value is None else primal_gap(value, best)
        yield (
            GIVEN
            if had and gap is None
            else " "
            if gap is None
            else next(s for most, s in _LEVELS if gap <= most)
        )


MAX_PLANS_SHOWN = 50


def title(problem: Problem) -> Text:
    """Return one line that says what is asked."""
    platform, networks = problem.platform, ", ".join(network.name for network in problem.networks)
    layers = sum(len(network.layers) for network in problem.networks)
    text = Text(networks, style="bold")
    requests = problem.formulation.arrivals(problem)
    count = f"{len(requests)} requests, " if requests else ""
    text.append(
        f" on {platform.name}: {count}{layers} layers, {len(platform.units)} units; ", style="not bold"
    )
    text.append(objective_words(problem.formulation.terms, problem.objective), style="not bold")
    return text


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
    parts: list[RenderableType] = [title(problem), "", indented(_backends(comparison)), ""]
    parts += map(_failure_line, comparison.failures)
    parts += [Text(f"DISAGREEMENT  {text}", style="bold red") for text in comparison.disagreements]
    parts.append(_verdict(problem, comparison.results))
    first = term_name(problem.formulation.terms, problem.objective.terms[0])
    legend = (
        f"above: how much more {first} than the best plan here; gap: how far the plan may be from the "
        "optimum, by the bound that the row has itself; to best: "
        f"{_bound_words(comparison)}; loading: before the clock started; limit: what ended it"
    )
    if _sources_shown(comparison):
        legend += (
            "; plan by, bound by: who found the plan and proved the bound of the row: the backend itself, "
            "or native algorithms before it began (the start; it took that much of the time); (cold): "
            "without a start"
        )
    parts.append(Text(legend, style="dim"))
    parts += [Text(f"class {letter}: {words}.") for words, letter in _classes(comparison).items()]
    pace = pace_view(comparison)
    if pace is not None:
        parts += ["", pace]
    if best is None or best.best is None:
        explained = next((result for result in comparison.results if result.conflict), None)
        infeasible = any(result.status is SolveStatus.INFEASIBLE for result in comparison.results)
        parts += _conflict(problem, explained) if explained else ()
        return Group(*parts, *(outside_view(problem) if infeasible else ()))
    return Group(*parts, "", *best_plan(problem, best.best))


def _bound_words(comparison: Comparison) -> str:
    """Return what the gaps are gaps to."""
    infos, term = comparison.problem.formulation.terms, comparison.problem.objective.terms[0]
    bound = comparison.bound
    if bound is None:
        return "the same by the best bound, where one is proved"
    equal = [result for result in comparison.results if result.bound == bound]
    own = [result for result in equal if result.bound_source is not Source.START]
    provers = ", ".join(result.label for result in own) or f"the start of {equal[0].label}"
    return f"the same by the best bound here, {term_value(infos, term, bound)}, which {provers} proved"


def _classes(comparison: Comparison) -> dict[str, str]:
    """Return a letter for each part of the plans that some backend looks at alone, by its words."""
    words = dict.fromkeys(result.searches for result in comparison.results if result.searches)
    return dict(zip(words, ascii_lowercase, strict=False))


def _sources_shown(comparison: Comparison) -> bool:
    """Return whether a backend began with something, or was asked to do without."""
    return any(result.start is not None for result in comparison.results)


def _backends(comparison: Comparison) -> Table:
    infos, terms = comparison.problem.formulation.terms, comparison.problem.objective.terms
    names = [term_name(infos, term) for term in terms]
    several = any(len(result.candidates) > 1 for result in comparison.results)
    plans = ("plans",) if several else ()
    sources = ("plan by", "bound by", "start") if _sources_shown(comparison) else ()
    classes = _classes(comparison)
    kinds = ("class",) if classes else ()
    gaps, times = ("gap", "to best"), ("loading", "time", *plans)
    numbers = (*names, "above", *gaps, *times)
    table = plain_table(
        "backend", *kinds, "status", *names, "above", *gaps, *sources, *times, "limit", numbers=numbers
    )
    for result in comparison.results:
        values = result.values or (None,) * len(terms)
        above = comparison.above_best(result)
        table.add_row(
            result.label,
            *(classes.get(result.searches, "all") for _ in kinds),
            Text(_status_name(result.status), style=STATUS_STYLE[result.status]),
            *(term_value(infos, term, value) for term, value in zip(terms, values, strict=True)),
            "-" if above is None else f"{100 * above:.1f} %",
            *(gap(value) for value in (result.gap, comparison.gap_to_best_bound(result))),
            *(
                text
                for text in (
                    _who(result.plan_source),
                    _who(result.bound_source),
                    start_words(result.start, result.start_s),
                )
                if sources
            ),
            seconds(result.startup_s),
            seconds(result.runtime_s),
            *(str(len(result.candidates)) for _ in plans),
            "" if result.stop is StopReason.COMPLETE else result.stop.removesuffix("_limit"),
        )
    return table


def _who(source: Source | None) -> str:
    return "-" if source is None else SOURCES[source]


def _failure_line(failure: BackendFailure) -> Text:
    left_out = isinstance(failure.error, BackendUnavailableError | UnsupportedFeatureError)
    word, style = ("left out", "yellow") if left_out else ("FAILED", "bold red")
    text = Text(f"{failure.label} {word}: ", style=style)
    return text.append(str(failure.error), style="not bold default")


def _verdict(problem: Problem, results: Sequence[SolveResult]) -> Text:
    """Return who has a proof of what, and among which plans proofs and bounds hold."""
    proven = [r for r in results if r.status in (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE)]
    if not proven:
        about = f" Bounds are of {problem.plan_class}." if any(r.bound is not None for r in results) else ""
        return Text(f"No backend has a proof.{about}", style="yellow")
    names = ", ".join(result.label for result in proven)
    none = proven[0].status is SolveStatus.INFEASIBLE
    what = "that none is valid" if none else "the optimum" if len(proven) == 1 else "the same optimum"
    if len(proven) == 1:
        return Text(f"Proved by {names}: {what} among {problem.plan_class}.")
    return Text(f"{len(proven)} backends prove {what} among {problem.plan_class}: {names}.", style="green")


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

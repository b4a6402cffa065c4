"""Answers for people: status, plans, comparisons, conflicts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...api.planning import BackendFailure, Comparison
from ...formulations.chunking.distance import plan_distance
from ...formulations.errors import BackendUnavailableError, UnsupportedFeatureError
from ...formulations.flow_shop.tables import workload_in
from ...formulations.history import History
from ...formulations.judge import check
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.scores import Score, Violation
from ...formulations.simulate import simulate
from ...solvers.protocol import RuleHandling, SolveStatus, StopReason
from ...solvers.result import Candidate, Conflict, SolveResult
from ..words import (
    STATUS_STYLE,
    gap,
    millis,
    objective_words,
    percent,
    seconds,
    status_words,
    term_name,
    term_value,
)
from .gantt import gantt_view
from .layout import indented, plain_table
from .workloads import order_words, workload_plan_view, workload_trace_view

MAX_PLANS_SHOWN = 50
_BAR_CELLS = 24
_LEGEND = Text(
    "period: time between two outputs = busy time of the busiest unit; gapness: busiest minus least busy "
    "unit in use; latency: one request from entry to exit; bubbles: idle time of the units in use",
    style="dim",
)
_WORKLOAD_LEGEND = Text(
    "makespan: end of the last request; bubbles: idle time of the units between their first start and last "
    "end; contention: pairs of high-contention requests that are close in the order, weighted",
    style="dim",
)
_SHOWN_TERMS = ("period", "gapness", "latency", "bubbles")
_WORKLOAD_TERMS = ("makespan", "bubbles", "peak_memory", "contention")


def title(problem: Problem) -> Text:
    """Return one line that says what is asked."""
    platform, networks = problem.platform, ", ".join(network.name for network in problem.networks)
    layers = sum(len(network.layers) for network in problem.networks)
    text = Text(networks, style="bold")
    workload = workload_in(problem)
    count = "" if workload is None else f"{len(workload.requests)} requests, "
    text.append(
        f" on {platform.name}: {count}{layers} layers, {len(platform.units)} units; ", style="not bold"
    )
    text.append(objective_words(problem.objective), style="not bold")
    return text


def result_view(problem: Problem, result: SolveResult) -> Group:
    """Return what `gapless plan` shows."""
    parts: list[RenderableType] = [title(problem), _status_line(result)]
    if result.candidates:
        legend = _LEGEND if workload_in(problem) is None else _WORKLOAD_LEGEND
        parts += ["", indented(_candidates(problem, result)), legend]
        if result.distance > 1:
            parts.append(Text("differs by: layers on other units than in plan 1", style="dim"))
    if result.handling and any(how is not RuleHandling.LOWERED for how in result.handling.values()):
        handled = ", ".join(f"{name} ({how})" for name, how in result.handling.items())
        parts.append(Text(f"rules: {handled}", style="dim"))
    parts += _conflict(problem, result)
    if result.best is not None:
        parts += ["", *best_plan(problem, result.best)]
    return Group(*parts)


def _status_line(result: SolveResult) -> Text:
    text = Text(_status_name(result.status), style=STATUS_STYLE[result.status])
    text.append(f"  {status_words(result)}", style="not bold default")
    text.append(f"  [{result.backend}, {seconds(result.runtime_s)}]", style="not bold dim")
    return text


def _status_name(status: SolveStatus) -> str:
    return "NO ANSWER" if status is SolveStatus.NO_SOLUTION else status.upper()


def _candidates(problem: Problem, result: SolveResult) -> Table:
    shown = _SHOWN_TERMS if workload_in(problem) is None else _WORKLOAD_TERMS
    terms = (*result.asked.terms, *(term for term in shown if term not in result.asked.terms))
    names = [term_name(term) for term in terms]
    what = "plan" if workload_in(problem) is None else "order"
    apart = ("differs by",) if result.distance > 1 else ()
    numbers = (*names, "requests/s", *apart)
    table = plain_table("#", what, *numbers, numbers=("#", *numbers))
    for rank, candidate in enumerate(result.candidates[:MAX_PLANS_SHOWN], start=1):
        score = candidate.score
        table.add_row(
            str(rank),
            order_words(candidate.plan) if candidate.plan.order else str(candidate.plan),
            *(term_value(term, score.value(term)) for term in terms),
            f"{score.throughput:,.1f}",
            *(str(plan_distance(candidate.plan, result.candidates[0].plan)) for _ in apart),
            style="" if rank <= result.proven else "dim" if result.proven else "",
        )
    hidden = len(result.candidates) - MAX_PLANS_SHOWN
    if hidden > 0:
        table.add_row("", f"... and {hidden} more (--json shows all)")
    return table


def best_plan(problem: Problem, best: Candidate) -> list[RenderableType]:
    """Return the chunks of a plan with their share of the period, and the plan at work."""
    head = Text.assemble(("best plan", "bold"), f" (plan_id {best.plan.plan_id})")
    if workload_in(problem) is not None:
        return [head, *workload_plan_view(problem, best.plan, best.score)]
    requests = min(10, len(best.plan.chunks) + 3)
    trace = simulate(problem, best.plan, requests=requests)
    return [
        head,
        indented(_chunks(problem, best.plan, best.score)),
        "",
        *trace_view(trace),
    ]


def _chunks(problem: Problem, plan: Plan, score: Score) -> Table:
    names = problem.network.layer_names
    busy = dict(zip(problem.platform.unit_names, score.busy_us, strict=True))
    table = plain_table("unit", "layers", "busy time", "share of the period", "", numbers=("busy time", ""))
    for chunk in plan.chunks:
        time_us = busy[chunk.unit] or 0
        first, last = names[chunk.start], names[chunk.stop - 1]
        words = f"{chunk.start}-{chunk.stop - 1} ({first}{'' if first == last else f' to {last}'})"
        share = percent(1000 * time_us // score.period_us)
        table.add_row(chunk.unit, words, millis(time_us), _bar(time_us, score.period_us), share)
    unused = [unit for unit, time in busy.items() if time is None]
    if unused:
        table.add_row(", ".join(unused), "not used", style="dim")
    return table


def _bar(part: int, whole: int) -> Text:
    cells = max(1, part * _BAR_CELLS // whole)
    bar = Text("#" * cells, style="green" if part == whole else "cyan")
    return bar.append("-" * (_BAR_CELLS - cells), style="dim")


def trace_view(trace: History) -> list[RenderableType]:
    """Return a Gantt chart with its legend."""
    count = len(trace.arrivals_us)
    legend = f"simulation of {count} request{'' if count == 1 else 's'}"
    return [
        Text.assemble((legend, "bold"), ": each block is one request on one unit, dots are idle time"),
        gantt_view(trace),
    ]


def _conflict(problem: Problem, result: SolveResult) -> list[RenderableType]:
    if result.conflict is None:
        return []
    parts: list[RenderableType] = ["", *conflict_view(result.conflict)]
    if result.unfiltered is not None:
        text = Text.assemble("Without the limits the best plan is ", (str(result.unfiltered.plan), "bold"))
        values = result.unfiltered.score.values(result.asked.terms)
        for term, value in zip(result.asked.terms, values, strict=True):
            text.append(f", {term_name(term)} {term_value(term, value)}")
        broken = "; ".join(v.message for v in check(problem, result.unfiltered.plan))
        parts.append(text.append(f". It breaks: {broken}"))
    return parts


def conflict_view(conflict: Conflict) -> list[RenderableType]:
    """Return why there is no plan."""
    items = [Text(f"  - {item.text}  [{item.name}]") for item in conflict.items]
    if len(conflict.items) == 1:
        return [Text("There is no plan because of this alone:"), *items]
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
    parts.append(_verdict(comparison.results))
    first = term_name(problem.objective.terms[0])
    legend = (
        f"bound: proved, no plan has less {first}; gap: how far the plan may be from the best one in that"
    )
    parts.append(Text(legend, style="dim"))
    if best is None or best.best is None:
        explained = next((result for result in comparison.results if result.conflict), None)
        return Group(*parts, *(_conflict(problem, explained) if explained else ()))
    return Group(*parts, "", *best_plan(problem, best.best))


def _backends(comparison: Comparison) -> Table:
    terms = comparison.problem.objective.terms
    names = [term_name(term) for term in terms]
    table = plain_table(
        "backend",
        "status",
        *names,
        "bound",
        "gap",
        "time",
        "plans",
        "stopped by",
        numbers=(*names, "bound", "gap", "time", "plans"),
    )
    for result in comparison.results:
        values = result.values or (None,) * len(terms)
        table.add_row(
            result.backend,
            Text(_status_name(result.status), style=STATUS_STYLE[result.status]),
            *(term_value(term, value) for term, value in zip(terms, values, strict=True)),
            term_value(terms[0], result.bound),
            gap(result),
            seconds(result.runtime_s),
            str(len(result.candidates)),
            "" if result.stop is StopReason.COMPLETE else result.stop.replace("_", " "),
        )
    return table


def _failure_line(failure: BackendFailure) -> Text:
    left_out = isinstance(failure.error, BackendUnavailableError | UnsupportedFeatureError)
    word, style = ("left out", "yellow") if left_out else ("FAILED", "bold red")
    text = Text(f"{failure.backend} {word}: ", style=style)
    return text.append(str(failure.error), style="not bold default")


def _verdict(results: Sequence[SolveResult]) -> Text:
    proven = [r for r in results if r.status in (SolveStatus.OPTIMAL, SolveStatus.INFEASIBLE)]
    if not proven:
        return Text("No backend has a proof.", style="yellow")
    names = ", ".join(result.backend for result in proven)
    what = "that there is no plan" if proven[0].status is SolveStatus.INFEASIBLE else "the same optimum"
    if len(proven) == 1:
        what = "the optimum" if proven[0].status is SolveStatus.OPTIMAL else what
        return Text(f"Proved by {names}: {what}.")
    return Text(f"{len(proven)} backends prove {what}: {names}.", style="green")


def check_view(problem: Problem, plan: Plan, score: Score | None, violations: Sequence[Violation]) -> Group:
    """Return what `gapless check` shows."""
    head = Text("VALID", style="bold green") if not violations else Text("VIOLATED", style="bold red")
    networks = ", ".join(network.name for network in problem.networks)
    head.append(f"  [{plan}] for {networks} on {problem.platform.name}", style="not bold default")
    parts: list[RenderableType] = [head, *map(_violation, violations)]
    if score is not None:
        table = plain_table("what", "value", numbers=("value",))
        for term in problem.formulation.terms:
            table.add_row(term_name(term), term_value(term, score.value(term)))
        parts += ["", indented(table), ""]
        if workload_in(problem) is None:
            parts.append(indented(_chunks(problem, plan, score)))
        else:
            parts += workload_plan_view(problem, plan, score)
    return Group(*parts)


def _violation(violation: Violation) -> Text:
    known = violation.message.startswith(violation.rule)
    return Text(f"  - {violation.message}" if known else f"  - {violation.rule}: {violation.message}")


def simulation_view(problem: Problem, trace: History) -> Group:
    """Return what `gapless simulate` shows."""
    if workload_in(problem) is not None:
        return workload_trace_view(problem, trace)
    latencies = trace.latency_us
    table = plain_table("what", "value", numbers=("value",))
    table.add_row("makespan", millis(trace.makespan_us))
    table.add_row("time between the last two outputs", millis(trace.period_us))
    table.add_row("latency of the first request", millis(latencies[0]))
    table.add_row("latency of the last request", millis(latencies[-1]))
    for unit in trace.units:
        bubble = trace.bubble_us(unit)
        table.add_row(f"bubbles of {unit}", "not used" if bubble is None else millis(bubble))
    return Group(*trace_view(trace), "", indented(table))

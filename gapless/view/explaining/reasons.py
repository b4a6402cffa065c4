"""Why a plan is as it is, in words: what other plans cost, what units cannot do, the whole in brief."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...formulations.demands import SHARED_CORES
from ...formulations.flow_shop.tables import workload_in
from ...formulations.judge import score
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.simulate import simulate_workload
from ..words import capital, millis, percent, term_name, term_value
from .explanation import Alternative, Explanation
from .variants import placed_networks

MOST_NAMED = 3
"""Layers, units or demands that a sentence names; the others are counted."""


def difference_words(terms: Sequence[str], ours: Sequence[int], others: Sequence[int]) -> str:
    """Return how the values of another plan differ from ours: the first objective term that does.

    Parameters
    ----------
    terms
        The objective.
    ours, others
        Values of the explained plan, and of the other one.
    """
    for place, (term, mine, other) in enumerate(zip(terms, ours, others, strict=True)):
        if mine != other:
            equal = f"equal {term_name(terms[0])}, " if place else ""
            return f"{equal}{term_name(term)} {term_value(term, other)} ({_change(term, mine, other)})"
    return "as good"


def plan_words(plan: Plan) -> str:
    """Return a plan of one network in brackets; one for a workload is too long and gets its plan_id."""
    return f"[{plan}]" if not plan.order else f"plan {plan.plan_id}"


def _change(term: str, mine: int, other: int) -> str:
    """Return a difference with its sign: as a share, where there is a whole to take it of."""
    sign, apart = "+" if other > mine else "-", abs(other - mine)
    if term == "idle":
        return f"{sign}{apart / 10:.1f} points"
    return f"{sign}{_share(apart, mine) if mine else term_value(term, apart)}"


def alternative_words(terms: Sequence[str], ours: Sequence[int], other: Alternative | None) -> str:
    """Return what another plan costs, what it breaks, or why there is none; "-" for no question."""
    if other is None:
        return "-"
    if other.plan is None:
        return other.reason if other.proven else f"{other.reason} (not proved)"
    if other.reason:
        return other.reason
    assert other.values is not None
    words = difference_words(terms, ours, other.values)
    return words if other.proven else f"{words} (not proved best)"


def cannot_run(problem: Problem, network: str, layers: Iterable[int], unit: str) -> str:
    """Return which of some layers a unit cannot run, with their operators; "" if it can run them all."""
    column = problem.platform.unit_names.index(unit)
    rows = problem.costs.of(network).layer_us
    stuck = [layer for layer in layers if rows[layer][column] is None]
    return f"{unit!r} cannot run {_layers(problem, network, stuck)}" if stuck else ""


def only_here(problem: Problem, unit: str) -> str:
    """Return which layers no unit but this one can run; "" if there are none."""
    column = problem.platform.unit_names.index(unit)
    parts = []
    for network in placed_networks(problem):
        rows = problem.costs.of(network.name).layer_us
        sole = [
            index
            for index, row in enumerate(rows)
            if row[column] is not None and sum(time is not None for time in row) == 1
        ]
        if sole:
            parts.append(_layers(problem, network.name, sole))
    return f"only it can run {listed(parts)}" if parts else ""


def summary_of(problem: Problem, plan: Plan, explanation: Explanation) -> str:
    """Return who sets the pace, what limits it, and how good the plan is, in a few sentences."""
    pace = _stream_pace(problem, plan) if workload_in(problem) is None else _workload_pace(problem, plan)
    return " ".join([pace, *_limits(explanation), _standing(explanation)])


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence; of many, the first few and how many more."""
    if len(words) > MOST_NAMED:
        return f"{', '.join(words[:MOST_NAMED])} and {len(words) - MOST_NAMED} more"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _layers(problem: Problem, network: str, layers: Sequence[int]) -> str:
    known = next(entry for entry in problem.networks if entry.name == network).layers
    names = []
    for index in layers:
        operators = ", ".join(known[index].op_types[:MOST_NAMED])
        names.append(f"{known[index].name!r}{f' ({operators})' if operators else ''}")
    return listed(names)


def _share(part: int, whole: int) -> str:
    """Return a share in percent; small ones with as many places as they need."""
    value = 100 * part / whole
    if value >= 10_000:
        return f"{value / 100:,.0f} times"
    return f"{value:,.1f} %" if value >= 0.1 else f"{value:.2g} %"


def _stream_pace(problem: Problem, plan: Plan) -> str:
    """Return which unit sets the period, and how busy the others are."""
    judged = score(problem, plan)
    busy = {
        unit: time
        for unit, time in zip(problem.platform.unit_names, judged.busy_us, strict=True)
        if time is not None
    }
    period = judged.period_us
    busiest = [unit for unit, time in busy.items() if time == period]
    if problem.objective.first == "latency":
        return _ways(busy, judged.latency_us)
    shares = sorted(1000 * time // period for time in busy.values() if time < period)
    if len(busy) == 1:
        return f"Everything runs on {busiest[0]}, one request every {millis(period)}."
    verb = "set" if len(busiest) > 1 else "sets"
    words = f"{listed(busiest)} {verb} the pace with {millis(period)}"
    if not shares:
        return f"{words}: all units in use are equally busy."
    if len(shares) == 1:
        other = next(unit for unit, time in busy.items() if time < period)
        return f"{words}; {other} is busy for {percent(shares[0])} of that."
    return f"{words}; the other {len(shares)} units in use are busy for {_range(shares)} of that."


def _ways(busy: Mapping[str, int], latency_us: int) -> str:
    """Return where a request spends its time, the longest visit first."""
    if len(busy) == 1:
        return f"A request takes {millis(latency_us)}, all of it on {listed(list(busy))}."
    longest = sorted(busy, key=lambda unit: -busy[unit])
    parts = [f"{percent(round(1000 * busy[unit] / latency_us))} on {unit}" for unit in longest]
    return f"Of the {millis(latency_us)} that a request takes, it spends {listed(parts)}."


def _range(shares: Sequence[int]) -> str:
    low, high = percent(shares[0]), percent(shares[-1])
    return low if low == high else f"{low} to {high}"


def _workload_pace(problem: Problem, plan: Plan) -> str:
    """Return which request ends last, which unit works most, and what bubbles and slowdown take."""
    judged, trace = score(problem, plan), simulate_workload(problem, plan)
    last = max(trace.events, key=lambda event: event.end_ns)
    makespan = judged.makespan_us
    spent = {unit: sum(e.end_ns - e.start_ns for e in trace.on(unit)) // 1000 for unit in trace.units}
    busiest = max(spent, key=lambda unit: spent[unit])
    slowed = sum(event.slowdown_ns for event in trace.events) // 1000
    words = f"{trace.names[last.stream]} ends last, at {millis(makespan)} on {last.unit}; "
    words += f"{busiest} works most, {percent(1000 * spent[busiest] // makespan)} of that time"
    lost = [f"bubbles take {millis(judged.bubbles_us)}"] if judged.bubbles_us else []
    if slowed:
        work = sum(spent.values()) - slowed
        lost.append(
            f"slowdown {'' if lost else 'takes '}{millis(slowed)} ({_share(slowed, work)} of the work)"
        )
    return f"{words}. {capital(' and '.join(lost))} over all units." if lost else f"{words}."


def _limits(explanation: Explanation) -> list[str]:
    """Return what holds the plan back, the most expensive first."""
    terms = explanation.terms
    best = min(filter(None, (explanation.values, explanation.next_best.values)))
    found = []
    for entry in explanation.bindings:
        values = entry.without.values
        # What twice as many cores would bring is no advice; the table of demands has it.
        if entry.binds and entry.name != SHARED_CORES and values is not None and values < best:
            term, mine, other = next(
                each for each in zip(terms, best, values, strict=True) if each[1] != each[2]
            )
            found.append(
                (values, f"{entry.name} ({term_name(term)} {_change(term, mine, other)} without it)")
            )
    return [f"It is held back by {listed([words for _, words in sorted(found)])}."] if found else []


def _standing(explanation: Explanation) -> str:
    """Return how good the plan is, and what the next best one costs."""
    other, terms = explanation.next_best, explanation.terms
    if other.plan is not None and other.values is not None and other.values < explanation.values:
        words = difference_words(terms, explanation.values, other.values)
        return f"It is not the best plan: {plan_words(other.plan)} has {words}."
    known = "No plan is better (proved)" if explanation.proven else "No better plan was found (not proved)"
    if other.values is None:
        return f"{known}; {other.reason}."
    if other.values == explanation.values:
        return f"{known}; another one is as good."
    words = difference_words(terms, explanation.values, other.values)
    return f"{known}; the next best {'one' if other.proven else 'known one'} has {words}."

"""Why a plan is as it is, as data and in words: its cuts, its units, what binds it, the next best plans."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...answers.words import (
    MOST_NAMED,
    Terms,
    amount,
    counted,
    listed,
    millis,
    part_of,
    term_name,
    term_value,
)
from ...formulations.demands import SHARED_CORES
from ...formulations.flight import Flight
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.terms import Dimension, TermInfo
from ..presenter import presenter_of

TIME_LIMIT_S = 5.0
"""Seconds for all questions of an explanation, when nothing is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Another plan, compared with the explained one."""

    plan: Plan | None  # the other plan; None: there is none, `reason` says why
    values: tuple[int, ...] | None = None  # its values of the objective terms; None where it cannot be scored
    reason: str = ""
    """What it breaks (rule, limit, fact of the device), or why there is none; empty for a valid plan."""
    proven: bool = True
    """Whether it is proven that no plan of its kind, of `Explanation.plan_class`, has better values (or that
    there is none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutReason:
    """Why a cut is where it is."""

    network: str
    request: str
    """Which chain of layers; `request` is empty without a workload."""
    boundary: int  # the first layer after the cut
    before: str
    after: str
    """Names of the units on both sides."""
    earlier: Alternative | None
    later: Alternative | None
    """The same plan with this cut at the next legal boundary before or behind it; None where there is no such
    boundary inside both chunks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReason:
    """Why a unit is used, or why not."""

    unit: str  # its name
    used: bool  # whether the plan uses it
    unsupported: tuple[tuple[str, str, tuple[str, ...]], ...]
    """What it cannot run: (network, layer, operator types) for each such layer."""
    otherwise: Alternative
    """The best plan that does not use it (where it is used), or that uses it (where it is not)."""
    excluded_by: tuple[str, ...] = ()
    """Used units that share cores with it, so that it cannot be used beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One demand of the user or fact of the device, and the best plan without it."""

    name: str
    text: str
    """The rule, the limit, or what the device lacks (memory), and what it demands in words."""
    binds: bool
    """Whether the best plan without it is better than the best plan with it: then it costs that much."""
    without: Alternative  # the best plan without it; where nothing better is known, the best plan with it


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReason:
    """What another set of units would bring."""

    text: str  # which set, in words
    otherwise: Alternative  # the best plan on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a plan is as it is.

    Attributes
    ----------
    terms, values
        Objective terms, and the values of the explained plan.
    summary
        A few short sentences: which unit sets the pace (or which requests the makespan), and what limits it.
    cuts, units, bindings
        Details, in the order of the plan, the platform and the problem.
    sets
        What other sets of units would bring, where the formulation asks for them.
    next_best
        The best other plan. It is better than the explained plan where that is not an optimum.
    proven
        Whether it is proven that no plan of `plan_class` has better values than the explained one.
    plan_class
        Which plans were looked at, and all proofs are about (`Problem.plan_class`).
    left_out
        What there was no time to look at, in words.
    backend
        Who looked for the other plans, and proved what is proven.
    looked_s, limit_s
        Seconds that all questions took together, and how many they might take; None: as many as they need.
    told_by
        Whose earlier answers to this very problem were known: they may have brought up plans and proofs.
    flight
        Of a plan for one network in a stream: which period a number of requests in flight gives.
    """

    terms: tuple[str, ...]
    values: tuple[int, ...]
    summary: str
    cuts: tuple[CutReason, ...]
    units: tuple[UnitReason, ...]
    bindings: tuple[Binding, ...]
    next_best: Alternative
    proven: bool = False
    plan_class: str = ""
    sets: tuple[SetReason, ...] = ()
    left_out: tuple[str, ...] = ()
    backend: str = ""
    looked_s: float = field(default=0.0, compare=False)
    limit_s: float | None = None
    told_by: tuple[str, ...] = field(default=(), compare=False)
    flight: Flight | None = None


def difference_words(infos: Terms, terms: Sequence[str], ours: Sequence[int], others: Sequence[int]) -> str:
    """Return how the values of another plan differ from ours: the first objective term that does."""
    for place, (term, mine, other) in enumerate(zip(terms, ours, others, strict=True)):
        if mine != other:
            equal = f"equal {term_name(infos, terms[0])}, " if place else ""
            words = f"{term_name(infos, term)} {term_value(infos, term, other)}"
            return f"{equal}{words} ({_change(infos[term], mine, other)})"
    return "as good"


def _change(info: TermInfo, mine: int, other: int) -> str:
    """Return a difference with its sign: as a share, where there is a whole to take it of."""
    sign, apart = "+" if other > mine else "-", abs(other - mine)
    if info.dimension is Dimension.PERMILLE:
        return f"{sign}{apart / 10:.1f} points"
    return f"{sign}{part_of(apart, mine) if mine else amount(info.dimension, apart)}"


def alternative_words(infos: Terms, explanation: Explanation, other: Alternative | None) -> str:
    """Return what another plan costs, what it breaks, or why there is none; "-" for no question."""
    if other is None:
        return "-"
    if other.plan is None:
        return other.reason if other.proven else f"{other.reason} (not proved)"
    if other.reason:
        return other.reason
    assert other.values is not None
    words = difference_words(infos, explanation.terms, explanation.values, other.values)
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
    for network in problem.formulation.placed(problem):
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
    pace = presenter_of(problem).pace_words(problem, plan)
    words = [pace, *_limits(problem, explanation), _standing(problem, explanation)]
    return " ".join(filter(None, words))


def _layers(problem: Problem, network: str, layers: Sequence[int]) -> str:
    known = next(entry for entry in problem.networks if entry.name == network).layers
    names = []
    for index in layers:
        operators = ", ".join(known[index].op_types[:MOST_NAMED])
        names.append(f"{known[index].name!r}{f' ({operators})' if operators else ''}")
    return listed(names)


def flight_words(flight: Flight) -> str:
    """Return what the period needs, and what a longer one saves, if that pays."""
    found = (
        f"The period needs {counted(flight.in_flight, 'request')} in flight, each for "
        f"{millis(flight.latency_us)}."
    )
    calmer = flight.calmer
    if calmer is None:
        return found
    saved = round(100 * (1 - calmer.latency_us / flight.latency_us))
    longer = round(100 * (calmer.period_us / flight.period_us - 1))
    words = f"At {longer} % more period a request takes {saved} % less time"
    if calmer.in_flight == flight.in_flight:
        return f"{found} {words}."
    return (
        f"{found} {words}, and {calmer.in_flight} instead of {flight.in_flight} are in flight "
        f"(--task-slots {calmer.in_flight} of run and simulate)."
    )


def _limits(problem: Problem, explanation: Explanation) -> list[str]:
    """Return what holds the plan back, the most expensive first."""
    infos, terms = problem.formulation.terms, explanation.terms
    best = min(filter(None, (explanation.values, explanation.next_best.values)))
    found = []
    for entry in explanation.bindings:
        values = entry.without.values
        # What twice as many cores would bring is no advice; the table of demands has it.
        if entry.binds and entry.name != SHARED_CORES and values is not None and values < best:
            term, mine, other = next(
                each for each in zip(terms, best, values, strict=True) if each[1] != each[2]
            )
            words = f"{term_name(infos, term)} {_change(infos[term], mine, other)} without it"
            found.append((values, f"{entry.name} ({words})"))
    return [f"It is held back by {listed([words for _, words in sorted(found)])}."] if found else []


def _standing(problem: Problem, explanation: Explanation) -> str:
    """Return how good the plan is, and what the next best one costs."""
    infos, other, terms = problem.formulation.terms, explanation.next_best, explanation.terms
    if other.plan is not None and other.values is not None and other.values < explanation.values:
        words = difference_words(infos, terms, explanation.values, other.values)
        return f"It is not the best plan: {presenter_of(problem).plan_name(other.plan)} has {words}."
    proved = f"Proved: no valid one is better among {explanation.plan_class}"
    known = proved if explanation.proven else "No better plan was found (not proved)"
    if other.values is None:
        return f"{known}; {other.reason}."
    if other.values == explanation.values:
        return f"{known}; another one is as good."
    words = difference_words(infos, terms, explanation.values, other.values)
    return f"{known}; the next best {'one' if other.proven else 'known one'} has {words}."

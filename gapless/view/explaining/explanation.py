"""Why a plan is as it is, as data: its cuts, its units, what binds it, and the next best plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...formulations.flight import Flight
from ...formulations.plan import Plan

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

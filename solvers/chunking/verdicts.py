"""Finished plans: what can only be checked on them, and what a pool of them allows to claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...formulations.chain import Part
from ...formulations.chunking.tables import chain_of
from ...formulations.limits import limits_missed
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.rules import Rule
from ..protocol import Claim, RuleHandling, SolveOptions, SolveStatus, Statistics, StopReason
from .ranking import Pool


class Verdicts:
    """Asks every plan once, and counts how many opaque demands have turned down."""

    def __init__(self, problem: Problem, late: tuple[Rule, ...], most_rejections: int) -> None:
        self._problem, self._late, self._most = problem, late, most_rejections
        self._limited = not problem.opaque_demands.isdisjoint(problem.limits.in_use())
        self._known: dict[tuple[Part, ...], Plan | None] = {}
        self.rejected = 0

    @property
    def exhausted(self) -> bool:
        """Whether too many plans were turned down."""
        return self.rejected > self._most

    def ask(self, parts: tuple[Part, ...]) -> Plan | None:
        """Return the plan if it passes, else None."""
        if parts not in self._known:
            self._known[parts] = self._judge(parts)
        return self._known[parts]

    def refuses(self, parts: tuple[Part, ...]) -> bool:
        """Return whether a plan was asked and turned down."""
        return self._known.get(parts, parts) is None

    def _judge(self, parts: tuple[Part, ...]) -> Plan | None:
        problem = self._problem
        plan, opaque = chain_of(problem).plan(parts), problem.opaque_demands
        broken: set[str] = set()
        if self._late or self._limited:
            values = problem.formulation.numbers(problem, parts)
            broken = {rule.name for rule in self._late if not rule.holds(values)}
            broken |= {name for name, _, _ in limits_missed(problem.limits, values) if name in opaque}
        if broken <= opaque:  # the others are not counted
            broken |= {rule.name for rule in problem.opaque_rules if not broken and not rule.holds(plan)}
            self.rejected += bool(broken)
        return None if broken else plan


def claim_of(
    pool: Pool,
    listed: Sequence[tuple[Part, ...]],
    frontier: tuple[int, ...] | None,
    stop: StopReason,
    *,
    verdicts: Verdicts,
    problem: Problem,
    options: SolveOptions,
    handling: Mapping[str, RuleHandling],
    statistics: Statistics,
) -> Claim:
    """Return what a pool allows to claim.

    `listed`: the plans of the pool, best first; `frontier`: lower bound of the keys of all plans that were
    not examined; None: there are none outside the pool but worse ones.
    """
    known = len(pool) if frontier is None else pool.before(frontier)
    plans: list[Plan] = []
    columns: list[int] = []
    checked = 0
    while checked < len(pool) and len(plans) < options.top and not verdicts.exhausted:
        plan = verdicts.ask(listed[checked])
        if plan is not None:
            plans.append(plan)
            columns.append(checked)
        checked += 1
    if verdicts.exhausted and len(plans) < options.top:
        stop = StopReason.REJECTION_LIMIT
    proven = sum(column < known for column in columns)
    examined = frontier is None and stop is StopReason.COMPLETE
    exhausted = examined and checked == len(pool) and not pool.full
    first = columns[0] if columns else None
    terms = len(problem.objective.terms)
    return Claim(
        status=SolveStatus.of(found=bool(plans), proven=proven > 0, exhausted=exhausted),
        stop=stop,
        plans=tuple(plans),
        values=None if first is None else tuple(pool.ranks[:terms, first].tolist()),
        bound=_bound(pool, first, checked, frontier),
        proven=proven,
        exhausted=exhausted,
        handling=dict(handling),
        statistics={**statistics, "rejected_plans": verdicts.rejected},
    )


def nothing(handling: Mapping[str, RuleHandling]) -> Claim:
    """Return the claim that no plan keeps the rules."""
    return Claim(
        status=SolveStatus.INFEASIBLE, stop=StopReason.COMPLETE, exhausted=True, handling=dict(handling)
    )


def _bound(pool: Pool, first: int | None, checked: int, frontier: tuple[int, ...] | None) -> int | None:
    """Return the least first term of any valid plan: in the pool from `first` on, or at the frontier."""
    if frontier == ():
        return None
    outside = [] if frontier is None else [frontier[0]]
    column = checked if first is None else first
    inside = [int(pool.ranks[0, column])] if column < len(pool) else []
    return min(outside + inside, default=None)

"""What the program over sets of devices says about a problem as a whole: its optimum, or a bound.

It knows the period with sums before and after it, every limit on the set of devices, and limits on sums one
by one. Rules are known as far as they forbid chunks with groups, or limit a term. So its optimum is a bound
always, and the answer where the judge finds its plan valid (cooperation, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from ...formulations.cooperation.quantities import QUANTITIES
from ...formulations.cooperation.tables import groups_of
from ...formulations.expr import Const, Expr, IntVar, LessEq, variables
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ...formulations.terms import Quantity as Q
from ...formulations.terms import Term as T
from ..pipelines.arrays import NEVER, Ints
from ..protocol import Deadline
from .arrays import GroupArrays, build_arrays
from .branching import SUMS, Known, copies
from .kinds import Bools, Kinds, kinds_of
from .program import Cost, Line, Program, lexicographic


def caps_of(problem: Problem) -> dict[str, int]:
    """Return what limits, capacities and rules allow of terms at most, by name of the term."""
    limits, formulation = problem.limits, problem.formulation
    given = [
        (T.PERIOD, limits.max_period_us),
        (T.LATENCY, limits.max_latency_us),
        (T.DEVICES, limits.max_units),
        (T.PEAK_MEMORY, groups_of(problem).chain.device_memory),
    ]
    names = {field: name for name, field in formulation.fields.items()}
    for rule in problem.expression_rules:
        match rule.expr:
            case LessEq(left=IntVar(name=name), right=Const(value=value)) if name in names:
                given.append((T(names[name]), value))
    found: dict[str, int] = {}
    for term, most in given:
        if most is not None:
            found[term] = min(most, found.get(term, most))
    return found


def wanted_terms(problem: Problem, terms: tuple[str, ...]) -> set[str]:
    """Return the terms whose amounts a solve needs."""
    return {*terms, *caps_of(problem)}


def narrowed_arrays(problem: Problem, terms: set[str], deadline: Deadline) -> GroupArrays:
    """Return the tables of a problem, without what a rule forbids whatever else a plan has."""
    groups = groups_of(problem)
    kinds = Kinds(kinds_of(problem, groups))
    arrays = build_arrays(groups, kinds, terms, deadline)
    for rule in problem.expression_rules:
        _forbid(arrays, rule.expr, deadline)
    return arrays


_OF_GROUPS = {Q.ON, Q.USES, Q.TOGETHER, Q.SIZE}
"""Quantities that are told by the layers of a chunk and the devices of its group, whatever these take."""


def _forbid(arrays: GroupArrays, expr: Expr, deadline: Deadline) -> None:
    """Leave out the chunks with groups that no plan can have if an expression is to hold.

    Groups that are alike in size and in the devices that the expression names are looked at once.
    """
    named = [(QUANTITIES[name], args) for name, args in variables(expr)]
    layers, devices = (
        sorted({n for info, args in named for i, n in zip(info.indices, args, strict=True) if i.name == kind})
        for kind in ("layer", "device")
    )
    if not layers and not devices:
        return
    groups, kinds, cuts = arrays.groups, arrays.kinds, arrays.groups.chain.cuts
    members = kinds.counts[:, [kinds.of[device] for device in devices]]
    shapes = np.unique(np.column_stack([kinds.sizes, members]), axis=0, return_inverse=True)[1].ravel()
    by_time = not {info.name for info, _ in named} <= _OF_GROUPS
    verdicts: dict[object, bool] = {}
    for start, stop in np.argwhere(arrays.number >= 0).tolist():
        if deadline.passed:
            return
        row, (first, last) = arrays.number[start, stop], (cuts[start], cuts[stop])
        covered = tuple(first <= layer < last for layer in layers)
        for group in np.flatnonzero(arrays.compute_us[row] < NEVER).tolist():
            own = by_time and members[group].any()
            key = (row, group) if own else (covered, shapes[group])
            if key not in verdicts:
                known = Known(groups, ((first, last, kinds.devices(group)),), {})
                verdicts[key] = expr.bounds(known)[1] <= 0
            if verdicts[key]:
                arrays.compute_us[row, group] = NEVER


@dataclass(frozen=True)
class Found:
    """The optimum of the program."""

    line: Line  # its plan
    value: int  # the first term of the objective: no plan has less
    settled: int  # how many of the leading terms it is best by


class Optimum:
    """The optimum of a problem as the program knows it."""

    def __init__(self, problem: Problem, program: Program) -> None:
        self._problem, self._program = problem, program
        self._caps = caps_of(problem)
        self._most_us = self._caps.pop(T.PERIOD, NEVER - 1)
        self._idle_mw = sum(program.arrays.groups.idle_mw)
        if self._idle_mw:
            self._caps.pop(T.ENERGY, None)

    @cached_property
    def possible(self) -> Bools:
        """By set of devices whether a plan may use these and others, as far as they go together."""
        return self._program.kinds.valid(self._program.arrays.groups)

    @cached_property
    def allowed(self) -> Bools:
        """By set of devices whether a plan may use exactly these."""
        kinds, limits = self._program.kinds, self._problem.limits
        found = self.possible & (kinds.sizes >= (limits.min_units or 0))
        if T.DEVICES in self._caps:
            found &= kinds.sizes <= self._caps[T.DEVICES]
        return found

    def find(self) -> Found | None:
        """Return the optimum; None: there is no plan at all.

        Raises TimeIsUpError: the deadline of the program has passed.
        """
        terms = self._problem.objective.terms
        at = terms.index(T.PERIOD) if T.PERIOD in terms else len(terms)
        before, after = terms[:at], terms[at + 1 :]
        if self._idle_mw and T.ENERGY in before:
            before, after = before[: before.index(T.ENERGY)], ()
            at = len(terms)
        most_us, columns = self._most_us, list(before)
        if self._least(most_us)[0] >= NEVER or any(
            self._sum([term], most_us)[0] > cap for term, cap in self._caps.items()
        ):
            return None
        settled, value = len(before), None
        if at < len(terms) or not before:
            most_us = max([self._least_period(before), *map(self._least_capped, self._caps)])
            if not before:
                value = most_us if terms[0] == T.PERIOD else self._energy_bound(most_us)
            settled += at < len(terms)
            if at < len(terms):
                usable = [term for term in after if term in SUMS]
                columns += usable
                settled += len(usable)
        wanted = columns + [term for term in self._caps if term not in columns and term != T.DEVICES]
        line = self._sum(wanted, most_us)[1]
        while line is None:  # too many digits for one number
            wanted.pop()
            line = self._sum(wanted, most_us)[1]
        settled = min(settled, len(wanted) + (at < len(terms)))
        if value is None:
            value = self._sum([before[0]], self._most_us)[0]
        return Found(line, value, settled)

    def _energy_bound(self, least_us: int) -> int:
        return self._sum([T.ENERGY], self._most_us)[0] + self._idle_mw * least_us

    def _least(self, most_us: int) -> tuple[int, Line]:
        """Return the least period, and a plan with it."""
        cost = Cost(most_us=most_us)
        table = self._program.table(cost)
        costs = np.where(self.allowed, table[0].min(axis=0), NEVER)
        state = int(np.argmin(costs))
        if costs[state] >= NEVER:
            return NEVER, ()
        return int(costs[state]), self._program.line(table, state, cost)

    def _sum(self, columns: list[str], most_us: int) -> tuple[int, Line | None]:
        """Return the least sums, one after the other, as one number, and a plan; None: too many digits."""
        program = self._program
        if not columns:
            return self._least(most_us)
        amounts = [program.amount(term) for term in columns]
        sends = [
            program.sends_us[program.sends_us < NEVER].max(initial=0) if t == T.LATENCY else 0
            for t in columns
        ]
        chunks = min(program.arrays.last, len(program.kinds.of))
        usable = program.stage_us < NEVER
        mosts = [
            chunks * (int(amount[usable].max(initial=0)) + int(send))
            for amount, send in zip(amounts, sends, strict=True)
        ]
        low = min(int(amount[usable].min(initial=0)) for amount in amounts)
        if len(columns) == 1:
            combined, scale = amounts[0], int(columns[0] == T.LATENCY)
        else:
            together = None if low < 0 else lexicographic(amounts, mosts)
            if together is None:
                return NEVER, None
            combined, scale = together, 0
            if T.LATENCY in columns:
                scale = prod(most + 1 for most in mosts[columns.index(T.LATENCY) + 1 :])
        cost = Cost(combined, scale, most_us)
        table = program.table(cost)
        costs = np.where(self.allowed, table[0].min(axis=0), NEVER)
        state = int(np.argmin(costs))
        if costs[state] >= NEVER:
            return NEVER, ()
        return int(costs[state]), program.line(table, state, cost)

    def _least_period(self, before: tuple[str, ...]) -> int:
        """Return the least period of the plans that are best by some sums."""
        if not before:
            return self._least(self._most_us)[0]
        best = self._sum(list(before), self._most_us)
        if best[1] is None:
            return self._least(self._most_us)[0]
        return self._least_such(list(before), best[0])

    def _least_capped(self, term: str) -> int:
        """Return the least period of the plans that keep to a limit on a sum."""
        return self._least_such([term], self._caps[term])

    def _least_such(self, columns: list[str], most: int) -> int:
        """Return the least period of the plans whose sums are at most some number."""
        least = self._least(self._most_us)[0]
        stages = self._stages
        stages = stages[(stages >= least) & (stages <= self._most_us)]
        low, high = 0, len(stages) - 1
        while low < high:
            middle = (low + high) // 2
            if self._sum(columns, int(stages[middle]))[0] <= most:
                high = middle
            else:
                low = middle + 1
        return int(stages[low])

    @cached_property
    def _stages(self) -> Ints:
        """All stages that there can be."""
        program, number = self._program, self._program.arrays.number
        found = []
        for start, stop in np.argwhere(number >= 0).tolist():
            row = number[start, stop]
            sends = np.unique(program.sends_us[:, :, stop])
            found += [program.with_message(program.stage_us[row], int(n)) for n in sends[sends < NEVER]]
        stages = np.unique(np.concatenate(found))
        return stages[stages < NEVER]

    def settles(self, found: Found) -> bool:
        """Return whether its plan is best by all terms, as the judge confirms."""
        problem = self._problem
        numbers, broken = examined(problem, next(copies(self._program, found.line)))
        whole = found.settled == len(problem.objective.terms)
        return whole and not broken and numbers.term(problem.objective.terms[0]) == found.value

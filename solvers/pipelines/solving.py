"""From a problem of pipelines over devices to a claim.

1. `relaxed`: the programs over sets of devices find the best single pipeline on every set (`program`), and
   the best sum of rates (`packing`). That decides a problem whose objective and demands they know.
2. `search`: everything else is found by branch and bound over complete plans, with bounds from the programs.
   Every plan is judged, rules and limits included, so it is exact for all that can be asked.

With more sets of devices than fit, kinds are merged (`arrays.merged`), so that there are bounds still, and
plans to begin with come from parts of the devices (`large`); the search then goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

import numpy as np

from ...formulations.chain import Part
from ...formulations.expr import Expr, Interval, IntVar, Variable, variables
from ...formulations.judge import examined
from ...formulations.pipelines.plans import Pipes, whole_plans
from ...formulations.pipelines.tables import Cluster, cluster_of
from ...formulations.problem import Problem
from ...formulations.terms import Quantity as Q
from ...formulations.terms import Term
from ..branch_and_bound import BranchingSolve, Values
from ..families import Start, best_start
from ..protocol import Claim, Deadline, SolveOptions, StopReason, Support, TimeIsUpError
from .arrays import NEVER, KindArrays, build_arrays, merged
from .bounds import Bounds
from .large import Parts, highest, interval_bound
from .relaxed import Optimum, Relaxation, copies
from .search import Search

_OF_DEVICE = {Q.USES: 0, Q.ON: 1, Q.BUSY: 0, Q.MEMORY: 0}
"""Quantities that a single chunk says all about, and the place of the device in their indices."""


def narrowed(problem: Problem, deadline: Deadline) -> KindArrays:
    """Return arrays without chunks that some rule forbids whatever else runs; each device is a kind.

    Rules that do not name a device forbid no chunk here. At the deadline what is left stays allowed.
    """
    cluster = cluster_of(problem)
    arrays = build_arrays(cluster, tuple(range(cluster.device_count)))
    times, cuts = arrays.compute_us.copy(), arrays.cuts
    named = [(rule.expr, set(_devices(rule.expr))) for rule in problem.expression_rules]
    for device in range(cluster.device_count):
        rules = [expr for expr, devices in named if device in devices]
        for start, stop in np.argwhere(times[device] < NEVER).tolist() if rules else ():
            if deadline.passed:
                break
            known = _OneChunk(cluster, (cuts[start], cuts[stop], device))
            if any(expr.bounds(known)[1] <= 0 for expr in rules):
                times[device, start, stop] = NEVER
    return replace(arrays, compute_us=times)


def _devices(expr: Expr) -> Iterator[int]:
    """Yield the devices that an expression says something about."""
    return (args[_OF_DEVICE[Q(name)]] for name, args in variables(expr) if name in _OF_DEVICE)


class _OneChunk:
    """What is known of the quantities of every plan that has some chunk."""

    def __init__(self, cluster: Cluster, part: Part) -> None:
        self._cluster, self._part = cluster, part

    def __call__(self, variable: Variable) -> Interval:
        """Return the least and the greatest value that a quantity can take."""
        start, stop, device = self._part
        name, args = variable.name, variable.args
        single = self._cluster.most_pipelines == 1
        if name == Q.ON and single and start <= args[0] < stop and args[1] != device:
            return 0, 0
        if name in _OF_DEVICE and args[_OF_DEVICE[Q(name)]] == device:
            value = {
                Q.USES: 1,
                Q.ON: int(start <= args[0] < stop),
                Q.BUSY: self._cluster.compute_us(start, stop, device),
                Q.MEMORY: self._cluster.memory_bytes(start, stop),
            }[Q(name)]
            return value, value
        return 0, variable.high if isinstance(variable, IntVar) else 1


MOST_STATES, MOST_CELLS = 1 << 16, 110_000_000
"""Sets of devices, and entries of a table by set, kind and cut, that the programs take on as they are."""

_FEW_STATES, _FEW_CELLS, _LITTLE_WORK = 1 << 12, 6_000_000, 300_000_000
"""The same for bounds within the search, and on problems that are too large."""

_STEPS_PER_S = 500_000_000
"""Steps of the program in a second, cautiously; with a time limit it may take a part of it."""

_SHARE = 0.5
"""Part of the time that is left for what comes before the search."""


def solve_pipelines(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return the best plans of pipelines over devices (see `PipelineSolve`)."""
    return PipelineSolve(problem, options, support).run()


def _fits(arrays: KindArrays, limit_s: float | None) -> bool:
    """Return whether the programs can take on a problem as it is, in some time."""
    quick = limit_s is None or arrays.work <= _SHARE * limit_s * _STEPS_PER_S
    return quick and arrays.state_count <= MOST_STATES and arrays.cells <= MOST_CELLS


def _coarse(arrays: KindArrays, limit_s: float | None) -> KindArrays:
    """Return a relaxation with few sets of devices: the arrays themselves where they are few."""
    work = _LITTLE_WORK if limit_s is None else min(_LITTLE_WORK, int(limit_s * _STEPS_PER_S / 10))
    return merged(arrays, _FEW_STATES, _FEW_CELLS, work)


class Root:
    """What the programs say about a problem as a whole, within some time.

    `limit_s`: seconds for it, or None. If they are too few for the sets of devices there are, kinds are
    merged.
    """

    def __init__(self, problem: Problem, arrays: KindArrays, limit_s: float | None) -> None:
        self.relaxation: Relaxation | None = None  # the programs; None where even a small one was too much
        self.optimum: Optimum | None = None  # their best plan, None if there is no plan at all
        self._problem, self._arrays = problem, arrays
        self._deadline = Deadline(None if limit_s is None else _SHARE * limit_s)
        for fitting in self._sizes(limit_s):
            try:
                self.relaxation = self._relaxation(fitting)
                self.optimum = self.relaxation.optimum(problem.objective.terms)
                break
            except TimeIsUpError:
                self.relaxation = None
        self.infeasible = self.relaxation is not None and self.optimum is None  # whether that is so

    def _sizes(self, limit_s: float | None) -> Iterator[KindArrays]:
        if _fits(self._arrays, limit_s):
            yield self._arrays
        if limit_s is not None:
            self._deadline = Deadline(_SHARE * limit_s)
        coarse = _coarse(self._arrays, limit_s)
        if coarse is not self._arrays:
            yield coarse

    def _relaxation(self, arrays: KindArrays) -> Relaxation:
        limits = self._problem.limits
        return Relaxation(
            cluster_of(self._problem),
            arrays,
            exact=arrays is self._arrays,
            most_us=limits.max_period_us,
            most_devices=limits.max_units,
            deadline=self._deadline,
        )

    def for_search(self, limit_s: float | None) -> Relaxation | None:
        """Return programs that are small enough to bound branches with."""
        found = self.relaxation
        if found is None or (found.states.number <= _FEW_STATES and found.arrays.cells <= _FEW_CELLS):
            return found
        self._deadline = Deadline(None if limit_s is None else _SHARE * limit_s)
        return self._relaxation(_coarse(self._arrays, limit_s))

    @property
    def bound(self) -> int | None:
        """A lower bound on the first term of the objective, or None."""
        own = None if self.optimum is None else self.optimum.bound
        merged_kinds = self.relaxation is None or not self.relaxation.exact
        if merged_kinds and self._problem.objective.terms[0] == Term.THROUGHPUT:
            return highest((own, interval_bound(self._problem)))
        return own

    def settles(self, problem: Problem) -> bool:
        """Return whether the plan of the programs is best by all terms, and the judge confirms it."""
        best = self.optimum
        if best is None or best.pipes is None or best.settled < len(problem.objective.terms):
            return False
        numbers, broken = examined(problem, best.pipes)
        return not broken and numbers.term(problem.objective.terms[0]) == best.bound


class PipelineSolve(BranchingSolve[Pipes]):
    """One solve of one problem."""

    def run(self) -> Claim:
        """Solve."""
        problem, options = self._problem, self._options
        arrays = self._arrays()
        root = Root(problem, arrays, self._deadline.left_s)
        self._bound = root.bound
        self._sets = 0 if root.relaxation is None else root.relaxation.states.number
        if root.infeasible:
            return self._claim([], StopReason.COMPLETE, proven=0, exhausted=True)
        seeds = [root.optimum.pipes] if root.optimum and root.optimum.pipes else []
        if options.top == 1 and root.settles(problem):
            return self._claim(seeds, StopReason.COMPLETE, proven=1)
        more: Iterator[Pipes] = iter(())
        if root.relaxation is None or not root.relaxation.exact:
            share = self._deadline.share(_SHARE)
            more = Parts(problem, build_arrays(cluster_of(problem)), share, options.seed).plans()
        return self._search(arrays, self._bounds(root), chain(seeds, more))

    def _arrays(self) -> KindArrays:
        """Return the tables by kind; by device, without chunks that rules forbid, if there are few enough."""
        share = self._deadline.share(_SHARE)
        arrays = build_arrays(cluster_of(self._problem))
        if not self._problem.expression_rules:
            return arrays
        narrow = narrowed(self._problem, share)
        return narrow if _fits(narrow, self._deadline.left_s) else arrays

    def _bounds(self, root: Root) -> Bounds:
        terms = self._problem.objective.terms if self._options.top == 1 else self._problem.ranking
        cluster = cluster_of(self._problem)
        try:
            return Bounds(cluster, terms, root.for_search(self._deadline.left_s))
        except TimeIsUpError:
            return Bounds(cluster, terms, None)

    def _search(self, arrays: KindArrays, bounds: Bounds, seeds: Iterable[Pipes]) -> Claim:
        search = Search(
            self._problem,
            self._options,
            arrays,
            bounds,
            deadline=self._deadline,
            on_better=lambda: self._publish([kept.form for kept in search.kept]),
        )
        search.run(seeds)
        done = search.stop is StopReason.COMPLETE
        plans = [kept.form for kept in search.kept]
        exhausted = done and not search.dropped
        if search.alike and self._options.top > 1:
            every = chain.from_iterable(copies(code, arrays.kind_of) for code in plans)
            plans = list(islice(every, self._options.top + 1))
            exhausted &= len(plans) <= self._options.top
            plans = plans[: self._options.top]
        return self._claim(plans, search.stop, proven=len(plans) if done else 0, exhausted=exhausted)

    def _met(self, values: Values) -> bool:
        return len(values) == 1 and values[0] == self._bound


_START_SHARE = 0.3
"""Share of a time limit that the programs may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    With a time limit the first plan is there before any search: the network whole on one device.
    """
    cluster, limit_s, known = cluster_of(problem), options.time_limit_s, Start()
    if limit_s is not None:
        known = best_start(problem, whole_plans(cluster))
        yield known
    from .arrays import build_arrays

    root = Root(problem, build_arrays(cluster), None if limit_s is None else _START_SHARE * limit_s)
    if root.infeasible:
        yield known
        return
    best = None if root.optimum is None else root.optimum.pipes
    if best is None or examined(problem, best)[1]:
        best = known.code
    yield Start(code=best, at_least=root.bound)

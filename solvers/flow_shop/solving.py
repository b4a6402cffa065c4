"""From a problem with a workload to a claim, or to what exact searches start from.

Small spaces are walked whole, larger ones searched by `search.py`, which re-plans requests one at a time and
compares with lower bounds. Then `branch_and_price.py` looks for a proof, and makes the bound better, for up
to a dozen requests or so. A plan is said to be optimal only where it meets the bounds or there is a proof,
rules are checked rather than lowered, and the time limit is used up unless the bounds are met.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...formulations.flow_shop.quantities import needs_of
from ...formulations.flow_shop.tables import Cuts, FlowShop, Schedule, shop_of
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..exhaustive import MOST_WALKED, ExhaustiveBackend, count_plans
from ..families import Start
from ..protocol import Claim, Deadline, SolveOptions, SolveStatus, StopReason, Support
from ..rounds import Showing
from .measure import Key
from .search import JointSearch, Proof, best_schedule, objective_bound

MOST_BRANCHED = 10**10
"""In spaces of so many plans the local search ends after so many steps, and a proof is looked for."""

_EASY = 100
"""Cuts to place, counted by places, up to which exact backends are quick without a plan to start from."""

_BOUNDED = (Term.MAKESPAN, Term.LATENCY, Term.PERIOD)
"""Terms whose bounds are good."""

_SHARE = 0.1
"""Share of a time limit that the native bound, and the native search for a plan, may each take."""

_FIRST_S = 0.1
"""After this number of seconds of the native search its plan is shown, for whoever watches."""


def solve_flow_shop(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return good plans for a workload, and bounds (see `WorkloadSolve`)."""
    return WorkloadSolve(problem, options, support).run()


class WorkloadSolve:
    """One solve of one problem with a workload.

    The plans come from local search; it is an optimum, and said to be one, where every term of the
    objective meets a lower bound. Rules are checked on every proposal, which is dropped if it breaks one.
    """

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        self._problem, self._options = problem, options
        self._handling = support.handling(problem)
        self._showing = Showing(options)

    def run(self) -> Claim:
        """Solve."""
        plans = count_plans(self._problem)
        if plans <= MOST_WALKED:
            return ExhaustiveBackend().solve(self._problem, self._options)
        small = plans <= MOST_BRANCHED and self._options.top == 1
        self._search = JointSearch(
            self._problem,
            top=self._options.top,
            seed=self._options.seed,
            most_rejections=self._options.max_rejections,
            on_better=self._publish,
            deadline=Deadline(self._options.time_limit_s, self._options.clock),
            counted=small,
            proof=Proof.ALWAYS if small else Proof.PRICED,
        )
        if self._search.impossible:
            return self._denial()
        self._search.run()
        if self._search.proved and self._search.kept.best is None:
            return self._denial()
        if not self._search.contexts:
            return Claim(status=SolveStatus.NO_SOLUTION, stop=StopReason.SPACE_LIMIT, handling=self._handling)
        return self._claim(self._search.kept.schedules, self._search.stop())

    def _denial(self) -> Claim:
        """Return the claim that there is no plan."""
        return Claim(
            status=SolveStatus.INFEASIBLE, stop=StopReason.COMPLETE, exhausted=True, handling=self._handling
        )

    def _publish(self, key: Key, schedule: Schedule) -> None:
        """Show a better schedule."""
        self._showing.offer(lambda: self._claim([schedule], StopReason.TIME_LIMIT))

    def _claim(self, schedules: list[Schedule], stop: StopReason) -> Claim:
        """Return what some valid schedules, best first, allow to claim."""
        search = self._search
        best = search.kept.best
        values = None if best is None else best[1:]
        proven = values == search.bounds
        status = SolveStatus.OPTIMAL if proven else SolveStatus.FEASIBLE
        return Claim(
            status=status if values else SolveStatus.NO_SOLUTION,
            stop=StopReason.COMPLETE if proven else stop,
            plans=tuple(map(shop_of(self._problem).plan, schedules)),
            values=values,
            bound=search.bounds[0],
            proven=int(proven),
            handling=self._handling,
            statistics={"steps": search.steps},
        )


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    With a time limit the first plan is there at once. The native search takes a fixed number of steps, so
    that equal questions have equal answers, or ends after a share of the limit.
    """
    shop, limit_s, known = shop_of(problem), options.time_limit_s, Start()
    if limit_s is not None:
        known = Start(code=_whole(problem, shop))
        yield known
    if problem.objective.terms[0] in _BOUNDED:
        deadline = Deadline(None if limit_s is None else _SHARE * limit_s)
        known = replace(known, at_least=objective_bound(problem, deadline))
    yield known
    places = sum(len(shop.chains[chain].cuts) for chain in shop.chain_of) * (shop.unit_count - 1)
    if places > _EASY and needs_of(problem).clocks:
        share_s = None if limit_s is None else _SHARE * limit_s
        first = (_FIRST_S,) if share_s is not None and share_s > 2 * _FIRST_S else ()
        for seconds in (*first, share_s):
            proof = Proof.NEVER if seconds in first else Proof.PRICED
            found, bound = best_schedule(problem, time_limit_s=seconds, seed=options.seed, proof=proof)
            if known.at_least is not None:
                known = replace(known, at_least=max(bound, known.at_least))
            if found is not None and not examined(problem, found)[1]:
                known = replace(known, code=found)
                yield known


def _whole(problem: Problem, shop: FlowShop) -> Schedule | None:
    """Return a valid plan in which every request runs whole on one unit; None if a few of them are not."""
    order = tuple(range(shop.request_count))
    for units in (range(shop.unit_count), *([unit] for unit in range(shop.unit_count))):
        cuts = _level(shop, units)
        if cuts is not None and not examined(problem, Schedule(order, cuts))[1]:
            return Schedule(order, cuts)
    return None


def _level(shop: FlowShop, units: Sequence[int]) -> tuple[Cuts, ...] | None:
    """Return each request whole on the unit that is done with it first, or None if one cannot run so."""
    loads, cuts = [0] * shop.unit_count, []
    for request in range(shop.request_count):
        chain = shop.chain(request)
        whole = 0, chain.layer_count
        ends = [(loads[u] + chain.busy_us(*whole, u), u) for u in units if chain.runs(*whole, u)]
        if not ends:
            return None
        end, unit = min(ends)
        loads[unit] = end
        cuts.append((0,) * (unit + 1) + (chain.layer_count,) * (shop.unit_count - unit))
    return tuple(cuts)

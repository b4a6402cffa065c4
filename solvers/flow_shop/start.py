"""What exact searches start from: plans and a bound that are found quickly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...formulations.flow_shop.needs import needs_of
from ...formulations.flow_shop.quantities import FlowTerm
from ...formulations.flow_shop.tables import Cuts, FlowShop, Schedule, shop_of
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..families import Start
from ..protocol import Deadline, SolveOptions

_EASY = 100
"""Cuts to place, counted by places, up to which exact backends are quick without a plan to start from."""

_BOUNDED = (FlowTerm.MAKESPAN, FlowTerm.LATENCY, FlowTerm.PERIOD)
"""Terms whose bounds are good."""

_SHARE = 0.1
"""Share of a time limit that the native bound, and the native search for a plan, may each take."""


_FIRST_S = 0.1
"""After this number of seconds of the native search its plan is shown, for whoever watches."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: valid plans, and a lower bound on the first term.

    With a time limit the first plan is there before anything heavy is loaded. The native search takes a fixed
    number of steps, so that equal questions have equal answers, or ends after a share of the limit.
    """
    shop, limit_s, known = shop_of(problem), options.time_limit_s, Start()
    if limit_s is not None:
        known = Start(code=_whole(problem, shop))
        yield known
    from .search import Proof, best_schedule, objective_bound  # loads numpy

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

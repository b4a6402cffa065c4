"""What exact searches start from: the plan and the bound that the native search finds quickly."""

from __future__ import annotations

from ...formulations.flow_shop.needs import needs_of
from ...formulations.flow_shop.quantities import FlowTerm
from ...formulations.flow_shop.tables import shop_of
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..families import Start
from ..protocol import SolveOptions
from .bounds import makespan_bound
from .search import best_schedule

_EASY = 100
"""Cuts to place, counted by places, up to which exact backends are quick without a plan to start from."""

_UNHURRIED_S = 10.0
"""With a shorter limit the native search for a plan to start from is limited, too."""

_SHARE = 0.1
"""Share of a short limit that it may take."""


def start_of(problem: Problem, options: SolveOptions) -> Start:
    """Return what the native search knows: a valid plan, and a lower bound on the first term.

    Unless time is short the search takes a fixed number of steps: equal questions have equal answers.
    """
    shop, limit_s = shop_of(problem), options.time_limit_s
    least = makespan_bound(shop) if problem.objective.terms[0] == FlowTerm.MAKESPAN else None
    places = sum(len(shop.chains[chain].cuts) for chain in shop.chain_of) * (shop.unit_count - 1)
    if places <= _EASY or not needs_of(problem).clocks:
        return Start(at_least=least)
    hurried_s = None if limit_s is None or limit_s >= _UNHURRIED_S else _SHARE * limit_s
    found = best_schedule(problem, time_limit_s=hurried_s, seed=options.seed)
    if found is None or examined(problem, found)[1]:
        return Start(at_least=least)
    return Start(code=found, at_least=least)

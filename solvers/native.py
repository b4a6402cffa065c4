"""The backend `native`: exact lists of the best plans, without a third-party solver."""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ..formulations.availability import Availability
from ..formulations.problem import Problem
from .chunking.solving import ChainSolve
from .flow_shop.solving import WorkloadSolve
from .protocol import Capabilities, Claim, Guarantee, RuleHandling, SolveOptions, exact_capabilities


class NativeBackend:
    """Exact lists of the best plans of one network, in canonical order.

    The problem is BetterTogether's (section III-D): consecutive layers on one unit each, every unit
    at most once; with C(u, i, j) the busy time of the layers [i, j) on unit u,

        minimise lexicographically the terms over
        { (u_1, 0, j_1), (u_2, j_1, j_2), ..., (u_k, j_{k-1}, n) : the u are distinct }.

    A prefix of a plan is characterised, for all that can follow, by the set of used units and the
    boundary reached. That is a layered graph; here is how its best walks are found:

    1. `facts` draws from the rules what they forbid outright; `tables` lists the chunks that fit a
       window of busy times, `lattice` the sets of used units.
    2. `widening` bounds the first term and widens the bound until the best plans must be inside; on
       plateaus it settles the value and goes on with the next term; `boxes` turns bounds on plans
       into windows of chunks.
    3. `graph` builds the states and chunks of a window that lie on a walk, and completion tables.
    4. `search` makes all walks if they are few, and else dives, tightens and searches best first.

    Why it is exact: a box holds every plan up to its cap; the graph of a box holds every plan of the
    box (only what provably lies on no such plan is left out); every key bound is at most the key of
    every completion; and the path, the last part of the key, orders plans as the canonical order
    does. So what best-first search leaves unexpanded, and what lies beyond the cap, comes after the
    plans that are returned.

    The worst case is exponential in the number of units, O(2^units x units x chunks in the window)
    for each table; the number of prefixes expanded is about (plans wanted) x (units) when the tables
    are exact, which they are for the period followed by gapness, latency, memory, idle time or
    bubbles without rules that couple chunks.

    Problems with a workload have no such structure: small spaces are walked whole, larger ones searched
    by `workloads.search`, which re-plans requests one at a time and compares with lower bounds. There a
    plan is said to be optimal only where it meets the bounds, rules are checked rather than lowered, and
    the time limit is used up unless the bounds are met.
    """

    name: ClassVar[str] = "native"
    capabilities: ClassVar[Capabilities] = replace(
        exact_capabilities(
            "one network: exact best-first search, fastest; workloads: local search with lower bounds",
            isolated=False,
        ),
        workload_rules=RuleHandling.CHECKED,
        workload_guarantee=Guarantee.HEURISTIC,
    )

    def availability(self) -> Availability:
        """Say yes: numpy is a requirement of the package."""
        return Availability(ok=True, version=f"numpy {np.__version__}, Python {platform.python_version()}")

    def solve(self, problem: Problem, options: SolveOptions) -> Claim:
        """Find the best plans, or with a workload good ones and a bound."""
        if problem.workload is not None:
            return WorkloadSolve(problem, options).run()
        return ChainSolve(problem, options, self.capabilities).run()

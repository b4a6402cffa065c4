"""Search for the shortest makespan: one `ScheduleSearch` for each set of units that plans may use.

Its schedules are on a floating clock; the judge plays each again before it counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice

from ...formulations.jobs.tables import JobPlan, tables_of
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..protocol import LEAST_S, Clock, Deadline, Statistics
from ..rounds import RoundSearch
from .bounds import PassageTree, PriceBound, price_bound, windows_bound
from .dispatching import dispatched, ordered
from .fines import MOST_SETS, fine_of, unit_sets
from .instance import instance_of
from .pair_bound import PairBound
from .playing import Measure, measure_of
from .schedule_search import STEPS, ScheduleSearch
from .walk import Kept

_STEPS, _STEPS_PER_SECTION = 1_000, 300
"""Changes of small problems where no time is given."""

_MOST_DISPATCHED, _DISPATCHED_S = 50, 2.0
"""Most requests whose policies are asked, and seconds that there have to be: they take up to 0.2 s."""

_ORDERED_S, _ORDERED_SHARE = 0.2, 0.2
"""Seconds that there have to be for a search among plans that pass the units in one order, and its share of
the time."""

_OFFER_EVERY = 150
"""Changes between two plans that are handed to the judge."""

_BOUND_SHARE = 0.6
"""Share of the time after which the bound is not improved any more."""

_PAIR_SHARE, _PAIR_AFTER, _PAIR_S = 0.28, 0.3, 2.0
"""Share of the time that the bound of a pair of requests may take; after which share of it it is looked for;
and seconds that there have to be."""

_TREE_SHARE, _TREE_S, _TREE_PROGRAMS = 0.05, 0.5, 30
"""Share of the time that branching on passages may take, the most seconds, and the most linear programs where
no time is given: what it gains it gains soon."""

_SETS_SHARE = 0.5
"""Share of the time in which all sets of units are searched; the rest is for the best one."""


class MakespanSearch(RoundSearch[JobPlan]):
    """Better and better plans of one problem whose first term is the makespan.

    `fixed`: search by a number of changes, whatever time there is.
    """

    def __init__(self, problem: Problem, *, seed: int, most: int = 1, fixed: bool = False) -> None:
        super().__init__(problem, most=most)
        self._tables, self._seed = tables_of(problem), seed
        self._instance = instance_of(self._tables, range(self._tables.unit_count))
        alone_us = [cheapest[0] for n in self._instance.networks if (cheapest := n.alone)]
        self._possible = len(alone_us) == len(self._instance.networks)
        self._work_us = sum(alone_us[n] for n in self._instance.network_of) if self._possible else 0
        self._searches: list[ScheduleSearch] = []
        self._bounds: list[PriceBound | None] = []
        self._waiting: Kept | None = None
        self._offered = 0
        self._pair: PairBound | None = None
        self.least_by = "prices"  # what proves the bound
        sections = sum(map(self._tables.section_count, range(self._tables.request_count)))
        self._most_steps = min(STEPS, _STEPS + _STEPS_PER_SECTION * sections) if fixed else None

    @property
    def steps(self) -> int:
        """How many changes were tried."""
        return sum(search.steps for search in self._searches)

    @property
    def statistics(self) -> Statistics:
        """How many changes were tried, and what proves the bound."""
        return {"steps": self.steps, "bound_by": self.least_by}

    def begin(self, deadline: Deadline) -> None:
        """Take the first plans; after the deadline as few as will do."""
        if not self._possible:
            return
        fine = fine_of(self._problem, self._tables, self._work_us)
        scalar = self._scalar if len(self._problem.objective.terms) > 1 else None
        for units in islice(unit_sets(self._problem, self._tables), MOST_SETS):
            instance = instance_of(self._tables, units)
            search = ScheduleSearch(
                instance,
                seed=self._seed,
                deadline=deadline,
                steps=self._most_steps,
                fine=fine,
                scalar=scalar,
            )
            self._searches.append(search)
            for kept in search.begin():
                self._waiting = kept
                if not self.pool.codes:
                    self._offer()
            self._offer()
            if self.pool.codes and deadline.passed:
                return
        if self._tables.request_count <= _MOST_DISPATCHED and not deadline.within(_DISPATCHED_S):
            for code in dispatched(self._problem, self._tables):
                self._adopt(code)
        in_order = self._anywhere or bool(self._problem.rules)
        if deadline.left_s is not None and not deadline.within(_ORDERED_S) and in_order:
            for code in ordered(self._problem, self._tables, deadline.share(_ORDERED_SHARE)):
                if self._anywhere:
                    self._adopt(code)
                else:  # far from the best ones: to begin with it would mislead the search
                    self.pool.offer(code)

    @property
    def _anywhere(self) -> bool:
        """Whether every unit runs every network; where one cannot, plans in one order are far behind.

        That is so without rules: these may ask for what such plans have anyway.
        """
        units = range(self._instance.unit_count)
        networks = self._instance.networks
        return all(network.allows(((0, network.size, unit),)) for network in networks for unit in units)

    def _adopt(self, code: JobPlan) -> None:
        """Keep somebody else's plan, and let the search of all units begin with it if it is the best one."""
        if self.pool.offer(code) and self._searches:
            self._searches[0].adopt(code.order, code.parts)

    @cached_property
    def _measure(self) -> Measure:
        return measure_of(self._problem, self._tables)

    def _scalar(self, ends: Sequence[float], work: float) -> float:
        """Return the makespan with a little of the second term."""
        return self._measure.scalar([round(end) for end in ends], round(work))

    def bound(self, deadline: Deadline) -> int:
        """Return a lower bound on the makespan; the search goes by its prices from now on.

        It takes a share of the time at most.
        """
        if not self._possible:
            self.least = 0
            return 0
        deadline = deadline.share(_BOUND_SHARE)
        whole = price_bound(self._instance, deadline)
        self._bounds = [whole]
        if len(self._searches) > 1:
            self._bounds = [price_bound(search.instance, deadline) for search in self._searches]
        for search, own in zip(self._searches, self._bounds, strict=True):
            if own is not None and search.best is not None:
                search.use(own)
        least_us = 0 if whole is None else whole.bound_us
        windows_us = windows_bound(self._tables, deadline)
        if windows_us > least_us:
            least_us, self.least_by = windows_us, "windows"
        branched_us = self._branched(least_us, whole, deadline)
        if branched_us > least_us:
            least_us, self.least_by = branched_us, "branching"
        if whole is not None:
            self._pair = PairBound(self._instance, least_us, whole.prices)
        self.least = least_us
        return least_us

    def _branched(self, least_us: int, whole: PriceBound | None, deadline: Deadline) -> int:
        """Return the bound by branching on passages, as far as it comes soon."""
        if whole is None or not self.pool.codes or not PassageTree.applies(self._instance):
            return 0
        if self._best_us <= least_us:
            return 0
        tree, left_s = PassageTree(self._instance, whole.bound_us), deadline.left_s
        share = min(_TREE_SHARE, _TREE_S / left_s) if left_s else 1.0
        tree.improve(self._best_us, deadline.share(share), _TREE_PROGRAMS if self._most_steps else None)
        return tree.bound_us

    @property
    def _best_us(self) -> int:
        """The makespan of the best plan; there is one."""
        return self._problem.formulation.numbers(self._problem, self.pool.codes[0]).term(Term.MAKESPAN)

    def rounds(self, deadline: Deadline) -> Iterator[bool]:
        """Search until the time is up; say after each plan whether it, or the bound, is the best so far."""
        searches = [search for search in self._searches if search.best is not None]
        for number, search in enumerate(searches[1:] and searches):
            share = _SETS_SHARE / (len(searches) - number * _SETS_SHARE)
            search.within(deadline.share(share), self._share_of_steps(len(searches)))
            yield from self._searched(search)
        if searches:
            best = min(searches, key=lambda search: search.best.value if search.best else 0.0)
            yield from self._beside_pair(best, deadline)

    def _beside_pair(self, search: ScheduleSearch, deadline: Deadline) -> Iterator[bool]:
        """Search; look for the bound of a pair of requests meanwhile, if there is one and time for it."""
        left_s, pair = deadline.left_s, self._pair
        timed = left_s is not None and left_s >= _PAIR_S and self._most_steps is None
        if left_s is None or not timed or pair is None or pair.core is None:
            search.within(deadline.share(), self._most_steps)
            yield from self._searched(search)
            return
        pace, clock = _Pace(deadline, left_s), Clock(deadline.now)
        search.within(Deadline(left_s, Clock(pace.now)), self._most_steps)
        waiting = True
        for better in self._searched(search):
            yield better
            if waiting and search.spent >= _PAIR_AFTER and self.pool.codes:
                waiting = False
                with pace.held():
                    pair.improve(self._best_us, Deadline(_PAIR_SHARE * left_s, clock))
                if pair.bound_us > (self.least or 0):
                    names = [self._tables.chains[network].network for network in pair.core]
                    self.least, self.least_by = pair.bound_us, f"pair {', '.join(names)}"
                    yield True

    def _share_of_steps(self, parts: int) -> int | None:
        return None if self._most_steps is None else self._most_steps // parts

    def _searched(self, search: ScheduleSearch) -> Iterator[bool]:
        for kept in search.run():
            self._waiting = kept
            if search.steps - self._offered >= _OFFER_EVERY:
                self._offered = search.steps
                yield self._offer()
        self._offered = 0
        yield self._offer()

    def _offer(self) -> bool:
        """Hand what waits to the judge; return whether it is the best plan."""
        kept, self._waiting = self._waiting, None
        return kept is not None and self.pool.offer(self._tables.ordered(kept.order, kept.parts))


class _Pace:
    """The time of a search that stands still meanwhile, and goes by faster then, to end as it should."""

    def __init__(self, deadline: Deadline, left_s: float) -> None:
        self._deadline = deadline
        self._since_s = self._own_s = deadline.now()
        self._end_s, self._rate = self._since_s + left_s, 1.0

    def now(self) -> float:
        """Return seconds of the search that passed, from no point in particular."""
        return self._own_s + self._rate * (self._deadline.now() - self._since_s)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no time of the search pass in a block."""
        self._own_s = self.now()
        try:
            yield
        finally:
            self._since_s = self._deadline.now()
            left_s = max(self._end_s - self._since_s, LEAST_S)
            self._rate = (self._end_s - self._own_s) / left_s

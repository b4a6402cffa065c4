"""Search for the shortest makespan: passages of the bound, descents over them, annealing.

Search for schedules with a short makespan: passages of the bound, descents over them, annealing. The first
plan is there after some milliseconds. Then the bound gives prices, by which every part of a schedule that
loses time is seen, and passages. Annealing goes on in legs: from the best plan, from fresh descents, and from
the best plan again.

Search for the shortest makespan: one `ScheduleSearch` for each set of units that plans may use. Its schedules
are on a floating clock; the judge plays each again before it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from math import log
from random import Random

from ...formulations.jobs.tables import JobPlan, tables_of
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..protocol import LEAST_S, Clock, Deadline, Statistics
from ..rounds import RoundSearch
from .annealing import Measure, measure_of
from .bounds import PassageTree, PriceBound, price_bound, windows_bound
from .dispatching import dispatched, ordered
from .pair_bound import PairBound
from .passages import MOST_SETS, Fine, Instance, Passage, fine_of, instance_of, unit_sets
from .walk import Kept, Moves, Walk

_WARM, _COLD = 0.006, 0.0002
"""Temperatures at the beginning and at the end of a leg, as shares of the makespan it begins with."""

_LEGS = (0.06, 0.14, 0.14, 0.14, 0.52)
"""Share of the time of each leg. The first and the last begin with the best plan, the others with the best of
some fresh descents."""

_DESCENTS, _DESCENT_SHARE = 3, 0.3
"""Fresh descents before a leg, and the share of its time that they may take."""

_FRESH_SHARE = 0.25
"""Share of the time that the descents before the first leg may take."""

_FIRST_S, _FIRST_SHARE = 0.03, 0.2
"""Seconds, and share of the time, after which the first descent ends."""

_OTHERS = 4
"""What the other units cost where passages are wanted that like one unit."""

_RANKINGS, _RANKED = 6, 0.5
"""Where something can be broken: orders of requests that are tried on each unit alone, and the share of fresh
descents with one."""

_NEVER = 10_000
"""What a unit costs where passages without it are wanted."""

_DRAWN = 2.0
"""Mean place of the passage that a descent begins with, the cheapest first."""

_NEAR = 1.0001
"""A makespan up to this multiple of the bound is good enough."""

_ASK_EVERY = 16
"""Changes between two looks at the clock."""

STEPS = 20_000
"""Changes where no time is given."""


class ScheduleSearch:
    """One search on one set of units: a generator of better and better schedules.

    `deadline`, `steps`: when to stop: at a time, or after a number of changes. `fine`, `scalar`: as for
    `Walk`.
    """

    def __init__(
        self,
        instance: Instance,
        *,
        seed: int,
        deadline: Deadline,
        steps: int | None = None,
        fine: Fine | None = None,
        scalar: Callable[[Sequence[float], float], float] | None = None,
    ) -> None:
        self.instance, self.walk = instance, Walk(instance, fine=fine, scalar=scalar)
        self.steps, self._fined = 0, fine is not None
        self.best: Kept | None = None
        self._other: Kept | None = None
        self._random = Random(seed)
        self._pool = list(self._likings())
        self._moves = Moves(self.walk, self._random, self._pool)
        self._least = 0.0
        self._dealt: list[Passage] = []
        self.within(deadline, steps)

    def within(self, deadline: Deadline, steps: int | None) -> None:
        """Set when to stop, from now on."""
        self._deadline, self._limit_s = deadline, deadline.left_s
        self._first_step = self.steps
        self._most_steps = STEPS if steps is None and self._limit_s is None else steps

    @property
    def spent(self) -> float:
        """The share of the time, or of the steps, that is used up."""
        share = 0.0
        if self._most_steps is not None:
            share = (self.steps - self._first_step) / self._most_steps
        left_s = self._deadline.left_s
        if left_s is not None:
            share = max(share, 1 - left_s / self._limit_s if self._limit_s else 1.0)
        return share

    @property
    def done(self) -> bool:
        """Whether the best schedule is as good as the bound."""
        return self.best is not None and self.best.value <= _NEAR * self._least

    def _likings(self) -> Iterator[list[Passage]]:
        """Yield for each network its fastest passage, and one that likes each unit.

        Where rules may forbid units: also one without each unit, and one without all others.
        """
        units = range(self.instance.unit_count)
        for network in self.instance.networks:
            prices = [[1] * len(units)]
            prices += [[1 if unit == liked else _OTHERS for unit in units] for liked in units]
            if self._fined:
                prices += [[_NEVER if unit == left_out else 1 for unit in units] for left_out in units]
                prices += [[1 if unit == only else _NEVER for unit in units] for only in units]
            found = [cheapest[1] for own in prices if (cheapest := network.cheapest(own))]
            yield [passage for passage in dict.fromkeys(found) if network.allows(passage)]

    def begin(self) -> Iterator[Kept]:
        """Yield the first schedules: fastest passages, everything on one unit, and what a descent makes."""
        if not all(self._pool):
            return
        network_of, networks = self.instance.network_of, self.instance.networks
        yield from self._start([self._pool[network][0] for network in network_of])
        for unit in range(self.instance.unit_count):
            whole: list[Passage] = [((0, network.size, unit),) for network in networks]
            if all(network.allows(own) for network, own in zip(networks, whole, strict=True)):
                for ranks in (None, *self._rankings(_RANKINGS)):
                    yield from self._start([whole[network] for network in network_of], ranks)
        if self._most_steps is None and self._limit_s:
            until_s = min(_FIRST_S, _FIRST_SHARE * self._limit_s)
            fastest = [self._pool[network][0] for network in network_of]
            yield from self._descend(fastest, until_s / self._limit_s)

    def adopt(self, order: Sequence[int], parts: Sequence[Passage]) -> None:
        """Remember a schedule of somebody else, with which legs begin where descents found no better one."""
        for hold in (False, True):
            value = self.walk.follow(order, parts, hold=hold)
            if self._other is None or value < self._other.value:
                self._other = self.walk.keep()

    def use(self, bound: PriceBound) -> None:
        """Take in prices and passages of a bound."""
        prices = bound.prices.tolist()
        self._least = bound.bound_us
        for number, network in enumerate(self.instance.networks):
            known = dict.fromkeys((*bound.passages[number], *self._pool[number]))

            def cost(passage: Passage, number: int = number) -> float:
                times = self.instance.networks[number].times_us(passage)
                return float(sum(time * price for time, price in zip(times, prices[number], strict=True)))

            self._pool[number] = sorted(filter(network.allows, known), key=cost)
        self.walk.price(bound.prices)
        self._dealt = self._deal(bound)

    def _deal(self, bound: PriceBound) -> list[Passage]:
        """Return a passage for each request, so that those of a network have the shares of the bound."""
        found = [self._pool[network][0] for network in self.instance.network_of]
        for number, network in enumerate(self.instance.networks):
            pairs = zip(bound.passages[number], bound.shares[number].tolist(), strict=True)
            shares = [(passage, share) for passage, share in pairs if share > 0 and network.allows(passage)]
            owed, given = 0.0, 0
            total = sum(share for _, share in shares)
            requests = [request for request, own in enumerate(self.instance.network_of) if own == number]
            self._random.shuffle(requests)
            for passage, share in shares:
                owed += len(requests) * share / total
                for request in requests[given : round(owed)]:
                    found[request] = passage
                given = round(owed)
        return found

    def run(self) -> Iterator[Kept]:
        """Yield better schedules until the time is up, or the bound is reached."""
        if self.best is None:
            return
        first = self.spent
        until = first + _FRESH_SHARE * (1 - first)
        yield from self._descend(self._dealt, until)
        yield from self._fresh(until)
        if self._other is not None and self._other.value < self.best.value:
            self.best = self._other
            yield self.best
        begun, at = self.spent, 0.0
        for number, share in enumerate(_LEGS):
            at += share
            until = begun + (1 - begun) * at
            if 0 < number < len(_LEGS) - 1:
                yield from self._fresh(self.spent + _DESCENT_SHARE * (until - self.spent))
            else:
                self.walk.go_back(self.best)
            yield from self._leg(until)
            if self.done or self.spent >= 1:
                return
            if self._limit_s is not None:
                yield self.best  # a turn for whoever else works on this

    def _rankings(self, count: int) -> list[list[int]]:
        """Return some orders of the requests where rules may ask for one; none else."""
        ranks = list(self.walk.requests)
        return [self._random.sample(ranks, len(ranks)) for _ in range(count * self._fined)]

    def _start(self, passages: Sequence[Passage], ranks: Sequence[int] | None = None) -> Iterator[Kept]:
        self.walk.start(passages, ranks)
        if self._is_better():
            yield self._kept()

    def _is_better(self) -> bool:
        """Return whether the schedule is better than the best one."""
        return self.best is None or self.walk.value < self.best.value - 1e-6

    def _kept(self) -> Kept:
        """Keep the schedule, which is the best one."""
        self.best = self.walk.keep()
        return self.best

    def _fresh(self, until: float) -> Iterator[Kept]:
        """Descend from passages that are drawn, some times, and go to the best schedule of that."""
        found: Kept | None = None
        network_of = self.instance.network_of
        for _ in range(_DESCENTS):
            if self.spent >= until:
                break
            places = [int(self._random.expovariate(1 / _DRAWN)) for _ in network_of]
            pool = [self._pool[network] for network in network_of]
            chosen = [own[min(place, len(own) - 1)] for own, place in zip(pool, places, strict=True)]
            ranks = next(iter(self._rankings(self._random.random() < _RANKED)), None)
            yield from self._descend(chosen, until, ranks)
            if found is None or self.walk.value < found.value:
                found = self.walk.keep()
        if found is not None:
            self.walk.go_back(found)

    def _descend(
        self, passages: Sequence[Passage], until: float, ranks: Sequence[int] | None = None
    ) -> Iterator[Kept]:
        """Begin with some passages; give requests others of the pool while that helps."""
        walk, now = self.walk, list(passages)
        yield from self._start(now, ranks)
        order, improved = list(walk.requests), True
        while improved:
            improved = False
            self._random.shuffle(order)
            for request in order:
                for passage in self._pool[self.instance.network_of[request]]:
                    if passage != now[request] and walk.reroute(request, passage, walk.value - 1e-6):
                        now[request], improved = passage, True
                        if self._is_better():
                            yield self._kept()
                    self.steps += 1
                if self.spent >= until:
                    return

    def _leg(self, until: float) -> Iterator[Kept]:
        """Anneal until a share of the time is spent."""
        walk, random, draw, attempt = self.walk, self._random.random, self._moves.draw, self.walk.attempt
        begun, warm, steps = self.spent, _WARM * walk.value, 0
        temperature = warm
        while True:
            if steps % _ASK_EVERY == 0:
                self.steps += _ASK_EVERY
                spent = self.spent
                if spent >= until:
                    return
                temperature = warm * (_COLD / _WARM) ** ((spent - begun) / (until - begun))
            steps += 1
            changes = draw()
            if not changes or not attempt(changes, walk.value - temperature * log(1.0 - random())):
                continue
            if self._is_better():
                yield self._kept()
                if self.done:
                    return


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

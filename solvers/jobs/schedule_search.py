"""Search for schedules with a short makespan: passages of the bound, descents over them, annealing.

The first plan is there after some milliseconds. Then the bound gives prices, by which every part of a
schedule that loses time is seen, and passages. Annealing goes on in legs: from the best plan, from fresh
descents, and from the best plan again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import log
from random import Random

from ..protocol import Deadline
from .bounds import PriceBound
from .fines import Fine
from .instance import Instance
from .moves import Moves
from .passages import Passage
from .walk import Kept, Walk

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

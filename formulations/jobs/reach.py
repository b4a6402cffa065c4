"""How soon a request can reach each border of its sections, and what is left at least from there on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from .tables import Option, ScheduleTables

Window = tuple[int, tuple[tuple[int, Option], ...]]
"""Time before and behind all of some chunks of units that take turns, and these: each with its request."""

_MOST_PAIRS, _SPREAD = 10_000, 24
"""Where a unit has more pairs of heads and tails, windows are made of this number of each, evenly spread."""


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class Reach:
    """Heads and tails of requests that nothing waits for but each other."""

    tables: ScheduleTables  # the requests

    @cached_property
    def options(self) -> tuple[tuple[Option, ...], ...]:
        """The chunks that there can be and that fit their units, by kind of request."""
        tables = self.tables
        first = {chain: request for request, chain in reversed(list(enumerate(tables.chain_of)))}
        return tuple(
            tuple(option for option in options if tables.fits(first[chain], option.part))
            for chain, options in enumerate(tables.options)
        )

    def of(self, request: int) -> tuple[Option, ...]:
        """Return the chunks that a request can have."""
        return self.options[self.tables.chain_of[request]]

    @cached_property
    def _heads(self) -> tuple[list[list[int]], list[dict[int, int]], list[list[int | None]]]:
        """By request: what `first_us` says; the soonest end on the last unit; and what `head_us` says."""
        tables, firsts = self.tables, list[list[int]]()
        ends, heads = list[dict[int, int]](), list[list[int | None]]()
        for request, before in enumerate(tables.before):
            first, last = list(tables.entry_us[request]), tables.section_count(request)
            for other, square in before:
                for unit in range(tables.unit_count):
                    ready = min((end + square[u][unit] for u, end in ends[other].items()), default=0)
                    first[unit] = max(first[unit], ready)
            own, done = list[int | None]([None] * (last + 1)), dict[int, int]()
            for option in self.of(request):  # in the order of their starts
                begin = own[option.start] if option.start else first[option.unit]
                if begin is not None:
                    for border, soon in ((option.start, begin), (option.stop, begin + option.time_us)):
                        known = own[border]
                        own[border] = soon if known is None else min(soon, known)
                    if option.stop == last:
                        soon = begin + option.time_us
                        done[option.unit] = min(soon, done.get(option.unit, soon))
            firsts.append(first)
            ends.append(done)
            heads.append(own)
        return firsts, ends, heads

    @property
    def first_us(self) -> list[list[int]]:
        """By request and unit: before when its first chunk cannot start there."""
        return self._heads[0]

    @cached_property
    def head_us(self) -> tuple[tuple[int, ...], ...] | None:
        """By request and border: before when it cannot be there; None: some request cannot run at all."""
        found: list[tuple[int, ...]] = []
        for heads in self._heads[2]:
            if heads[0] is None or heads[-1] is None:
                return None
            # Where no chunk can end, none begins: the time before serves.
            known = [heads[0]]
            for head in heads[1:]:
                known.append(known[-1] if head is None else head)
            found.append(tuple(known))
        return tuple(found)

    @cached_property
    def _tails(self) -> tuple[list[list[int]], list[tuple[int, ...]]]:
        """By request: what `rest_us` says, and what `tail_us` says."""
        tables = self.tables
        rests: list[list[int]] = [[*own] for own in tables.exit_us]
        found: list[tuple[int, ...]] = [()] * tables.request_count
        for request in reversed(range(tables.request_count)):
            last, rest = tables.section_count(request), rests[request]
            tails, begins = list[int | None]([None] * (last + 1)), dict[int, int]()
            for option in reversed(self.of(request)):
                left = rest[option.unit] if option.stop == last else tails[option.stop]
                if left is not None:
                    for border, more in ((option.stop, left), (option.start, left + option.time_us)):
                        known = tails[border]
                        tails[border] = more if known is None else min(more, known)
                    if option.start == 0:
                        more = left + option.time_us
                        begins[option.unit] = min(more, begins.get(option.unit, more))
            following = 0
            for border in reversed(range(last + 1)):
                following = tails[border] = following if (own := tails[border]) is None else own
            found[request] = tuple(tail for tail in tails if tail is not None)
            for other, square in tables.before[request]:
                for unit in range(tables.unit_count):
                    more = min((left + square[unit][v] for v, left in begins.items()), default=0)
                    rests[other][unit] = max(rests[other][unit], more)
        return rests, found

    @property
    def rest_us(self) -> list[list[int]]:
        """By request and unit: what it leaves at least when its last chunk ends there."""
        return self._tails[0]

    @property
    def tail_us(self) -> list[tuple[int, ...]]:
        """By request and border: what it and those that wait for it take from there on at least.

        Where no chunk begins, what the next border says.
        """
        return self._tails[1]

    def through_us(self, request: int, option: Option) -> int:
        """Return the least makespan of plans with a chunk, as far as heads and tails tell."""
        assert self.head_us is not None
        head_us, tail_us = self.head_us[request][option.start], self.tail_us[request][option.stop]
        if option.start == 0:
            head_us = self.first_us[request][option.unit]
        if option.stop == self.tables.section_count(request):
            tail_us = self.rest_us[request][option.unit]
        return head_us + option.time_us + tail_us

    @cached_property
    def longest_us(self) -> int:
        """A lower bound on every makespan: the longest that a request, and what waits for it, takes."""
        pairs = zip(self._heads[1], self.rest_us, strict=True)
        whole = (min((end + rest[unit] for unit, end in ends.items()), default=0) for ends, rest in pairs)
        return max(whole, default=0)

    def windows(
        self,
        requests: Iterable[int],
        least_us: int,
        most: int | None = None,
        enough: Callable[[], bool] = lambda: False,
    ) -> Iterator[list[Window]]:
        """Yield for each set of units that take turns what chunks with late heads and long tails have around.

        On such units, chunks that cannot begin before h and have at least q behind them take makespan - h - q
        at most: if there are any. Where h + q is at most a lower bound on the makespan it holds always.

        `most`: most heads and tails; None: all, or of very many pairs some. `enough`: whether those found by
        now will do: there are many of hundreds of requests.
        """
        assert self.head_us is not None
        asked = list(requests)
        for units in self.tables.turns:
            works: dict[tuple[int, int], list[tuple[int, Option]]] = defaultdict(list)
            for request in asked:
                begins, rests = self.head_us[request], self.tail_us[request]
                for option in self.of(request):
                    if option.unit in units:
                        works[begins[option.start], rests[option.stop]].append((request, option))
            found: dict[tuple[tuple[int, Option], ...], int] = {}
            heads, tails = ({times[side] for times in works} for side in range(2))
            if most is not None or len(heads) * len(tails) > _MOST_PAIRS:
                heads, tails = _spread(heads, most or _SPREAD), _spread(tails, most or _SPREAD)
            for head in heads:
                if enough():
                    break
                for tail in tails:
                    inside = tuple(
                        work
                        for (begin, rest), own in works.items()
                        if begin >= head and rest >= tail
                        for work in own
                    )
                    if inside and head + tail <= least_us:
                        found[inside] = max(head + tail, found.get(inside, 0))
            yield [(around_us, inside) for inside, around_us in found.items()]


def _spread(times: set[int], most: int) -> set[int]:
    """Return some times, evenly spread, the first among them."""
    found = sorted(times)
    return set(found[:: max(1, -(-len(found) // most))])

"""How soon a request can reach each border of its sections, and what is left at least from there on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from .tables import JobTables, Option

Window = tuple[int, tuple[tuple[int, Option], ...]]
"""Time before and behind all of some chunks of a unit, and these: each with its request."""

_MOST_PAIRS, _SPREAD = 10_000, 24
"""Where a unit has more pairs of heads and tails, windows are made of this number of each, evenly spread."""


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class Reach:
    """Heads and tails of requests that nothing waits for but each other."""

    tables: JobTables  # the requests

    @cached_property
    def options(self) -> tuple[tuple[Option, ...], ...]:
        """The chunks that a network can have and that fit their units, by index of the chain."""
        tables = self.tables
        first = [tables.chain_of.index(chain) for chain in range(len(tables.chains))]
        return tuple(
            tuple(option for option in options if tables.fits(request, option.part))
            for request, options in zip(first, tables.options, strict=True)
        )

    def of(self, request: int) -> tuple[Option, ...]:
        """Return the chunks that a request can have."""
        return self.options[self.tables.chain_of[request]]

    @cached_property
    def head_us(self) -> tuple[tuple[int, ...], ...] | None:
        """By request and border: before when it cannot be there; None: some request cannot run at all."""
        found: list[tuple[int, ...]] = []
        for request, wanted in enumerate(self.tables.jobs.requests):
            begin_us = max([wanted.release_us, *(found[other][-1] for other in self.tables.after[request])])
            heads: list[int | None] = [begin_us] + [None] * self.tables.section_count(request)
            for option in self.of(request):  # in the order of their starts
                begin, end = heads[option.start], heads[option.stop]
                if begin is not None:
                    soon = begin + option.time_us
                    heads[option.stop] = soon if end is None else min(soon, end)
            if heads[-1] is None:
                return None
            # Where no chunk can end, none begins: the time before serves.
            known = [heads[0]]
            for head in heads[1:]:
                known.append(known[-1] if head is None else head)
            found.append(tuple(time for time in known if time is not None))
        return tuple(found)

    @cached_property
    def tail_us(self) -> tuple[tuple[int, ...], ...]:
        """By request and border: what it and those that wait for it take from there on at least.

        Where no chunk begins, what the next border says.
        """
        tables = self.tables
        found: list[tuple[int, ...]] = [()] * tables.request_count
        for request in reversed(range(tables.request_count)):
            last = max((found[follower][0] for follower in tables.followers[request]), default=0)
            count = tables.section_count(request)
            tails: list[int | None] = [None] * count + [last]
            for option in reversed(self.of(request)):
                rest, own = tails[option.stop], tails[option.start]
                if rest is not None:
                    left = rest + option.time_us
                    tails[option.start] = left if own is None else min(left, own)
            for border in reversed(range(count)):
                if tails[border] is None:
                    tails[border] = tails[border + 1]
            found[request] = tuple(tail for tail in tails if tail is not None)
        return tuple(found)

    @cached_property
    def longest_us(self) -> int:
        """A lower bound on every makespan: the longest that a request, and what waits for it, takes."""
        pairs = zip(self.head_us or (), self.tail_us, strict=False)
        return max((heads[-1] + tails[-1] for heads, tails in pairs), default=0)

    def windows(
        self, requests: Iterable[int], least_us: int, enough: Callable[[], bool] = lambda: False
    ) -> Iterator[list[Window]]:
        """Yield for each unit what its chunks with late heads and long tails have around them.

        On one unit, chunks that cannot begin before h and have at least q behind them take makespan - h - q
        at most: if there are any. Where h + q is at most a lower bound on the makespan it holds always.

        `enough`: whether those found by now will do: there are many of hundreds of requests.
        """
        assert self.head_us is not None
        asked = list(requests)
        for unit in range(self.tables.unit_count):
            works: dict[tuple[int, int], list[tuple[int, Option]]] = defaultdict(list)
            for request in asked:
                begins, rests = self.head_us[request], self.tail_us[request]
                for option in self.of(request):
                    if option.unit == unit:
                        works[begins[option.start], rests[option.stop]].append((request, option))
            found: dict[tuple[tuple[int, Option], ...], int] = {}
            heads, tails = ({times[side] for times in works} for side in range(2))
            if len(heads) * len(tails) > _MOST_PAIRS:
                heads, tails = _spread(heads), _spread(tails)
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


def _spread(times: set[int]) -> set[int]:
    """Return some times, the first and the last among them."""
    found = sorted(times)
    return {found[place * (len(found) - 1) // (_SPREAD - 1)] for place in range(_SPREAD)}

"""How soon a request can reach each border of its sections, and what is left at least from there on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .tables import JobTables, Option


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class Reach:
    """Heads and tails of requests that nothing waits for but each other.

    Attributes
    ----------
    tables
        The requests.
    """

    tables: JobTables

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

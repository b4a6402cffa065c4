"""Pieces of very wide networks: the same states as the exact search, but few of each size."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from .contraction import Contraction
from .search import Chains, Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """How a state was reached: what its costliest piece costs, all of them, and the pieces."""

    largest: int
    total: int
    pieces: tuple[int, ...]
    rank: tuple[int, int]


def beam(
    graph: Contraction, effort: Effort, *, width: int, candidates: int, limit: int
) -> tuple[int, ...] | None:
    """Return a chain whose pieces cost at most a limit, from the end, as bits; None: none was found.

    Of all states with equally many vertices left only some are followed: those whose costliest piece so far,
    or what must come next at least, costs least.

    `candidates`: how many next pieces of a state are looked at, small ones first.
    """
    chains = Chains(graph, effort)
    waiting: dict[int, dict[int, _Way]] = {
        chains.all.bit_count(): {chains.all: _Way(largest=0, total=0, pieces=(), rank=(0, 0))}
    }
    for size in range(len(graph.members), 0, -1):
        states = sorted(waiting.pop(size, {}).items(), key=lambda entry: (entry[1].rank, entry[0]))
        for state, way in states[:width]:
            found = list(islice(chains.endings(state, limit, spare=0), candidates))
            effort.spend(len(found))
            for piece, cost in found:
                rest = chains.rest(state, piece)
                largest, total = max(way.largest, cost), way.total + cost
                least = chains.cost(rest, chains.forced(rest))
                rank = (max(largest, least), total)
                there = waiting.setdefault(rest.bit_count(), {})
                if least <= limit and (rest not in there or rank < there[rest].rank):
                    there[rest] = _Way(largest=largest, total=total, pieces=(*way.pieces, piece), rank=rank)
    ended = waiting.get(0)
    return ended[0].pieces if ended else None

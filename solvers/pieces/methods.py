"""Native methods for pieces: exact search, Algorithm 1 of the paper, beam search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ...formulations.errors import InvalidInputError
from .contraction import Contraction
from .search import Chains, Effort, OutOfEffortError, bits


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


_SOON = 20_000
"""Candidates of pieces after which a search looks for a good chain first."""

_BEAMS = ((1, 50), (2, 200), (4, 400))
"""States of a size that are followed, and candidates that are looked at for each: one beam after another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a method found."""

    labels: Sequence[int]  # number of the piece of each vertex
    bound: int = 0  # largest cost of a piece that no chain can fall below
    proven: bool = False  # whether no chain is better, in any of the three objectives


def exact(graph: Contraction, effort: Effort) -> Found:
    """Return the best chain; where the effort ends before, the best that is known then.

    Where the search does not end soon, a beam looks for a good chain with half of the effort, and the search
    goes on with the other half: to prove that nothing costs less takes one pass where the beam was right.
    """
    half = effort.half()
    soon = _SOON if half.candidates is None else min(_SOON, half.candidates)
    chains = Chains(graph, Effort(deadline=effort.deadline, candidates=soon))
    known: list[Sequence[int]] = [graph.finest()]
    try:
        try:
            chains.least(_largest(graph, known))
        except OutOfEffortError:
            known += [_labels(graph, chains.known)] if chains.known else []
            known.append(by_beam(graph, half, known=known).labels)
            chains.effort = Effort(deadline=effort.deadline, candidates=effort.half().candidates)
            chains.least(_largest(graph, known), known=True)
        chains.finest(chains.bound)
        return Found(labels=_labels(graph, chains.known), bound=chains.bound, proven=True)
    except OutOfEffortError:
        known += [_labels(graph, chains.known)] if chains.known else []
    return Found(labels=min(known, key=lambda labels: score(graph, labels)), bound=chains.bound)


def _largest(graph: Contraction, known: Iterable[Sequence[int]]) -> int:
    return min(max(graph.costs(labels)) for labels in known)


def by_beam(graph: Contraction, effort: Effort, *, known: Iterable[Sequence[int]] = ()) -> Found:
    """Return a chain for a very wide network, without proof: from a few states of each size.

    It starts from the best chain that is known, and asks for ever smaller largest costs.
    """
    best = min([graph.finest(), graph.blocks(), *known], key=lambda labels: score(graph, labels))
    try:
        for width, candidates in _BEAMS:
            limit = max(graph.costs(best)) - 1
            while chain := beam(graph, effort, width=width, candidates=candidates, limit=limit):
                best = _labels(graph, chain)
                limit = max(graph.costs(best)) - 1
        # As costly a piece, but more of them, or cheaper ones.
        if chain := beam(graph, effort, width=width, candidates=candidates, limit=limit + 1):
            best = min(best, _labels(graph, chain), key=lambda labels: score(graph, labels))
    except OutOfEffortError:
        pass  # what was found by then is the answer
    return Found(labels=best)


def by_paper(graph: Contraction, effort: Effort, diameter: int) -> Found:
    """Return the chain of Algorithm 1, with what its text needs to end and to find chains.

    The recursion on what is left, with a memory: the smallest largest cost by Eq. 13, and of equal ones the
    first. Repaired: what must be in a piece is closed upward, may exceed the diameter, and is never empty; an
    empty rest costs nothing; all candidates are looked at (docs/formulations/splitting.md lists the errata).
    """
    chains = Chains(graph, effort)
    best: dict[int, tuple[int, int]] = {0: (0, 0)}
    stack = [_Frame(state=chains.all, candidates=chains.endings(chains.all, None, diameter=diameter))]
    try:
        while stack:
            frame = stack[-1]
            effort.spend(1)
            candidate = frame.again or next(frame.candidates, None)
            if candidate is None:
                assert frame.least is not None
                best[stack.pop().state] = frame.least
                continue
            piece, cost = candidate
            rest = chains.rest(frame.state, piece)
            frame.again = None if rest in best else candidate
            if rest not in best:
                stack.append(_Frame(state=rest, candidates=chains.endings(rest, None, diameter=diameter)))
            elif frame.least is None or max(best[rest][0], cost) < frame.least[0]:
                frame.least = max(best[rest][0], cost), piece
    except OutOfEffortError:
        raise InvalidInputError(
            "the method of the paper did not end in time: give it more, or use another method"
        ) from None
    state, chain = chains.all, []
    while state:
        chain.append(best[state][1])
        state &= ~chain[-1]
    return Found(labels=_labels(graph, chain))


@dataclass(slots=True, kw_only=True)
class _Frame:
    """A rest that is being divided: its candidates, the one that waits for its own rest, the best so far."""

    state: int
    candidates: Iterator[tuple[int, int]]
    again: tuple[int, int] | None = None
    least: tuple[int, int] | None = None


def _labels(graph: Contraction, chain: Sequence[int]) -> list[int]:
    """Return labels from pieces as bits, the last one first."""
    labels = [0] * len(graph.members)
    for label, piece in enumerate(reversed(chain)):
        for vertex in bits(piece):
            labels[vertex] = label
    return labels


def score(graph: Contraction, labels: Sequence[int]) -> tuple[int, int, int]:
    """Return what is minimised: largest cost, number of pieces with minus sign, total cost."""
    costs = graph.costs(labels)
    return max(costs), -len(costs), sum(costs)

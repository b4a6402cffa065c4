"""Exact search for pieces: chains of down-sets, by largest cost, number of pieces and total cost.

A chain of pieces is a labelling of the vertices that stays or grows by one along every edge. From the end: a
state is the set of vertices that no piece has yet. The next piece is an up-set of it with everything that a
piece before reads; that depends on the state alone, and so does the halo of each vertex, because whoever
reads it is in the same piece or gone. So the cost of a piece is a sum over its vertices that grows with it,
and branches end at a known limit (formulations, section 13; PICO 4.2 and 4.3).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import isqrt

from ..protocol import Deadline
from .contraction import Contraction

_ROUND = 256
"""Candidates between two looks at the clock."""


class OutOfEffortError(Exception):
    """The time or the number of pieces to look at was used up."""


@dataclass(slots=True, kw_only=True)
class Effort:
    """What a search may spend: time, and candidates for pieces (so that two runs end alike)."""

    deadline: Deadline
    candidates: int | None = None

    def half(self) -> Effort:
        """Return half of what is left."""
        return Effort(
            deadline=self.deadline.share(0.5),
            candidates=None if self.candidates is None else self.candidates // 2,
        )

    def spend(self, amount: int) -> None:
        """Count candidates."""
        if self.candidates is not None:
            self.candidates -= amount
        if (self.candidates is not None and self.candidates < 0) or self.deadline.passed:
            raise OutOfEffortError


class Chains:
    """The chains of pieces of a set of vertices."""

    def __init__(self, graph: Contraction, effort: Effort) -> None:
        self.graph = graph
        self.effort = effort
        count = len(graph.members)
        self.all = (1 << count) - 1
        self.bound = 0  # largest cost that is proven to be needed, so far
        self.known: list[int] = []  # the best chain so far, as bits, the last piece first
        self._above = [sum({1 << reader for reader, _ in found}) for found in graph.readers]
        self._below = [sum(1 << source for source in found) for found in graph.sources]
        self._beyond = list(self._above)
        for vertex in reversed(range(count)):
            for reader, _ in graph.readers[vertex]:
                self._beyond[vertex] |= self._beyond[reader]
        starts = [vertex for vertex, sources in enumerate(graph.sources) if not sources]
        self._far = [(start, graph.distances(start)) for start in starts]
        self._ends = sum(1 << vertex for vertex in range(count) if not self._above[vertex])
        self._front = {self.all: 0}
        self._next_limit: int | None = None
        self._weights: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        self._edges = [
            [(reader, *graph.factors(vertex, windows)) for reader, windows in found]
            for vertex, found in enumerate(graph.readers)
        ]

    def forced(self, state: int) -> int:
        """Return what the next piece of a state must have: what settled pieces read, and what reads that."""
        needed = front = self._front[state]
        for vertex in bits(front):
            needed |= self._beyond[vertex]
        return needed & state

    def rest(self, state: int, piece: int) -> int:
        """Return what is left of a state without its last piece, and keep what that piece reads of it."""
        rest = state & ~piece
        if rest not in self._front:
            self._front[rest] = self._read_by(piece) & rest
        return rest

    def _read_by(self, vertices: int) -> int:
        read = 0
        for vertex in bits(vertices):
            read |= self._below[vertex]
        return read

    def endings(
        self, state: int, limit: int | None, *, diameter: int | None = None, spare: int | None = None
    ) -> Iterator[tuple[int, int]]:
        """Yield the possible next pieces of a state with their costs, up to a limit; each once.

        `limit`: largest cost; None: any. `diameter`: most edges of a path inside a piece, beyond those that
        have to be there; None: any (PICO 4.3). `spare`: leave out pieces to which a vertex could be added
        that costs up to so much, keeps the limit, and reads only what is read anyway: whatever follows them,
        follows the larger ones, too. None: none.
        """
        above, below = self._above, self._below
        start = self.forced(state)
        cost = self.cost(state, start)
        if limit is not None and cost > limit:
            self._met(cost)
            return
        later = state & ~start
        opened = (self._ends | self._read_by(start)) & later
        free = [vertex for vertex in reversed(list(bits(opened))) if not above[vertex] & later]
        read = self._read_by(start)
        if start and not self._has_spare(state, free, read, _least_of(spare, limit, cost)):
            yield start, cost
        stack = [(start, cost, read, free, list[int]())]
        while stack:
            piece, cost, read, free, skipped = stack.pop()
            for place, vertex in enumerate(free):
                _, _, depth, own = self._weight(state, vertex)
                total = cost + own
                if limit is not None and total > limit:
                    self._met(total)
                    continue
                if diameter is not None and depth > diameter:
                    continue
                larger, more = piece | 1 << vertex, read | below[vertex]
                left = state & ~larger
                others = [v for v in bits(below[vertex] & state) if not above[v] & left]
                others, out = [*free[place + 1 :], *others], [*skipped, *free[:place]]
                if self._has_spare(state, out, more, 0 if spare is not None else None):
                    continue  # what costs nothing could be added to everything from here on
                if not self._has_spare(state, [*others, *out], more, _least_of(spare, limit, total)):
                    yield larger, total
                stack.append((larger, total, more, others, out))

    def cost(self, state: int, piece: int) -> int:
        """Return the cost of a piece with which a state ends."""
        return sum(self._weight(state, vertex)[3] for vertex in reversed(list(bits(piece))))

    def _has_spare(self, state: int, free: Iterable[int], read: int, most: int | None) -> bool:
        if most is None:
            return False
        for vertex in free:
            needed = self._below[vertex]
            if needed and not needed & ~read and self._weight(state, vertex)[3] <= most:
                return True
        return False

    def _weight(self, state: int, vertex: int) -> tuple[int, int, int, int]:
        """Return halo (rows, columns), longest path and cost of a vertex in the next piece of a state.

        Whoever reads it is in that piece, or gone; so what is left behind it decides.
        """
        key = vertex, state & self._beyond[vertex]
        known = self._weights.get(key)
        if known is not None:
            return known
        rows = columns = depth = 0
        for reader, (stride, slack, up), (step, play, fine) in self._edges[vertex]:
            if state >> reader & 1:
                high, wide, far, _ = self._weight(state, reader)
                rows = max(rows, -(-(high * stride + slack) // up))
                columns = max(columns, -(-(wide * step + play) // fine))
                depth = max(depth, far + 1)
        found = rows, columns, depth, self.graph.extra(vertex, (rows, columns))
        self._weights[key] = found
        return found

    def least(self, upper: int, *, known: bool = False) -> int:
        """Return the least largest cost of all chains, given one that is known to be enough.

        `known`: whether it is likely to be the least: then that is tried first.
        Raises OutOfEffortError: `bound` and `known` tell what was found.
        """
        limit = upper - 1 if known else 0
        while self.bound < upper:
            if self._is_enough(limit):
                upper = max(cost for _, cost in self.priced(self.known))
            else:
                assert self._next_limit is not None
                self.bound = max(self.bound, min(self._next_limit, upper))
            limit = max(self.bound, isqrt(self.bound * upper))
        self.bound = upper
        return upper

    def finest(self, limit: int) -> list[int]:
        """Return a chain of the most pieces that cost at most a limit, and of these the cheapest.

        Best first: a bound of the number of pieces of the rest never underestimates, and states are looked
        at again where they are reached better.
        """
        came: dict[int, int] = {}
        best = {self.all: (0, 0)}
        heap = [(-self._most_pieces(self.all), 0, 0, self.all)]
        while heap:
            _, total, fewer, state = heapq.heappop(heap)
            if not state:
                self.known = self._trail(came)
                return self.known
            if (fewer, total) > best[state]:
                continue
            for piece, cost in self._counted(state, limit, 0):
                rest, reached = self.rest(state, piece), (fewer - 1, total + cost)
                if rest not in best or reached < best[rest]:
                    best[rest], came[rest] = reached, state
                    heapq.heappush(heap, (reached[0] - self._most_pieces(rest), reached[1], reached[0], rest))
        raise AssertionError(f"no chain costs at most {limit}")

    def priced(self, chain: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield the pieces of a chain with their costs."""
        state = self.all
        for piece in chain:
            yield piece, self.cost(state, piece)
            state &= ~piece

    def _is_enough(self, limit: int) -> bool:
        """Say whether there is a chain whose pieces cost at most a limit, and keep it."""
        came: dict[int, int] = {}
        heap = [(self.all.bit_count(), self.all)]
        self._next_limit = None
        while heap:
            _, state = heapq.heappop(heap)
            if not state:
                self.known = self._trail(came)
                return True
            for piece, _ in self._counted(state, limit, limit):
                rest = self.rest(state, piece)
                if rest not in came:
                    came[rest] = state
                    heapq.heappush(heap, (rest.bit_count(), rest))
        return False

    def _counted(self, state: int, limit: int, spare: int) -> Iterator[tuple[int, int]]:
        """Yield the possible next pieces; each is effort."""
        self.effort.spend(1)
        for count, found in enumerate(self.endings(state, limit, spare=spare), start=1):
            yield found
            if not count % _ROUND:
                self.effort.spend(_ROUND)

    def _most_pieces(self, state: int) -> int:
        """Return a bound: how far the label of what must come next can be above the least."""
        if not state:
            return 0
        asked = list(bits(self.forced(state)))
        best = min if asked else max
        asked = asked or list(bits(state))
        count = len(self.graph.members)
        return 1 + max(
            best(far.get(vertex, count) for vertex in asked) for start, far in self._far if state >> start & 1
        )

    def _met(self, cost: int) -> None:
        if self._next_limit is None or cost < self._next_limit:
            self._next_limit = cost

    def _trail(self, came: dict[int, int]) -> list[int]:
        pieces, state = [], 0
        while state != self.all:
            pieces.append(came[state] & ~state)
            state = came[state]
        return pieces[::-1]


def _least_of(spare: int | None, limit: int | None, cost: int) -> int | None:
    return spare if spare is None or limit is None else min(spare, limit - cost)


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits of a number, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest

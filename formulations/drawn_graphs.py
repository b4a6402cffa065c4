"""Random graphs of layers: branches that part at a layer and meet at a later one, one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

_MOST_BRANCHES, _MOST_LENGTH = 4, 4


def branching_edges(names: Sequence[str], rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield the edges (maker, reader) of such a graph of at least one layer."""
    left = iter(names)
    node = next(left)
    while True:
        branches = []
        for _ in range(rng.randint(1, _MOST_BRANCHES)):
            branch = [node]
            for _ in range(rng.randint(1, _MOST_LENGTH)):
                following = next(left, None)
                if following is not None:
                    yield branch[-1], following
                    branch.append(following)
            branches.append(branch)
        meeting = next(left, None)
        if meeting is None:
            return
        for branch in branches:
            yield branch[-1], meeting
        node = meeting

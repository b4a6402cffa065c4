"""Every well-formed plan of one network, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator

from ..chain import Chain, Part


def all_parts(chain: Chain, *, once: bool = True) -> Iterator[tuple[Part, ...]]:
    """Yield the chunks of every well-formed plan: contiguous, supported; `once`: each unit at most once."""
    every = frozenset(range(chain.unit_count))

    def extend(parts: tuple[Part, ...], at: int, left: frozenset[int]) -> Iterator[tuple[Part, ...]]:
        if at == chain.layer_count:
            yield parts
            return
        for unit in sorted(left):
            for stop in chain.cuts:
                if stop > at and chain.runs(at, stop, unit):
                    yield from extend((*parts, (at, stop, unit)), stop, (left if once else every) - {unit})

    return extend((), 0, every)


def count_parts(chain: Chain) -> int:
    """Return an upper bound on the number of well-formed plans.

    With N pieces between legal cuts and M units it is sum over k of C(N-1, k-1) * M!/(M-k)!, which is
    exact when every unit can run every layer (BetterTogether III-D counts 4^9 = 262K for 9 layers on
    4 units, ignoring contiguity; it is 2,116).
    """
    gaps, total, ways = len(chain.cuts) - 2, 0, 1
    for chunks in range(1, chain.unit_count + 1):
        ways = ways * (chain.unit_count - chunks + 1)
        choose = 1
        for i in range(chunks - 1):
            choose = choose * (gaps - i) // (i + 1)
        total += choose * ways
    return total


def whole_parts(chain: Chain) -> Iterator[tuple[Part, ...]]:
    """Yield the plans of a single chunk, on each unit that can run all layers."""
    last = chain.layer_count
    return (((0, last, unit),) for unit in range(chain.unit_count) if chain.runs(0, last, unit))

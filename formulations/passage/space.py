"""How many plans there are whose units may have several chunks."""

from __future__ import annotations

from ..chain import Chain


def count_parts(chain: Chain) -> int:
    """Return the number of well-formed plans, by dynamic programming over boundaries and last units.

    With N pieces and M units that can run all layers it is M^N: each piece is on some unit.
    """
    units = range(chain.unit_count)
    ways = {chain.cuts[0]: [0] * chain.unit_count}
    for at, stop in enumerate(chain.cuts[1:], start=1):
        start = chain.cuts[at - 1]
        before = ways[start]
        entered = [1] * chain.unit_count if at == 1 else [sum(before)] * chain.unit_count
        ways[stop] = [entered[unit] if chain.runs(start, stop, unit) else 0 for unit in units]
    return sum(ways[chain.cuts[-1]])

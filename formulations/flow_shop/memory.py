"""Memory over time: the bytes that running chunks, waiting tensors and weights take (Eq. 6, in bytes)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..play import Run
from ..usage import Usage, usage_of
from ..workload import LoadPolicy
from .tables import FlowShop, Schedule


def memory_usage(shop: FlowShop, schedule: Schedule, runs: Sequence[Run]) -> Usage:
    """Return the bytes in use over time.

    A chunk that runs needs the most live tensors of its layers, and its weights unless all weights are
    resident; a request between two chunks holds the tensors alive at the cut. Resident weights count
    once for each network, layer and unit, however many requests use them.
    """
    resident = shop.workload.load_policy is LoadPolicy.RESIDENT
    return usage_of(
        _changes(shop, schedule, runs),
        ((schedule.order[run.position], run.start_us, run.end_us) for run in runs),
        base=_resident_bytes(shop, schedule) if resident else 0,
        requests=shop.request_count,
    )


def _changes(shop: FlowShop, schedule: Schedule, runs: Sequence[Run]) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back)."""
    by_position = defaultdict(list)
    for run in runs:
        by_position[run.position].append(run)
    for position, own in by_position.items():
        request = schedule.order[position]
        cuts = schedule.cuts[request]
        own.sort(key=lambda run: run.start_us)
        for run in own:
            needs = chunk_bytes(shop, request, cuts[run.unit], cuts[run.unit + 1])
            yield from ((run.start_us, needs), (run.end_us, -needs))
        for run, following in pairwise(own):
            waiting = shop.boundary_bytes[shop.chain_of[request]][cuts[run.unit + 1]]
            yield from ((run.end_us, waiting), (following.start_us, -waiting))


def chunk_bytes(shop: FlowShop, request: int, start: int, stop: int) -> int:
    """Return what a chunk needs while it runs, on top of resident weights."""
    chain = shop.chain(request)
    needs = chain.memory_bytes(start, stop)
    if shop.workload.load_policy is LoadPolicy.RESIDENT:
        needs -= chain.weights.between(start, stop)
    return needs


def _resident_bytes(shop: FlowShop, schedule: Schedule) -> int:
    """Return the weights of every layer on every unit that runs it."""
    held: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for request, cuts in enumerate(schedule.cuts):
        for unit, ends in enumerate(pairwise(cuts)):
            held[shop.chain_of[request], unit].update(range(*ends))
    return sum(shop.chains[chain].weights.of(layers) for (chain, _), layers in held.items())

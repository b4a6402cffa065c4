"""Memory over time: the bytes that running chunks, waiting tensors and weights take (Eq. 6, in bytes)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..play import Parts, Run
from ..usage import Usage, usage_of
from ..workload import LoadPolicy
from .tables import FlowShop


def memory_usage(shop: FlowShop, parts: Parts, runs: Sequence[Run]) -> Usage:
    """Return the bytes in use over time; `parts`: the chunks of each request, `runs`: when they ran, once.

    A chunk that runs needs the most live tensors of its layers, and its weights unless all weights are
    resident; a request between two chunks holds the tensors alive at the cut. Resident weights count
    once for each network, layer and unit, however many requests use them.
    """
    resident = shop.workload.load_policy is LoadPolicy.RESIDENT
    return usage_of(
        _changes(shop, runs),
        ((run.request, run.start_us, run.end_us) for run in runs),
        base=_resident_bytes(shop, parts) if resident else 0,
        requests=shop.request_count,
    )


def _changes(shop: FlowShop, runs: Sequence[Run]) -> Iterator[tuple[int, int]]:
    """Yield (time, bytes taken or given back)."""
    by_request = defaultdict(list)
    for run in runs:
        by_request[run.request].append(run)
    for request, own in by_request.items():
        own.sort(key=lambda run: run.start_us)
        for run in own:
            needs = chunk_bytes(shop, request, *run.part[:2])
            yield from ((run.start_us, needs), (run.end_us, -needs))
        for run, following in pairwise(own):
            waiting = shop.boundary_bytes[shop.chain_of[request]][run.part[1]]
            yield from ((run.end_us, waiting), (following.start_us, -waiting))


def chunk_bytes(shop: FlowShop, request: int, start: int, stop: int) -> int:
    """Return what a chunk needs while it runs, on top of resident weights."""
    chain = shop.chain(request)
    needs = chain.memory_bytes(start, stop)
    if shop.workload.load_policy is LoadPolicy.RESIDENT:
        needs -= chain.weights.between(start, stop)
    return needs


def _resident_bytes(shop: FlowShop, parts: Parts) -> int:
    """Return the weights of every layer on every unit that runs it."""
    held: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for request, own in enumerate(parts):
        for start, stop, unit in own:
            held[shop.chain_of[request], unit].update(range(start, stop))
    return sum(shop.chains[chain].weights.of(layers) for (chain, _), layers in held.items())

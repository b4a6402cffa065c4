"""Memory over time: the bytes that running chunks, waiting tensors and weights take (Eq. 6, in bytes)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from .play import Run
from .tables import FlowShop, Schedule
from .workload import LoadPolicy


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory over time.

    Attributes
    ----------
    steps
        (microsecond, bytes in use from then on), in order.
    while_bytes
        Most bytes in use while any chunk of a request runs, by request.
    """

    steps: tuple[tuple[int, int], ...]
    while_bytes: tuple[int, ...]

    @property
    def peak_bytes(self) -> int:
        """Most bytes in use at any instant."""
        return max(used for _, used in self.steps)


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


def usage_of(
    changes: Iterable[tuple[int, int]], spans: Iterable[tuple[int, int, int]], *, base: int, requests: int
) -> Usage:
    """Return memory over time from what is taken and given back.

    Parameters
    ----------
    changes
        (microsecond, bytes taken, or given back if negative), in any order; what happens in the same
        microsecond happens at once.
    spans
        (request, start, end in microseconds) of each chunk that has run.
    base
        Bytes that are always in use.
    requests
        Number of requests.
    """
    steps, used = [], base
    for time, group in groupby(sorted(changes), key=lambda change: change[0]):
        used += sum(change[1] for change in group)
        steps.append((time, used))
    most = [0] * requests
    times = [time for time, _ in steps]
    for request, start_us, end_us in spans:
        during = steps[bisect_left(times, start_us) : bisect_left(times, end_us)]
        most[request] = max([most[request], *(used for _, used in during)])
    return Usage(tuple(steps), tuple(most))


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
        needs -= chain.weight_prefix[stop] - chain.weight_prefix[start]
    return needs


def _resident_bytes(shop: FlowShop, schedule: Schedule) -> int:
    """Return the weights of every layer on every unit that runs it."""
    held: set[tuple[int, int, int]] = set()
    for request, cuts in enumerate(schedule.cuts):
        for unit, ends in enumerate(pairwise(cuts)):
            held.update((shop.chain_of[request], unit, layer) for layer in range(*ends))
    return sum(
        shop.chains[chain].weight_prefix[layer + 1] - shop.chains[chain].weight_prefix[layer]
        for chain, _, layer in held
    )

"""Least and largest totals of the rest of a plan, for every set of used units and every boundary.

With the running unit as part of the state, a total needs no chunks: from one boundary to the next a
unit goes on, or stops and another one starts. With R[b][S] the best total from boundary b on when
the units S are used, and V[b][u][S] the same when u runs on across b,

    V[b][u][S] = time of u from b to b+1 + best(V[b+1][u][S], transfer_out[b+1][u] + R[b+1][S])
    R[b][S]    = best over free u of transfer_in[b][u] + V[b][u][S + u],     R[last][S] = 0.

That is O(boundaries x points x units), however many chunks there are. The largest busy time of a
chunk is ignored, so these totals are bounds. With a list of the chunks of a window they are exact for
that window, at O(chunks x points).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .lattice import Lattice
from .ordering import Ints
from .tables import Arcs, Tables

NEVER = 1 << 60


def completion_totals(tables: Tables, lattice: Lattice, *, largest: bool, rates: Ints | None = None) -> Ints:
    """Return the least (or largest) total of the rest, by [point][boundary]; the last row is for no point.

    Where there is no rest, the total is beyond half of `NEVER`, on the bad side. With `rates` (by unit) it is
    the total of busy times by these rates: their drain.
    """
    never = -NEVER if largest else NEVER
    best = np.maximum if largest else np.minimum
    units = tables.unit_count
    ways = lattice.after.T + np.arange(units)[:, None] * (lattice.size + 1)
    found = np.full((tables.last + 1, lattice.size + 1), never, dtype=np.int64)
    found[-1, lattice.terminal] = 0
    running = np.full((units, lattice.size + 1), never, dtype=np.int64)
    starts, steps, stops = tables.steps(never, rates)
    for boundary in reversed(range(tables.last)):
        ahead = found[boundary + 1] + stops[boundary + 1][:, None]
        running = best(running, ahead) + steps[boundary][:, None]
        running[:, -1] = never
        # Sums of impossible steps must stay impossible, and within 64 bits.
        running = np.clip(running, -NEVER, NEVER)
        started = running.ravel()[ways] + starts[boundary][:, None]
        found[boundary, :-1] = np.clip(best.reduce(started, axis=0), -NEVER, NEVER)
    return np.ascontiguousarray(found.T)


def windowed_totals(arcs: Arcs, last: int, lattice: Lattice, *, largest: bool, drains: bool = False) -> Ints:
    """Return the same as `completion_totals` for plans whose chunks are all in the list.

    `drains`: of the energy above the idle power, not of the busy times.
    """
    weights = arcs.drain if drains else arcs.busy
    never = -NEVER if largest else NEVER
    best = np.maximum if largest else np.minimum
    found = np.full((last + 1, lattice.size + 1), never, dtype=np.int64)
    found[-1, lattice.terminal] = 0
    after = np.ascontiguousarray(lattice.after.T)
    for boundary in reversed(range(last)):
        begin, end = int(arcs.first[boundary]), int(arcs.first[boundary + 1])
        unit, stop, busy = arcs.unit[begin:end], arcs.stop[begin:end], weights[begin:end]
        firsts = np.flatnonzero(np.diff(unit, prepend=-1, append=-1))
        for low, high in pairwise(firsts.tolist()):
            # Reduce over the stops first: one gather for each unit, whatever the number of its chunks.
            ahead = best.reduce(found[stop[low:high]] + busy[low:high, None], axis=0)
            best(found[boundary, :-1], ahead[after[unit[low]]], out=found[boundary, :-1])
    return np.clip(found.T, -NEVER, NEVER)

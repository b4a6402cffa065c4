"""Networks as arrays for the tests of the native algorithms for workloads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from gapless.solvers.flow_shop.arrays import FORBIDDEN, ChainArrays, Ints
from gapless.solvers.flow_shop.columns import least_bottleneck


def arrays_of(times: Sequence[Sequence[int]], copy_in: Sequence[Sequence[int]] | None = None) -> ChainArrays:
    """Return a network from microseconds by [unit][layer] and copies by [unit][boundary 0..n]."""
    layers = np.array(times, dtype=np.int64)
    units, count = layers.shape
    prefix = np.concatenate((np.zeros((units, 1), dtype=np.int64), layers.cumsum(axis=1)), axis=1)
    copies = np.zeros_like(prefix) if copy_in is None else np.array(copy_in, dtype=np.int64)
    return ChainArrays(
        cuts=np.arange(count + 1),
        head=copies - prefix,
        tail=prefix,
        last=np.full((units, count + 1), count, dtype=np.int64),
    )


def random_arrays(rng: np.random.Generator, *, copies: bool, unsupported: bool) -> ChainArrays:
    """Return a network of up to 6 pieces on up to 4 units; few distinct times, so many ties."""
    units, count = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    shape = (units, count + 1)
    arrays = arrays_of(rng.integers(1, 9, (units, count)).tolist())
    into, out = (rng.integers(0, 9, shape) if copies else np.zeros(shape, dtype=np.int64) for _ in range(2))
    bad = rng.random((units, count)) < (0.25 if unsupported else 0)
    last = [[next((i for i in range(a, count) if row[i]), count) for a in range(count + 1)] for row in bad]
    return ChainArrays(
        cuts=arrays.cuts, head=arrays.head + into, tail=arrays.tail + out, last=np.array(last, dtype=np.int64)
    )


def all_places(arrays: ChainArrays) -> list[Ints]:
    """Return all cuts that the units can run, empty chunks and all."""
    middle = combinations_with_replacement(range(arrays.size + 1), arrays.unit_count - 1)
    every = (np.array((0, *cut, arrays.size), dtype=np.int64) for cut in middle)
    return [places for places in every if arrays.times_us(places).max() < FORBIDDEN]


def lognormal_arrays(rng: np.random.Generator, units: int) -> ChainArrays:
    """Return a network like those of the study: uneven layers, units of unequal speed."""
    count, whole = int(rng.integers(5, 20)), 10 ** rng.uniform(3, 5)
    share = rng.lognormal(0, 0.7, count)
    speeds = [rng.uniform(0.1, 0.4), 1.0, rng.uniform(1, 2.5), 3.1][:units]
    noise = rng.lognormal(0, 0.3, (units, count))
    times = whole * share / share.sum() * noise * np.array(speeds)[:, None]
    return arrays_of(np.maximum(times, 1).astype(np.int64).tolist())


def slice_all(networks: Sequence[ChainArrays]) -> list[Ints] | None:
    """Return the slicing of each network (P1), or None if one cannot run."""
    found = [least_bottleneck(network) for network in networks]
    places = [one[1] for one in found if one is not None]
    return places if len(places) == len(found) else None

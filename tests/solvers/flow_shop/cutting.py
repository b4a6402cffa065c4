"""Every way to cut one network, for comparison."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np
from hypothesis import strategies as st

from gapless.formulations.flow_shop.tables import shop_of
from gapless.solvers.flow_shop.arrays import FORBIDDEN, ChainArrays, build_arrays
from tests.instances import solvable
from tests.workload_instances import workload_problems


def every_cut(arrays: ChainArrays) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield (places, time on each unit) of all cuts that the units can run."""
    for inner in combinations_with_replacement(range(arrays.size + 1), arrays.unit_count - 1):
        places = (0, *inner, arrays.size)
        times = tuple(arrays.times_us(np.array(places)).tolist())
        if max(times) < FORBIDDEN:
            yield places, times


@st.composite
def networks(draw: st.DrawFn, *, runs: bool = False) -> ChainArrays:
    """Draw a network of up to seven layers with copies, forbidden cuts and layers, and unit memory.

    With `runs`, there is at least one way to run it.
    """
    problem = draw(workload_problems(most_requests=1, most_layers=7))
    if runs:
        problem = solvable(problem)
    return build_arrays(shop_of(problem).chain(0))

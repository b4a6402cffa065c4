"""Codes of what runs: no two sets of chunks that lose and take something else have the same one."""

from __future__ import annotations

from itertools import product

import pytest

from benchmarks.schedule_instances import sliced, small_schedule
from gapless.formulations.costs import SliceContention
from gapless.formulations.jobs.tables import tables_of
from gapless.formulations.problem import Problem
from gapless.solvers.jobs.passages import instance_of
from gapless.solvers.jobs.replay import Kinds
from tests.formulations.test_slices import pair

FIVE_KINDS = pair(
    (
        SliceContention(start=0, stop=1, intensity_permille=2000),
        SliceContention(start=1, stop=2, intensity_permille=400),
    )
)
"""Two layers, both together on each unit, and the other network."""


@pytest.mark.parametrize(
    "problem", [FIVE_KINDS, pair(()), *(sliced(small_schedule(seed), seed) for seed in range(8))]
)
def test_sets_of_chunks_have_codes_of_their_own(problem: Problem) -> None:
    tables = tables_of(problem)
    instance = instance_of(tables, range(tables.unit_count))
    kinds = Kinds(instance)
    on_unit = [
        [(0, ())]
        + [
            (kinds.bits(network, (start, stop, unit)), (network, instance.mark(network, (start, stop, unit))))
            for network, borders in enumerate(instance.borders)
            for stop in range(len(borders))
            for start in range(stop)
        ]
        for unit in range(instance.unit_count)
    ]
    sets: dict[int, set[tuple[object, ...]]] = {}
    for chosen in product(*on_unit):
        sets.setdefault(sum(code for code, _ in chosen), set()).add(tuple(kind for _, kind in chosen))
    assert all(len(own) == 1 for own in sets.values())

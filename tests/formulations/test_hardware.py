"""Units that share cores exclude each other."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.hardware import Platform, ProcessingUnit


@given(cores=st.lists(st.sets(st.integers(0, 5), max_size=3), min_size=1, max_size=7))
def test_the_most_units_at_once(cores: list[set[int]]) -> None:
    units = tuple(
        ProcessingUnit(name=f"u{index}", cores=tuple(sorted(own))) for index, own in enumerate(cores)
    )
    apart = [
        count
        for count in range(1, len(cores) + 1)
        for chosen in combinations(cores, count)
        if all(one.isdisjoint(other) for one, other in combinations(chosen, 2))
    ]
    assert Platform(name="board", units=units).most_at_once == max(apart)


def test_many_units_of_their_own_are_counted_at_once() -> None:
    units = tuple(ProcessingUnit(name=f"u{index}", cores=(index // 2,)) for index in range(64))
    assert Platform(name="board", units=units).most_at_once == 32

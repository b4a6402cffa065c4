"""Units that share cores exclude each other."""

from __future__ import annotations

from itertools import combinations, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.canonical import digest
from gapless.formulations.files import PLATFORM, dump, parse
from gapless.formulations.hardware import EngineSettings, Platform, ProcessingUnit, UnitKind, free_sets


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


@given(
    pairs=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] < pair[1])),
    most=st.one_of(st.none(), st.integers(1, 6)),
)
def test_free_sets_are_those_that_no_unit_can_be_added_to(
    pairs: set[tuple[int, int]], most: int | None
) -> None:
    """All sets one by one, larger ones first."""
    free = [
        set(chosen)
        for count in range(most or 6, 0, -1)
        for chosen in combinations(range(6), count)
        if not pairs & set(combinations(chosen, 2))
    ]
    expected = [each for each in free if not any(each < other for other in free)]
    assert [*free_sets(excluded_by(6, pairs), most)] == expected


@pytest.mark.parametrize(
    ("pairs", "most", "count", "size"),
    [((), None, 1, 64), ((), 3, 12, 3), (tuple((2 * at, 2 * at + 1) for at in range(32)), None, 12, 32)],
)
def test_free_sets_of_many_units_are_not_looked_for_among_all_sets(
    pairs: tuple[tuple[int, int], ...], most: int | None, count: int, size: int
) -> None:
    """Where none excludes another one, the search also ends."""
    found = [*islice(free_sets(excluded_by(64, set(pairs)), most), 12)]
    assert (len(found), {len(each) for each in found}) == (count, {size})


def excluded_by(units: int, pairs: set[tuple[int, int]]) -> tuple[frozenset[int], ...]:
    both = pairs | {(other, unit) for unit, other in pairs}
    return tuple(frozenset(other for one, other in both if one == unit) for unit in range(units))


def test_engines_that_drive_the_same_accelerator_exclude_each_other() -> None:
    def unit(name: str, kind: UnitKind, engine: str = "") -> ProcessingUnit:
        return ProcessingUnit(name=name, kind=kind, engine=EngineSettings(name=engine))

    units = (
        unit("opencl", UnitKind.GPU, "mnn"),
        unit("cuda", UnitKind.GPU, "onnxruntime"),
        unit("qnn", UnitKind.NPU, "onnxruntime"),
        unit("gpu", UnitKind.GPU),
        unit("second", UnitKind.GPU, "mnn"),
        unit("what", UnitKind.OTHER, "onnxruntime"),
    )
    assert Platform(name="board", units=units).conflicts == ((0, 1), (1, 4))


def test_files_without_names_of_engines_are_what_they_were() -> None:
    text = """{"format": "gapless.platform", "version": 1, "name": "board",
      "units": [{"name": "gpu", "kind": "gpu", "engine": {"backend": "opencl"}}]}"""
    old = parse(text.encode(), PLATFORM, name="old")
    assert old.units[0].engine.name == ""
    named = Platform(name="board", units=(ProcessingUnit(name="gpu", engine=EngineSettings(name="mnn")),))
    assert parse(dump(named, PLATFORM).encode(), PLATFORM, name="new") == named
    assert digest(EngineSettings()) == digest(EngineSettings(name=""))
    assert digest(EngineSettings()) != digest(EngineSettings(name="mnn"))

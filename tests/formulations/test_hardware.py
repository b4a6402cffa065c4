"""Units that share cores exclude each other."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.canonical import digest
from gapless.formulations.files import PLATFORM, dump, parse
from gapless.formulations.hardware import EngineSettings, Platform, ProcessingUnit, UnitKind


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

"""Which units make load beside which."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import Platform
from gapless.profiler.slowdown.interference.measure import check_loads, chosen_loads, default_loads
from gapless.profiler.slowdown.interference.ratios import ALL_OTHERS
from tests.profiler.slowdown.test_corun import PHONE

NAMES = PHONE.unit_names
CORES = {unit.name: set(unit.cores) for unit in PHONE.units}


def test_each_other_unit_and_all_that_run_at_once_make_load() -> None:
    assert default_loads(PHONE, "big", able=NAMES) == {
        "little": ("little",),
        "gpu": ("gpu",),
        ALL_OTHERS: ("little", "gpu"),
    }
    assert default_loads(PHONE, "all", able=NAMES) == {"gpu": ("gpu",)}  # once is enough
    assert default_loads(PHONE, "big", able=("big", "gpu")) == {"gpu": ("gpu",)}
    assert default_loads(PHONE, "gpu", able=("gpu",)) == {}


def test_chosen_units_make_load_beside_those_they_share_no_core_with() -> None:
    wanted = [("big", "gpu"), ("little",)]
    assert chosen_loads(PHONE, "little", wanted, able=NAMES) == {"big, gpu": ("big", "gpu")}
    assert chosen_loads(PHONE, "core4", wanted, able=NAMES) == {"little": ("little",)}
    assert chosen_loads(PHONE, "little", wanted, able=("little", "big")) == {}


@given(
    unit=st.sampled_from(NAMES),
    wanted=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(tuple), max_size=4),
)
def test_units_that_share_cores_never_run_together(unit: str, wanted: list[tuple[str, ...]]) -> None:
    found = [*default_loads(PHONE, unit, able=NAMES).values()]
    found += chosen_loads(PHONE, unit, wanted, able=NAMES).values()
    for load in found:
        cores = [core for name in (unit, *load) for core in CORES[name]]
        assert len(cores) == len(set(cores))
        assert len({unit, *load}) == 1 + len(load)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([("big", "core4")], "beside big,core4: big and core4 share cores"),
        ([("npu",)], "beside npu: there is no unit 'npu'; choose from core4, little"),
        ([()], r"beside \(nothing\): no unit"),
        ([("gpu", "gpu")], "a unit is named twice"),
        ([("all", "gpu")], "no further unit is left"),
        ([("gpu",), ("npu",), ("all", "gpu")], "(?s)npu.*no further unit"),
    ],
)
def test_units_that_cannot_make_load_are_named(wanted: Sequence[tuple[str, ...]], message: str) -> None:
    check_loads(PHONE, [("big", "gpu"), ("gpu",)])
    with pytest.raises(InvalidInputError, match=message):
        check_loads(PHONE, wanted)


def test_two_units_have_to_run_at_once() -> None:
    one = Platform(name="one", units=PHONE.units[:1])
    with pytest.raises(InvalidInputError, match="no two of the units core4 can run at once"):
        check_loads(one, ())

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gapless.executor.comparing import is_mostly_finite
from gapless.executor.model import TensorSpec
from gapless.executor.samples import Samples, parse_ranges, random_inputs, read_samples
from gapless.formulations.errors import InvalidInputError

SPECS = (TensorSpec(name="x", shape=(1, 3)), TensorSpec(name="ids", shape=(2,), dtype="int64"))


def test_ranges_bound_random_numbers() -> None:
    samples = Samples(ranges=parse_ranges(["ids=5:7", "x=0:1"])).fitted(SPECS)
    drawn = [samples.inputs(SPECS, seed) for seed in range(20)]
    assert {int(number) for each in drawn for number in each["ids"]} == {5, 6}
    assert all(0 <= number < 1 for each in drawn for number in each["x"].ravel())
    assert drawn[3]["ids"].dtype == np.int64


def test_files_are_used_in_turn_and_a_further_dimension_counts_requests(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.ones((1, 3)), ids=np.array([1, 2], "int32"))
    np.savez(tmp_path / "b.npz", x=np.full((2, 1, 3), 2.0), ids=np.array([[3, 4], [5, 6]]))
    samples = read_samples(tmp_path).fitted(SPECS)
    found = [samples.inputs(SPECS, seed)["ids"].tolist() for seed in range(4)]
    assert found == [[1, 2], [3, 4], [5, 6], [1, 2]]
    assert samples.inputs(SPECS, 0)["x"].dtype == np.float32


def test_all_defects_of_inputs_are_listed() -> None:
    arrays = {"x": np.zeros((4, 4)), "ids": np.zeros(2, "float32"), "z": np.zeros(1)}
    with pytest.raises(InvalidInputError) as caught:
        Samples(given=(arrays,), ranges={"y": (0, 1)}).fitted(SPECS)
    text = str(caught.value)
    assert len(caught.value.problems) == 4
    assert all(word in text for word in ("'x' has the shape [4, 4]", "'ids' holds float32", "'z'", "y=..."))


def test_unreadable_files_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"no archive")
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "one.npy").rename(tmp_path / "b.npz")
    with pytest.raises(InvalidInputError) as caught:
        read_samples(tmp_path)
    assert len(caught.value.problems) == 2
    with pytest.raises(InvalidInputError, match="holds no"):
        read_samples(_empty(tmp_path))


def _empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def test_malformed_ranges_are_all_listed() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_ranges(["ids", "ids=1", "=0:3", "x=3:1", "y=0:2", "y=0:3"])
    assert len(caught.value.problems) == 5


def test_mostly_finite() -> None:
    assert is_mostly_finite([np.array([1.0, 2.0, np.nan])])
    assert not is_mostly_finite([np.array([1.0, np.inf, np.nan])])
    assert is_mostly_finite([])


def test_what_may_choose_between_branches_has_both_values() -> None:
    """Drawn one by one, three seeds had all given the same one behind an input of 512 numbers."""
    specs = [
        TensorSpec(name="x", shape=(1, 8, 8, 8)),
        TensorSpec(name="fast", shape=(), dtype="bool"),
        TensorSpec(name="mode", shape=(1,), dtype="int64"),
    ]
    drawn = [random_inputs(specs, seed) for seed in (1, 2, 3)]
    assert [bool(each["fast"]) for each in drawn] == [True, False, True]
    assert [each["mode"].tolist() for each in drawn] == [[0], [1], [0]]

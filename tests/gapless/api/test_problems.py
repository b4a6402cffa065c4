"""Problems straight from tables of milliseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.api.problems import load_problem, table_problem
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import InvalidInputError, InvalidProblemError
from gapless.formulations.hardware import ProcessingUnit


def test_times_are_rounded_once_to_whole_microseconds() -> None:
    problem = table_problem({"a": [1.2345678, 0.0001], "b": [None, 2]}, ["cpu", "gpu"])
    assert problem.network.layer_names == ("a", "b")
    assert chain_of(problem).layer_us == ((1235, 1), (None, 2000))


def test_rows_may_be_arrays_and_units_may_be_units() -> None:
    cpu = ProcessingUnit(name="cpu", cores=(0, 1))
    rows: Any = np.array([[1.0, 2.0], [3.0, 4.0]])
    problem = table_problem(rows, [cpu, "gpu"], objective="latency", source="a test")
    assert problem.platform.units[0] is cpu
    assert chain_of(problem).layer_us == ((1000, 2000), (3000, 4000))
    assert str(problem.objective) == "latency"
    assert problem.costs.provenance.source == "a test"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([], "layers are missing"),
        ([[1, 2], [3]], "row 'layer1' has 1 times"),
        ([[1, 0]], "row 'layer0', column 1: 0 ms"),
        ([[1, -2]], "column 1: -2 ms"),
        ([[float("nan"), 1]], "column 0: nan ms"),
        ([[1, float("inf")]], "column 1: inf ms"),
        ([[1, "fast"]], "'fast' is not a number"),
        (["ab"], "is not a number"),
        ({"": [1, 2]}, "name is empty"),
    ],
)
def test_tables_that_are_wrong(table: Any, words: str) -> None:
    with pytest.raises(InvalidProblemError) as caught:
        table_problem(table, ["cpu", "gpu"])
    assert words in str(caught.value)


def test_every_wrong_row_is_told() -> None:
    with pytest.raises(InvalidProblemError) as caught:
        table_problem([[0, 1], [1, 1, 1], [-1, 1]], ["cpu", "gpu"])
    assert len(caught.value.problems) == 3


def test_a_file_wins_over_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pixel7a").mkdir()
    (tmp_path / "pixel7a" / "octree").write_text("{")
    with pytest.raises(InvalidInputError, match="not valid JSON"):
        load_problem("pixel7a/octree")

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.sweeps.run import sweep
from gapless.sweeps.spec import Sweep
from gapless.sweeps.table import COLUMNS, csv_text, require_parquet, save_parquet

from .rows import row

HOSTILE = [
    "=HYPERLINK(1)",
    "+1+1",
    "-2",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    'a"b,c',
    "red\x1b[31m",
    "x\u202ey",
    "a\nb",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_spreadsheet_takes_a_name_for_a_formula(name: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(csv_text([row(model=name, error=name), row(model="plain")]))
    with path.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert first["model"] == first["error"]
    assert first["model"][0] not in "=+-@\t\r"
    assert first["model"].replace("\n", "").isprintable()
    assert second["model"] == "plain"


def test_the_table_has_every_field_and_empty_cells_for_what_is_not_known() -> None:
    header, line = csv_text([row(price=None, energy_nj=None, gap=0.25)]).splitlines()
    assert header.split(",") == list(COLUMNS)
    found = dict(zip(header.split(","), next(csv.reader([line])), strict=True))
    assert (found["price"], found["energy_nj"], found["gap"], found["value"]) == ("", "", "0.25", "1000")


def test_numbers_that_are_less_than_nothing_stay_numbers() -> None:
    assert ",-0.5," in csv_text([row(gap=-0.5)])


def test_a_parquet_file_has_typed_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [row(model="=1", price=349.5), row(price=None, status="failed", value=None, per_second=None)]
    save_parquet(rows, tmp_path / "table.parquet")
    table = parquet.read_table(tmp_path / "table.parquet")
    assert table.to_pylist() == [each.columns for each in rows]
    kinds = {name: str(kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True)}
    assert (kinds["value"], kinds["price"], kinds["estimated"]) == ("int64", "double", "bool")
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]
    with pytest.raises(InvalidInputError, match="cannot write"):
        save_parquet(rows, tmp_path / "nowhere" / "table.parquet")


def test_without_pyarrow_nothing_is_solved_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'gapless\[parquet\]'"):
        require_parquet()
    with pytest.raises(InvalidInputError, match="pyarrow"):
        sweep(Sweep(models=("octree",), platforms=("pixel7a",)), out=tmp_path / "out", parquet=True)
    assert not (tmp_path / "out").exists()

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.solvers.result import Milestone
from gapless.solvers.sources import Source, StartMode
from gapless.sweeps.answers import TaskAnswer
from gapless.sweeps.run import sweep
from gapless.sweeps.spec import Base, Sweep
from gapless.sweeps.table import COLUMNS, csv_text, require_parquet, row_of, save_parquet
from gapless.sweeps.tasks import Solving, SweepTask

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


def test_a_row_has_every_figure_of_the_answer() -> None:
    answer = TaskAnswer(
        backend="mine",
        backend_version="2",
        status="feasible",
        stop="time_limit",
        term="period",
        value=200,
        bound=150,
        start=StartMode.NATIVE,
        plan_source=Source.OWN,
        bound_source=Source.START,
        runtime_s=1.5,
        startup_s=0.25,
        start_s=0.5,
        total_s=2.0,
        plan_class="plans of one kind",
        course=(Milestone(at_s=1.0, value=200),),
        score={"period_us": 200, "energy_nj": 7},
        units=3,
        worker="host:1",
        attempts=2,
    )
    task = SweepTask(
        base=Base(model="net", board="board"), objective="period", limits="", rules="", solving=Solving()
    )
    found = row_of(4, task, answer, {"board": 99.0}, "plans/x.json")
    for name in (
        "backend",
        "status",
        "bound",
        "start",
        "plan_source",
        "bound_source",
        "runtime_s",
        "start_s",
    ):
        assert getattr(found, name) == getattr(answer, name), name
    for name in (
        "stop",
        "runtime_s",
        "startup_s",
        "total_s",
        "plan_class",
        "course",
        "worker",
        "attempts",
        "value",
    ):
        assert getattr(found, name) == getattr(answer, name), name
    assert (found.task, found.model, found.platform, found.price) == (4, "net", "board", 99.0)
    assert (found.objective, found.gap, found.plan_file) == ("period", 0.25, "plans/x.json")
    assert (found.period_us, found.energy_nj, found.latency_us) == (200, 7, None)
    assert tuple(found.columns) == COLUMNS


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

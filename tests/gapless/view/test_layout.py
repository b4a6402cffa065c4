"""Tables on terminals of any width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from gapless.view.layout import indented, plain_table


def shown(table: Table, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(indented(table))
    return out.getvalue().rstrip().splitlines()


def times() -> Table:
    numbers = ("period", "latency with full slots p50", "share")
    table = plain_table("candidate", "plan", *numbers, numbers=numbers)
    table.add_row(
        "replicas on Little+Medium", "0-0 Big | 1-3 GPU | 4-4 Little", "1,071.029 ms", "62.31 ms", "96.9 %"
    )
    table.add_row("serial on GPU", "0-8 GPU", "-", "105.69 ms", "100.0 %")
    return table


def test_a_table_that_fits_stays_as_it_is() -> None:
    first, second, _ = shown(times(), 140)
    assert "latency with full slots p50" in first
    assert "1,071.029 ms" in second


@pytest.mark.parametrize("width", [70, 80])
def test_in_a_narrow_one_units_move_to_the_header_and_no_number_or_word_is_broken(width: int) -> None:
    lines = shown(times(), width)
    assert max(map(len, lines)) <= width
    text = " ".join(lines)
    for whole in (
        "1,071.029 ",
        " 62.31 ",
        "105.69",
        "96.9 %",
        "100.0 %",
        "Little+Medium",
        "period,",
        "p50, ms",
    ):
        assert whole in text
    assert " 62.31 ms" not in text


def test_a_table_without_rows_is_narrow_too() -> None:
    numbers = ("number", "reached", "of the best")
    assert "name" in " ".join(shown(plain_table("a name", *numbers, numbers=numbers), 20))


def test_units_that_differ_stay_with_their_numbers() -> None:
    table = plain_table("a name that is long", "time", numbers=("time",))
    table.add_row("one of the many words", "1.3 ms")
    table.add_row("another one", "2.08 s")
    text = " ".join(shown(table, 24))
    assert "1.3 ms" in text
    assert "2.08 s" in text


def test_columns_that_do_not_fit_stand_below_behind_the_first_one() -> None:
    lines = shown(times(), 40)
    assert max(map(len, lines)) <= 40
    above, _, below = "\n".join(line.rstrip() for line in lines).partition("\n\n")
    for part, cells in (
        (above, ("1,071.029", "62.31", "105.69", "Little+Medium")),
        (below, ("96.9 %", "100.0 %")),
    ):
        assert "replicas on" in part
        assert all(cell in part for cell in cells)


def test_names_of_rows_stay_whole_beside_a_column_that_is_broken() -> None:
    table = plain_table("backend", "status")
    table.add_row("exhaustive", "infeasible-and-proved")
    assert any("exhaustive" in line for line in shown(table, 20))


def test_even_where_nothing_fits_everything_is_shown() -> None:
    lines = shown(times(), 24)
    assert max(map(len, lines)) <= 24
    assert "105" in "".join(lines)

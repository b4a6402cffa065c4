"""Receipts: what was asked of an engine, and what it granted."""

from __future__ import annotations

from collections.abc import Sequence

from ..executor.engine import SIMULATED, PlacementReceipt
from .blocks import Cell, Column, Shown, Table, Tone, Unit, table


def receipts_table(found: Sequence[PlacementReceipt]) -> Table:
    """Return one row for each session."""
    columns: list[Column[PlacementReceipt]] = [
        Column("unit", Unit.NAME, lambda one: one.unit),
        Column("chunk", Unit.NAME, lambda one: one.piece),
        Column("engine", Unit.NAME, lambda one: one.engine),
        Column("backend", Unit.TEXT, lambda one: _pair(one.asked_backend, one.granted_backend)),
        Column(
            "threads", Unit.TEXT, lambda one: _pair(_number(one.asked_threads), _number(one.granted_threads))
        ),
        Column("cores", Unit.TEXT, lambda one: _pair(_cores(one.asked_cores), _cores(one.granted_cores))),
        Column("precision, memory", Unit.TEXT, lambda one: f"{one.precision}, {one.memory}", Shown.PAGES),
        Column("granted", Unit.TEXT, _granted),
    ]
    return table("Asked and granted", columns, found)


def _granted(one: PlacementReceipt) -> Cell:
    if one.engine == SIMULATED:
        return Cell("nothing: simulated", Tone.WARN)
    wrong = one.mismatches
    more = [] if one.quota_permille is None else [f"emulated at {one.quota_permille / 10:g} %"]
    more += ["numbers not compared"] if one.compared is False else []
    note = f"({', '.join(more)})" if more else ""
    return Cell("; ".join(wrong) or "as asked", Tone.BAD if wrong else Tone.GOOD, note)


def _pair(asked: str, granted: str) -> Cell:
    """Return what was asked, and what was granted where that is something else."""
    if granted in ("", asked):
        return Cell(asked or None)
    return Cell(f"asked {asked}, got {granted}", Tone.BAD) if asked else Cell(granted)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _cores(cores: tuple[int, ...] | None) -> str:
    return "" if cores is None else ",".join(map(str, cores))

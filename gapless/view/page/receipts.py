"""Receipts: what was asked of the engines, and what they granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...executor.engine import SIMULATED, PlacementReceipt
from .execution import race_row
from .subject import Subject
from .table import Table, TableCell, columns, table

_MOST_ROWS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipts:
    """Receipts as a table; what to think of them in a word; how many mismatch, what is emulated in words."""

    tag: str
    words: str
    kind: str
    table: Table


def receipts(subject: Subject) -> Receipts | None:
    """Return the receipts of a subject: of its execution, or else of the race; None: there are none."""
    found = _known(subject)
    if not found:
        return None
    wrong = sum(bool(receipt.mismatches) for receipt in found)
    emulated = {r.unit: r.quota_permille for r in found if r.quota_permille is not None}
    if subject.observed != "measured":
        return Receipts(
            tag="simulated",
            words="No engine was asked for anything: the device is simulated.",
            kind="warn",
            table=_grid(found),
        )
    words = [
        "All sessions were granted as asked."
        if not wrong
        else f"{wrong} of {len(found)} sessions were not granted as asked."
    ]
    words += [
        f"{unit} is emulated: a quota of {quota / 10:g} % of its cores' time."
        for unit, quota in emulated.items()
    ]
    unknown = sum(receipt.compared is False for receipt in found)
    if unknown:
        words.append(f"Numbers of {unknown} of {len(found)} were not compared with those of the uncut model.")
    return Receipts(
        tag="mismatch" if wrong else "as asked",
        words=" ".join(words),
        kind="bad" if wrong else "good",
        table=_grid(found),
    )


def _grid(found: Sequence[PlacementReceipt]) -> Table:
    titles = columns("unit", "chunk", "engine", "backend", "threads", "cores", "precision, memory", "granted")
    return table("Asked and granted", titles, map(list, map(_row, found)), most=_MOST_ROWS)


def _known(subject: Subject) -> Sequence[PlacementReceipt]:
    if subject.measurement is not None and subject.measurement.receipts:
        return subject.measurement.receipts
    row = race_row(subject)
    return () if row is None else row.receipts


def _row(receipt: PlacementReceipt) -> Iterator[TableCell | str]:
    wrong = receipt.mismatches
    yield TableCell(text=receipt.unit, kind="name")
    yield TableCell(text=receipt.piece, kind="name")
    yield TableCell(text=receipt.engine, kind="name")
    yield _pair(receipt.asked_backend, receipt.granted_backend)
    yield _pair(_number(receipt.asked_threads), _number(receipt.granted_threads))
    yield _pair(_cores(receipt.asked_cores), _cores(receipt.granted_cores))
    quota = "" if receipt.quota_permille is None else f"; emulated at {receipt.quota_permille / 10:g} %"
    yield f"{receipt.precision}, {receipt.memory}{quota}"
    if receipt.engine == SIMULATED:
        yield TableCell(text="nothing: simulated", kind="warn")
    else:
        yield TableCell(text="; ".join(wrong) if wrong else "as asked", kind="bad" if wrong else "good")


def _pair(asked: str, granted: str) -> TableCell:
    """Return what was asked, and what was granted where that is something else."""
    if granted in ("", asked):
        return TableCell(text=asked or "-")
    if not asked:
        return TableCell(text=granted)
    return TableCell(text=f"asked {asked}, got {granted}", kind="bad")


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _cores(cores: tuple[int, ...] | None) -> str:
    return "" if cores is None else ",".join(map(str, cores))

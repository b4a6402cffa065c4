"""How long proofs take by the size of the problem, on the page of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from ...sweeps.findings import is_proof, size_of
from ...sweeps.table import SweepRow
from ..words import gap, seconds
from .race import SHAPES
from .scale import Axis, Tick
from .table import Table, TableCell, columns, numbers, table
from .texts import clipped, visible

_MOST_MARKS = 800
_LEAST_US = 10.0
"""Shortest time that is drawn: an axis of ratios has no 0."""

_SIZES = (32, 128, 512, 2048, 8192)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofMark:
    """One proof: percent from the left (size) and from the top (time), whose, and what is shown of it."""

    x: float
    y: float
    series: int
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofScatter:
    """Time to proof by size.

    `marks`, `hidden`: what is drawn, from left to right, and how many proofs are not; `across`, `upwards`:
    ticks of the axes.
    """

    marks: tuple[ProofMark, ...]
    hidden: int
    names: tuple[tuple[str, str], ...]  # (backend, shape) of the series
    across: tuple[Tick, ...]
    upwards: tuple[Tick, ...]
    across_name: str
    upwards_name: str


def proof_scatter(rows: Sequence[SweepRow]) -> ProofScatter | None:
    """Return the proofs as a scatter plot; None: there are none."""
    proofs = [row for row in rows if is_proof(row)]
    if not proofs:
        return None
    names = list(dict.fromkeys(row.backend for row in proofs))
    step = -(-len(proofs) // _MOST_MARKS)
    shown = proofs[::step]
    sizes = Axis.around([float(size_of(row)) for row in shown])
    times = Axis.around([_time_us(row) for row in shown])
    marks = (
        ProofMark(
            x=sizes.at(size_of(row)),
            y=round(100 - times.at(_time_us(row)), 3),
            series=names.index(row.backend),
            facts=_facts(row),
        )
        for row in shown
    )
    return ProofScatter(
        marks=tuple(sorted(marks, key=lambda mark: (mark.x, mark.y, mark.series))),
        hidden=len(proofs) - len(shown),
        names=tuple((name, tuple(SHAPES)[index % len(SHAPES)]) for index, name in enumerate(names)),
        across=sizes.counts(),
        upwards=times.ticks(),
        across_name=f"layers x units{_scale(sizes)}",
        upwards_name=f"time of the search{_scale(times)}",
    )


def _scale(axis: Axis) -> str:
    return " (logarithmic)" if axis.logarithmic else ""


def _time_us(row: SweepRow) -> float:
    return max(1e6 * row.runtime_s, _LEAST_US)


def _facts(row: SweepRow) -> tuple[tuple[str, str], ...]:
    found = {
        "task": str(row.task),
        "model": clipped(row.model),
        "platform": clipped(f"{row.platform} {row.devices}"),
        "objective": row.objective,
        "backend": row.backend,
        "size": f"{row.layers} layers x {row.units} units",
        "time": seconds(row.runtime_s),
    }
    return tuple((what, visible(value)) for what, value in found.items())


def proofs_by_size(rows: Sequence[SweepRow]) -> Table:
    """Return for each backend and size of problem how much is proved, how fast, and the gap of the rest."""
    found: dict[tuple[str, int], list[SweepRow]] = {}
    for row in rows:
        if not row.failed:
            found.setdefault((row.backend, _class_of(row)), []).append(row)
    cells: Iterator[list[TableCell | str]] = (
        [TableCell(text=name, kind="name"), *_cells(size, own)] for (name, size), own in sorted(found.items())
    )
    titles = columns(
        "backend", "size", *numbers("plans", "proved", "median time of proofs", "median gap of others")
    )
    return table("By backend and size", titles, cells)


def _class_of(row: SweepRow) -> int:
    return next((number for number, most in enumerate(_SIZES) if size_of(row) <= most), len(_SIZES))


def _cells(size: int, rows: Sequence[SweepRow]) -> list[str]:
    proofs = [row.runtime_s for row in rows if is_proof(row)]
    gaps = [row.gap for row in rows if row.gap is not None and not is_proof(row)]
    return [
        f"up to {_SIZES[size]:,}" if size < len(_SIZES) else f"more than {_SIZES[-1]:,}",
        f"{len(rows):,}",
        f"{len(proofs):,}",
        seconds(median(proofs)) if proofs else "-",
        gap(median(gaps)) if gaps else "-",
    ]

"""A sweep as charts: how long proofs take by the size of the problem."""

from __future__ import annotations

from collections.abc import Sequence

from ..sweeps.findings import is_proof, size_of
from ..sweeps.table import SweepRow
from .charts import Axis, Facts, Kind, Mark, Plane, Series
from .words import seconds

_MOST_MARKS = 800
_LEAST_S = 1e-5
"""Shortest time that is drawn: an axis of ratios has no 0."""


def proofs_chart(rows: Sequence[SweepRow]) -> Plane | None:
    """Return time to proof by size, of many proofs some; None: there are none."""
    proofs = [row for row in rows if is_proof(row)]
    if not proofs:
        return None
    shown = proofs[:: -(-len(proofs) // _MOST_MARKS)]
    marks: dict[str, list[Mark]] = {row.backend: [] for row in proofs}
    for row in shown:
        mark = Mark(x=float(size_of(row)), y=max(row.runtime_s, _LEAST_S), facts=_facts(row))
        marks[row.backend].append(mark)
    known = [mark for found in marks.values() for mark in found]
    hidden = len(proofs) - len(shown)
    return Plane(
        kind=Kind.SCATTER,
        title="Time to proof by size",
        words=f"{len(shown):,} proofs; {hidden:,} more are not drawn." if hidden else "",
        noun="proof",
        across=Axis.around("layers x units", [mark.x for mark in known]),
        upwards=Axis.around("time of the search", [mark.y for mark in known], unit="s"),
        series=tuple(Series(name=name, marks=tuple(found)) for name, found in marks.items()),
    )


def _facts(row: SweepRow) -> Facts:
    return (
        ("task", str(row.task)),
        ("model", row.model),
        ("platform", f"{row.platform} {row.devices}"),
        ("objective", row.objective),
        ("backend", row.backend),
        ("size", f"{row.layers} layers x {row.units} units"),
        ("time", seconds(row.runtime_s)),
    )

"""Rows of a sweep, as tests need them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gapless.sweeps.table import SweepRow

ROW = SweepRow(
    task=1,
    model="net",
    platform="board",
    devices="",
    available=4,
    batch=1,
    price=None,
    objective="period",
    limits="",
    backend="native",
    backend_version="1",
    status="optimal",
    stop="complete",
    term="period",
    value=1000,
    bound=1000,
    gap=0.0,
    per_second=1000.0,
    period_us=1000,
    latency_us=2000,
    energy_nj=None,
    peak_bytes=0,
    runtime_s=0.5,
    startup_s=0.1,
    total_s=0.7,
    layers=8,
    units=4,
    estimated=False,
    plan="0-7 cpu",
    plan_id="abc",
    plan_file="",
    fingerprint="f00",
    worker="host:1",
    attempts=1,
    error="",
)


def row(**changes: Any) -> SweepRow:
    """Return a row; a period brings its rate along."""
    if "value" in changes and changes["value"] is not None:
        changes.setdefault("per_second", 1e6 / max(1, changes["value"]))
        changes.setdefault("bound", changes["value"])
    return replace(ROW, **changes)

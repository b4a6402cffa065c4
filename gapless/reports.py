"""Pages about answers: fronts, sweeps, contests, and what a report can be about."""

from __future__ import annotations

from .view.page.contest import write_instance_report
from .view.page.front import write_front_report
from .view.page.subjects import subject
from .view.page.sweep import write_sweep_report

__all__ = [
    "subject",
    "write_front_report",
    "write_instance_report",
    "write_sweep_report",
]

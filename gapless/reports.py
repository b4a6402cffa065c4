"""Pages about answers: fronts, sweeps, contests, and what a report can be about."""

from __future__ import annotations

from .view.page.results import write_page
from .view.page.subjects import subject

__all__ = ["subject", "write_page"]

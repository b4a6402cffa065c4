"""Coordinators of the fake engine."""

from __future__ import annotations

from typing import Any

from gapless.executor.coordination.coordinator import Coordinator
from gapless.solvers.coordination.dynamic import LeastSlack
from tests.executor.pipeline.fakes import FakeEngine, platform


def coordinator(*units: str, **options: Any) -> Coordinator:
    """Return a coordinator of some units, with Band's policy."""
    return Coordinator(platform(*units), FakeEngine(), LeastSlack(), **options)

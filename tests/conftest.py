"""Settings of all tests."""

from __future__ import annotations

import os
from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from gapless.solvers import protocol

# What tests say about tables and colours is about pipes, whatever terminal the tests are run in.
for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)

# Machines are shared and slow at times: how long an example took says nothing about the code.
# Continuous integration draws the same examples each time, so that a failure points at the change.
settings.register_profile(
    "gapless", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gapless")


@pytest.fixture
def counted_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time limits of searches count questions instead of seconds.

    Each look at the clock takes 10 ms: a search stops at the same step on every machine, however
    loaded that is. Limits of child processes are still in seconds.
    """
    looks = count()
    monkeypatch.setattr(protocol, "time", SimpleNamespace(monotonic=lambda: next(looks) / 100))

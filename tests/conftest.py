"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# What tests say about tables and colours is about pipes, whatever terminal the tests are run in.
for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)

# Machines are shared and slow at times: how long an example took says nothing about the code.
# Continuous integration draws the same examples each time, so that a failure points at the change.
settings.register_profile(
    "gapless", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gapless")

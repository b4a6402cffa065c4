"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Machines are shared and slow at times: how long an example took says nothing about the code.
# Continuous integration draws the same examples each time, so that a failure points at the change.
settings.register_profile(
    "gapless", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gapless")

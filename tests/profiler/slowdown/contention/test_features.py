"""Features of Eq. (1) from counts."""

from __future__ import annotations

import pytest

from gapless.executor.machine.counters import CACHE_REFERENCES, CYCLES
from gapless.formulations.errors import ProfilingError
from gapless.profiler.slowdown.contention.features import EVENTS, features_of

COUNTS = dict(zip(EVENTS, (1000.0, 2500.0, 200.0, 50.0, 300.0), strict=True))


def test_features_are_ratios() -> None:
    found = features_of(COUNTS)
    assert found.row == (2.5, 0.25, 0.3)
    assert found.instructions_per_cycle == 2.5


@pytest.mark.parametrize("event", [CYCLES, CACHE_REFERENCES])
def test_counters_that_stand_still_are_no_features(event: object) -> None:
    with pytest.raises(ProfilingError, match="were counted while a network ran"):
        features_of({**COUNTS, event: 0.0})  # type: ignore[dict-item]

"""High and low contention by percentile."""

from __future__ import annotations

import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.profiler.slowdown.contention.result import high_from


@pytest.mark.parametrize(
    ("intensities", "percentile", "expected"),
    [
        ([], 50, None),
        ([1000], 50, None),
        ([1000], 0, None),
        ([1000, 1000, 1000], 50, None),
        ([900, 1100], 50, 1100),
        ([4, 1, 3, 2], 50, 3),
        ([1, 2, 3, 4, 5], 50, 4),
        ([1, 2, 2, 2, 5], 50, 5),  # equal ones are on the same side
        ([1, 2, 3, 4, 5], 0, 2),
        ([1, 2, 3, 4, 5], 100, None),
        ([1, 2, 3, 4, 5], 80, 5),
        ([10, 20, 30, 40], 75, 40),
    ],
)
def test_high_starts_above_the_percentile(
    intensities: list[int], percentile: int, expected: int | None
) -> None:
    assert high_from(intensities, percentile=percentile) == expected


def test_a_percentile_has_a_range() -> None:
    with pytest.raises(InvalidInputError, match="101"):
        high_from([1], percentile=101)

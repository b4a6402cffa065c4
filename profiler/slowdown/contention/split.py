"""High and low contention: which networks the paper's contention windows keep apart."""

from __future__ import annotations

from collections.abc import Sequence

from ....formulations.errors import InvalidInputError

DEFAULT_PERCENTILE = 50
"""Half of the networks are high: the paper ranks its networks and names no number."""


def high_from(intensities: Sequence[int], *, percentile: int = DEFAULT_PERCENTILE) -> int | None:
    """Return the least intensity that counts as high: the least one *above* the percentile.

    Equal networks are never parted: those on the percentile are all low. So of equal intensities none is
    high, and neither is a single network.

    `intensities`: one for each network, permille; `percentile`: 0 to 100, with linear interpolation between
    ranks.
    The result is for `Interference.high_from_permille`; None: no network is high.
    """
    if not 0 <= percentile <= 100:
        raise InvalidInputError(f"percentile is {percentile}, must be between 0 and 100")
    if not intensities:
        return None
    ordered = sorted(intensities)
    low, rest = divmod(percentile * (len(ordered) - 1), 100)
    high = ordered[min(low + 1, len(ordered) - 1)]
    border = ordered[low] + (high - ordered[low]) * rest / 100
    return min((intensity for intensity in ordered if intensity > border), default=None)

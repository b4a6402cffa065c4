"""The ratios that BetterTogether (IISWC 2025) prints in the text of Section V-C, of its Fig. 8.

Computed again from the tables that the authors published, the mean over all layers of all three networks
comes nearest; the geometric mean, the ratio of sums and the mean of the means of the networks are further
off. The tables are means over runs, and the paper does not say how it took its averages, so a rest remains.
"""

from __future__ import annotations

from collections.abc import Mapping

PRINTED: Mapping[str, Mapping[str, float]] = {
    "pixel7a": {"Little": 1.39, "Medium": 1.20, "Big": 1.40, "GPU": 0.86},
    "oneplus11": {"Little": 0.63, "Medium": 1.00, "Big": 1.38, "GPU": 0.639},
    "jetson-orin-nano": {"CPU": 1.43, "GPU": 1.19},
    "jetson-orin-nano-lp": {"CPU": 1.29, "GPU": 1.74},
}
"""Printed ratio by shipped platform and unit, under the names that the text uses.

For the GPU of "the Jetson device" the text gives two ratios without saying for which of its two power modes:
taken in the order in which it gives those of the CPU.
"""

_JETSON = (
    "the paper's text prints 1.19 and 1.74 for the GPU without saying for which power mode; no average of "
    "the published tables gives 1.74"
)

REMARKS: Mapping[str, str] = {
    "oneplus11": "the paper's text has little and big cores the other way round than the authors' published "
    "tables, in which the unit called Big is the fastest one under load",
    "jetson-orin-nano": _JETSON,
    "jetson-orin-nano-lp": _JETSON,
}
"""What explains a difference, by shipped platform."""

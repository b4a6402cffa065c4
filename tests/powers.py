"""Powers of the units of drawn platforms."""

from __future__ import annotations

_DRAWN = ((900, 0), (400, 70), (1500, 310), (400, 70), (2, 2))
"""Units alike, cheap, dear, that take as much idle as at work, and nothing idle."""


def powers(index: int) -> dict[str, int]:
    """Return the powers of a unit by its place, as arguments of `ProcessingUnit`."""
    power_mw, idle_mw = _DRAWN[index % len(_DRAWN)]
    return {"power_mw": power_mw, "idle_mw": idle_mw}

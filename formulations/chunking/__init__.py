"""Chunking: one network, an endless stream of requests, at most one chunk on each unit (BetterTogether)."""

KINDS = {"chunking": None}
"""It needs no data beyond networks, units and costs."""


def load(kind: str) -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

"""Chunking: one network, an endless stream of requests, at most one chunk on each unit (BetterTogether)."""

DATA_KEY = None
"""It needs no data beyond networks, units and costs."""


def load() -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

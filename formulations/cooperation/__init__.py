"""Chunks served by groups of devices, each of which computes some rows of the result (PICO).

Source: PICO (papers: Pipeline Cooperation), sections 3 and 5; cooperation, sections 1, 2 and 4.
"""

KINDS = {"cooperation": "cooperation"}


def load(kind: str) -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

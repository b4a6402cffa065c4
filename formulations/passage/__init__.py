"""Passage: one network, an endless stream of requests, any number of chunks on each unit."""

KINDS = {"passage": "passage"}
"""Its data, `Passage`, stands under this key in problem files."""


def load(kind: str) -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

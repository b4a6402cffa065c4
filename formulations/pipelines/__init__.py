"""Pipelines: one network over devices, through one pipeline or several on disjoint devices (EPipe)."""

KINDS = {"pipelines": "pipelines"}
"""Its data, `Pipelines`, stands under this key in problem files."""


def load(kind: str) -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

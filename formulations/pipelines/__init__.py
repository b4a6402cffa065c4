"""Pipelines: one network over devices, through one pipeline or several on disjoint devices (EPipe)."""

DATA_KEY = "pipelines"
"""Its data, `Pipelines`, stands under this key in problem files."""


def load() -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

"""Pipelines: one network over devices, through one pipeline or several on disjoint devices (EPipe)."""

DATA_KEY = "pipelines"
"""Its data, `Pipelines`, stands under this key in problem files."""

HOME = "formulation:FORMULATION"
"""Where its `Formulation` is."""

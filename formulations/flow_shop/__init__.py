"""Flow shop: several requests share the units of one platform, in one common order (Hetero2Pipe)."""

KINDS = {"flow_shop": "workload"}
"""Its data, a `Workload`, stands under this key in problem files."""


def load(kind: str) -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

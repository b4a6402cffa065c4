"""The layers of a graph in convex parts, one for each unit, whose largest load is minimised.

Source: Tarnawski et al., NeurIPS 2020 (`formulations.partitions`); partition, section 1.
"""

KINDS = {"partition": "partition"}
"""Its data, `Partition`, stands under this key in problem files."""


def load(kind: str) -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

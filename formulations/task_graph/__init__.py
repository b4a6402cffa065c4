"""The layers of a graph side by side on the units of a device: the latency of one request.

Source: Topcuoglu, Hariri and Wu, IEEE TPDS 2002 (`formulations.task_graphs`); partition, section 3.
"""

DATA_KEY = "tasks"
"""Its data, `TaskGraph`, stands under this key in problem files."""


def load() -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

"""Single requests, each in chunks on any units in any order, with releases and deadlines (Band).

Source: Band (papers: Band), section 4.3; coordination, section 5.
"""

DATA_KEY = "jobs"
"""Its data, `Jobs`, stands under this key in problem files."""


def load() -> object:
    """Return its `Formulation`."""
    from .formulation import FORMULATION

    return FORMULATION

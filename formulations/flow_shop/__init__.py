"""Flow shop: several requests share the units of one platform, in one common order (Hetero2Pipe)."""

DATA_KEY = "workload"
"""Its data, a `Workload`, stands under this key in problem files."""

HOME = "formulation:FORMULATION"
"""Where its `Formulation` is."""

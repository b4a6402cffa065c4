"""Random workloads for benchmarks, equal for equal seeds: those that every comparison can draw."""

from gapless.solvers.flow_shop.drawn import UNITS, random_workload

__all__ = ["UNITS", "random_workload"]

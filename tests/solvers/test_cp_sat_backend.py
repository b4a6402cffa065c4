"""CP-SAT against brute force."""

from __future__ import annotations

from gapless.solvers.cp_sat_backend import CpSatBackend

from .exact_backend import ExactBackend


class TestCpSat(ExactBackend):
    backend = CpSatBackend()
    seed = 11

"""CP-SAT against brute force."""

from __future__ import annotations

from gapless.solvers.exact.cp_sat import CpSatBackend

from ..exact_backend import ExactBackend


class TestCpSat(ExactBackend):
    backend = CpSatBackend()
    seed = 11

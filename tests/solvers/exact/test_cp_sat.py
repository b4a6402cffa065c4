"""CP-SAT against brute force, and with several threads."""

from __future__ import annotations

import pytest

from gapless.solvers.exact.cp_sat import CpSatBackend
from gapless.solvers.flow_shop.samples import random_workload
from gapless.solvers.protocol import SolveOptions, SolveStatus

from ..brute import claims
from ..exact_backend import ExactBackend


class TestCpSat(ExactBackend):
    backend = CpSatBackend()
    seed = 11

    @pytest.mark.slow
    def test_searches_on_several_threads_prove_the_same(self) -> None:
        problem = random_workload(3, 3, seed=1)
        found = claims(self.backend, [(problem, SolveOptions(threads=threads)) for threads in (1, 2, 3, 8)])
        assert {claim.status for claim in found} == {SolveStatus.OPTIMAL}
        assert len({claim.values for claim in found}) == 1

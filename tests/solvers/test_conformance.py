"""One class of tests, every backend of the registry; and backends that must not pass it."""

from __future__ import annotations

import pytest

from gapless.solvers.protocol import Backend
from gapless.solvers.registry import backend_names, get_backend
from gapless.solvers.samples import golden_instances
from gapless.testing import BackendConformance


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name == "native" else [pytest.mark.slow]) for name in backend_names()
    ]
)
def name(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    available = get_backend(backend).availability()
    if not available.ok:
        pytest.skip(available.reason)
    return backend


SHARES = {"cpsat": (2, 0), "pulp": (4, 1), "z3": (4, 3), "pulp-cbc": (24, 1)}
"""Backends that are given the same models share the questions: of how many each is asked one, and which.

CP-SAT is asked every second one, and each of the others is asked by HiGHS or by Z3. CBC takes longest, and
gets its models from where HiGHS does: it is asked a few of each kind.
"""

ITSELF = {"exhaustive": (4, 0)}
"""The oracle is compared with itself: what it promises beside its plans is what can be wrong."""


@pytest.mark.usefixtures("short_walks")
class TestEveryBackend(BackendConformance):
    @pytest.fixture(autouse=True)
    def _choose(self, name: str) -> None:
        self.name = name
        self.every, self.first = (SHARES | ITSELF).get(name, (1, 0))

    def make_backend(self) -> Backend:
        return get_backend(self.name)


def test_every_question_is_asked() -> None:
    asked = [set(range(first, 64, every)) for every, first in SHARES.values()]
    assert set.union(*asked) == set(range(64))


def test_golden_instances_cover_both_answers() -> None:
    answers = [golden.best is None for golden in golden_instances()]
    assert any(answers)
    assert not all(answers)

"""Backends by name: built in, from entry points, from modules and from files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import gapless
from gapless.formulations.errors import BackendFailedError, UnknownBackendError, UnsupportedFeatureError
from gapless.rules import pin
from gapless.solvers.registry import backend_names, get_backend, get_backends
from tests.entry_points import install

ROOT = Path(__file__).parents[2]
SHARES = ROOT / "docs" / "examples" / "shares_backend.py"
SPARSE = "pixel7a/alexnet-sparse"


@pytest.mark.parametrize("name", backend_names())
def test_built_in_backends_know_their_names(name: str) -> None:
    assert get_backend(name).name == name


def test_backends_come_as_entry_points_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    targets = {
        "mine": "shares_of_somebody:SharesBackend",
        "native": "shares_of_somebody:SharesBackend",
        "lost": "gapless.nowhere:X",
    }
    source = SHARES.read_text()
    known = backend_names()
    install(monkeypatch, tmp_path, "gapless.backends", targets, shares_of_somebody=source)
    assert backend_names() == (*known, "mine", "lost")
    assert get_backend("mine").name == "shares"
    assert type(get_backend("native")).__name__ == "NativeBackend", "built-in names come first"
    with pytest.raises(BackendFailedError, match=r"'lost' .*gapless\.nowhere:X: ModuleNotFoundError"):
        get_backend("lost")


def test_every_form_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = gapless.load_problem(SPARSE)
    monkeypatch.syspath_prepend(str(SHARES.parent))
    for form in (f"{SHARES}:SharesBackend", "shares_backend:SharesBackend"):
        result = gapless.plan(problem, backend=form)
        assert (result.backend, result.status, result.objective) == ("shares", "feasible", 7648)
        assert gapless.plan(problem, backend=form, isolate=True).plan == result.plan
    del sys.modules["shares_backend"]
    both = gapless.compare(problem, backends=["native", f"{SHARES}:SharesBackend"])
    assert [result.objective for result in both.results] == [7648, 7648]


def test_a_backend_of_a_file_that_asks_for_it_runs_in_a_child(tmp_path: Path) -> None:
    """Its claim comes back from another process, and so does what it raises."""
    (tmp_path / "child.py").write_text(
        SHARES.read_text() + "\n\nimport os\nfrom dataclasses import replace\n\nclass Told(SharesBackend):\n"
        "    capabilities = replace(SharesBackend.capabilities, isolated=True)\n"
        "    def solve(self, problem, options):\n"
        "        claim = super().solve(problem, options)\n"
        "        return replace(claim, statistics={'process': os.getpid()})\n\n"
        "class Crashing(Told):\n"
        "    def solve(self, problem, options):\n        os._exit(7)\n"
    )
    problem = gapless.load_problem(SPARSE)
    found = gapless.plan(problem, backend=f"{tmp_path}/child.py:Told")
    assert found.objective == 7648
    assert found.statistics["process"] != os.getpid()
    with pytest.raises(BackendFailedError, match="'shares' ended with exit code 7"):
        gapless.plan(problem, backend=f"{tmp_path}/child.py:Crashing")


def test_strict_rules_refuse_a_backend_of_a_file_that_only_checks() -> None:
    problem = gapless.load_problem(SPARSE).with_rules(pin(0, unit="Big"))
    with pytest.raises(UnsupportedFeatureError, match="'shares' only checks or repairs rules"):
        gapless.plan(problem, backend=f"{SHARES}:SharesBackend", strict_rules=True)


WRONG = """
from gapless.solvers.native import NativeBackend

class Nameless(NativeBackend):
    name = None

class Untold(NativeBackend):
    capabilities = {"everything"}
"""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "nativ",
            r"no backend 'nativ'; did you mean native\? `gapless doctor` lists them; one of your own is",
        ),
        ("hal", "`gapless doctor` lists them; one of your own is module:Class or file.py:Class$"),
        ("shares_backend.py", r"name the class in the file: shares_backend\.py:CLASS$"),
        (f"{SHARES}:Shares", r"has no 'Shares'; did you mean SharesBackend\?"),
        (f"{SHARES.parent}/shares_backed.py:X", r"there is no file .*did you mean .*shares_backend\.py\?"),
        ("nowhere:X", "^backend 'nowhere:X' cannot be loaded: ModuleNotFoundError"),
        ("wrong.py:Nameless", "its name is None, not a text"),
        ("wrong.py:Untold", "its capabilities are set, not Capabilities"),
    ],
)
def test_a_wrong_backend_is_refused(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.py").write_text(WRONG)
    with pytest.raises(UnknownBackendError, match=words):
        get_backend(name)


def test_some_are_given_by_name() -> None:
    native = get_backend("native")
    assert get_backends([native, "z3"])[0] is native
    assert [backend.name for backend in get_backends(["z3", native])] == ["z3", "native"]

"""The public names stand once, in the stub, and all of them are there at run time."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import gapless


def stub() -> dict[str, str]:
    """Return the module of each name, as a type checker reads the stub."""
    tree = ast.parse(Path(gapless.__file__).with_suffix(".pyi").read_text())
    return {
        alias.asname or "": f".{node.module or ''}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_every_name_of_the_stub_is_there_at_run_time() -> None:
    names = stub()
    assert len(names) > 50
    for name, module in names.items():
        assert getattr(gapless, name) is getattr(import_module(module, "gapless"), name)


def test_names_can_be_listed_and_imported_at_once() -> None:
    public = sorted(set(stub()) - {"__version__"})
    assert dir(gapless) == getattr(gapless, "__all__") == public  # noqa: B009
    namespace: dict[str, object] = {}
    exec("from gapless import *", namespace)
    assert set(public) <= set(namespace)


def test_a_name_that_is_not_there_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="module 'gapless' has no attribute 'plam'"):
        gapless.plam  # type: ignore[attr-defined] # noqa: B018


@pytest.mark.slow
def test_sub_modules_of_the_public_face_are_there_at_once() -> None:
    code = "import gapless; print(gapless.rules.pin.__name__, gapless.plots.plot_trace.__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["pin", "plot_trace"]

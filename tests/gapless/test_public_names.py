"""The public names stand once, in the stub, and all of them are there at run time."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections import Counter
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gapless
from gapless.executor.engine import Engine
from gapless.formulations.formulation import Formulation
from gapless.solvers.protocol import Capabilities, Claim, SolveOptions, Support
from gapless.view.presenter import Presenter


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
    assert 40 < len(names) <= 60
    for name, module in names.items():
        assert getattr(gapless, name) is getattr(import_module(module, "gapless"), name)


def public_names() -> dict[str, Any]:
    """Return all public names: those on top, and those of the modules by subject; no modules."""
    top = {name: getattr(gapless, name) for name in dir(gapless)}
    modules = [value for value in top.values() if isinstance(value, ModuleType)]
    found = {name: getattr(module, name) for module in modules for name in module.__all__}
    return found | {name: value for name, value in top.items() if not isinstance(value, ModuleType)}


def test_each_name_is_in_one_place() -> None:
    """But for what rule files and tests import, each from one module."""
    homes = Counter(dir(gapless))
    for name in dir(gapless):
        module = getattr(gapless, name)
        if isinstance(module, ModuleType) and name not in ("rules", "testing"):
            homes.update(module.__all__)
    assert [name for name, count in homes.items() if count > 1] == []


@pytest.mark.parametrize("words", ["gapless.Policy", "from gapless import Policy"])
def test_a_name_that_moved_says_where_it_is(words: str) -> None:
    with pytest.raises(ImportError, match=r"from gapless\.coordination import Policy"):
        exec(words, {"gapless": gapless})
    assert gapless.coordination.Policy.__name__ == "Policy"


@pytest.mark.slow
def test_modules_by_subject_load_no_engine_and_no_solver() -> None:
    code = (
        "import sys, gapless; [getattr(gapless, name) for name in dir(gapless) if name != 'testing']; "
        "heavy = {'ray', 'onnxruntime', 'MNN', 'ortools', 'z3', 'pulp', 'matplotlib'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


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
    code = (
        "import gapless; print(gapless.rules.pin.__name__, gapless.plots.plot_trace.__name__, "
        "gapless.testing.EngineConformance.__name__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["pin", "plot_trace", "EngineConformance"]


def unexplained(name: str, value: object) -> list[str]:
    """Return the section that the docstring of a public name should have and has not."""
    text = inspect.getdoc(value) or ""
    if is_dataclass(value):
        large = sum(not field.name.startswith("_") for field in fields(value)) > 3
        wanted = "Attributes" if large else ""
    else:
        large = inspect.isfunction(value) and len(inspect.signature(value).parameters) > 2
        wanted = "Parameters" if large else ""
    return [f"{name} has no {wanted}"] if wanted and f"{wanted}\n---" not in text else []


def test_public_names_say_what_they_take_and_hold() -> None:
    names = public_names()
    assert len(names) > 150
    assert not [line for name in sorted(names) for line in unexplained(name, names[name])]


@pytest.mark.parametrize(
    ("kind", "least"), [(Engine, 2), (Formulation, 2), (Presenter, 4), (gapless.coordination.Policy, 2)]
)
def test_what_plug_ins_implement_says_what_it_takes(kind: type, least: int) -> None:
    texts = [inspect.getdoc(kind) or "", *(inspect.getdoc(value) or "" for value in vars(kind).values())]
    assert sum("\n---" in text for text in texts) >= least


def test_what_plug_ins_read_and_return_says_what_it_holds() -> None:
    kinds = (Capabilities, Claim, SolveOptions, Support)
    assert not [line for kind in kinds for line in unexplained(kind.__name__, kind)]
